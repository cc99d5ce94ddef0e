// IDX and HDF5 sources.
#include "io/dataset/pack_source.h"

#include <algorithm>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "io/hdf5/hdf5.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;

// Reading a source once more for its digest is worth it up to here.
constexpr std::uint64_t largest_digest = std::uint64_t{1} << 32;

std::string provenance_of(const fs::path& path) {
  const std::uint64_t bytes = fs::file_size(path);
  const std::string digest = bytes <= largest_digest ? ", xxh3 " + xxh3_of_file(path.string()) : "";
  return fmt::format("{}, {} bytes{}", path.filename().string(), bytes, digest);
}

class IdxSource final : public PackSource {
 public:
  explicit IdxSource(const fs::path& path) : path_(path), array_(read_idx(path)) {}
  [[nodiscard]] const Shape& shape() const override { return array_.shape; }
  [[nodiscard]] Dtype dtype() const override { return array_.dtype; }
  void read(std::int64_t first, std::int64_t count, std::span<std::byte> to) override {
    const auto rows = std::span(array_.values).subspan(static_cast<std::size_t>(first) * row_bytes());
    std::copy_n(rows.begin(), static_cast<std::size_t>(count) * row_bytes(), to.begin());
  }
  void expect_random(std::uint64_t /*memory_bytes*/) override {}
  [[nodiscard]] std::string provenance() const override { return provenance_of(path_); }

 private:
  fs::path path_;
  IdxArray array_;
};

class Hdf5Source final : public PackSource {
 public:
  Hdf5Source(const fs::path& path, const std::string& dataset)
      : path_(path), file_(Hdf5File::open(path)), info_(file_->info(dataset)) {
    if (info_.shape.rank() == 0) fail(ExitCode::data, "{}:{}: is a scalar, it has no rows", path.string(), dataset);
  }
  [[nodiscard]] const Shape& shape() const override { return info_.shape; }
  [[nodiscard]] Dtype dtype() const override { return info_.dtype; }
  void read(std::int64_t first, std::int64_t count, std::span<std::byte> to) override {
    if (kept_.empty()) {
      file_->read(info_.path, first, count, info_.dtype, to);
      return;
    }
    const auto rows = std::span(kept_).subspan(static_cast<std::size_t>(first) * row_bytes());
    std::copy_n(rows.begin(), to.size(), to.begin());
  }
  void expect_random(std::uint64_t memory_bytes) override {
    const std::size_t all = static_cast<std::size_t>(info_.shape[0]) * row_bytes();
    if (all > memory_bytes) return;
    kept_.resize(all);
    file_->read(info_.path, 0, info_.shape[0], info_.dtype, kept_);
  }
  [[nodiscard]] std::string provenance() const override { return provenance_of(path_) + ", dataset " + info_.path; }

 private:
  fs::path path_;
  std::shared_ptr<Hdf5File> file_;
  DatasetInfo info_;
  std::vector<std::byte> kept_;
};

}  // namespace

std::unique_ptr<PackSource> open_pack_source(const std::string& field, const std::string& text) {
  const std::size_t colon = text.rfind(":/");
  if (colon != std::string::npos && colon > 0 && !fs::exists(text)) {
    return std::make_unique<Hdf5Source>(text.substr(0, colon), text.substr(colon + 1));
  }
  const fs::path path(text);
  const std::string extension = path.extension().string();
  if (extension == ".h5" || extension == ".hdf5" || extension == ".nc") {
    const std::vector<std::string> datasets = Hdf5File::open(path)->datasets();
    fail(ExitCode::usage, "field {}: name the dataset of {}, e.g. {}:{}", field, text, text,
         datasets.empty() ? "/image" : datasets.front());
  }
  return std::make_unique<IdxSource>(path);
}

}  // namespace trireme::io
