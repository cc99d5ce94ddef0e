// Packs fields into data files. All are complete and on disk under temporary names before the first takes its place.
#include "io/dataset/pack.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <string_view>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/rank.h"
#include "core/base/version.h"
#include "io/dataset/expand.h"
#include "io/dataset/pack_source.h"
#include "io/dataset/permutation.h"
#include "io/hdf5/hdf5.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 23;    // moved at a time
constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 26;  // HDF5 takes less than 2^32
constexpr std::string_view temporary_end = ".tmp", kept_end = ".old";
constexpr std::uint64_t random_memory = std::uint64_t{1} << 31;  // for a source read in random order

struct Source {
  std::string field;
  std::unique_ptr<PackSource> rows;
};

std::vector<Source> open_sources(const PackOptions& options) {
  std::vector<Source> sources;
  for (const auto& [field, text] : options.fields) sources.push_back({field, open_pack_source(field, text)});
  if (sources.empty()) fail(ExitCode::usage, "no field to pack, e.g. image=train-images-idx3-ubyte.gz");
  const Source& first = sources.front();
  for (const Source& source : sources) {
    if (source.rows->shape()[0] == first.rows->shape()[0]) continue;
    fail(ExitCode::data, "{} ({}) has {} rows, {} ({}) has {}; fields need as many rows", first.field,
         options.fields.at(first.field), first.rows->shape()[0], source.field, options.fields.at(source.field),
         source.rows->shape()[0]);
  }
  return sources;
}

std::vector<fs::path> output_names(const PackOptions& options) {
  std::vector<fs::path> names;
  for (std::int64_t i = 0; i < options.files; ++i) {
    names.emplace_back(options.output.string() + fmt::format("-{:05}-of-{:05}.h5", i, options.files));
  }
  return names;
}

// Refuses outputs that exist (a folder always), and those of a pack into another number of files: one pattern would
// match both.
void check_outputs(const PackOptions& options, std::span<const fs::path> names) {
  for (const fs::path& name : names) {
    if (!fs::exists(name)) continue;
    if (fs::is_directory(name)) fail(ExitCode::usage, "{}: is a folder; choose another output", name.string());
    if (!options.overwrite) {
      fail(ExitCode::usage, "{}: exists; choose another output or say --overwrite", name.string());
    }
  }
  const fs::path folder = options.output.has_parent_path() ? options.output.parent_path() : ".";
  const std::string stem = options.output.filename().string();
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string other = entry.path().filename().string();
    // STEM-00000-of-00000.h5
    if (other.size() != stem.size() + 18 || !other.starts_with(stem + "-") || !other.ends_with(".h5")) continue;
    if (other.substr(stem.size() + 6, 4) != "-of-" ||
        other.substr(stem.size() + 10, 5) == fmt::format("{:05}", options.files)) {
      continue;
    }
    fail(ExitCode::usage,
         "{}: belongs to a pack into another number of files; {}-*.h5 would match both. Remove those files first or "
         "choose another output",
         entry.path().string(), options.output.string());
  }
}

// ".NAME.HOST.PID": what a pack of this process calls NAME before it is whole, and while another takes its place.
std::string hidden_name(const std::string& name) { return fmt::format(".{}.{}.{}", name, host_name(), ::getpid()); }

// What packs into `output` have left that were killed on this host: temporaries go, and a file that one had put by
// comes back if nothing stands in its place.
void sweep(const fs::path& output) {
  const fs::path folder = output.has_parent_path() ? output.parent_path() : ".";
  const std::string head = fmt::format(".{}-", output.filename().string()), host = fmt::format(".{}.", host_name());
  constexpr std::size_t numbers = std::string_view("00000-of-00000.h5").size();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::size_t named = head.size() + numbers;
    if (!name.starts_with(head) || name.compare(named, host.size(), host) != 0) continue;
    pid_t pid = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + named + host.size(), end, pid);
    const std::string_view kind(rest, static_cast<std::size_t>(end - rest));
    if (error != std::errc() || pid <= 0 || (::kill(pid, 0) == 0 || errno != ESRCH)) continue;
    const fs::path whole = folder / name.substr(1, named - 1);
    if (kind == kept_end && !fs::exists(whole)) {
      durable_rename(entry.path(), whole);
    } else if (kind == temporary_end || kind == kept_end) {
      ::unlink(entry.path().c_str());
    }
  }
}

// Files under their temporary names; those that were not renamed are removed again.
class Outputs {
 public:
  explicit Outputs(const std::vector<fs::path>& names) {
    for (const fs::path& name : names) {
      const fs::path hidden = name.parent_path() / hidden_name(name.filename().string());
      files_.push_back({name, fs::path(hidden) += temporary_end, fs::path(hidden) += kept_end});
    }
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  ~Outputs() {
    for (const Output& file : files_) ::unlink(file.temporary.c_str());
  }
  [[nodiscard]] const fs::path& temporary(std::size_t i) const { return files_[i].temporary; }
  // All or, where a rename fails, what was there before.
  std::vector<fs::path> commit() {
    std::vector<fs::path> names;
    try {
      for (Output& file : files_) put_by(file);
      for (Output& file : files_) {
        durable_rename(file.temporary, file.name);
        file.placed = true;
        names.push_back(file.name);
      }
    } catch (...) {
      for (const Output& file : files_) restore(file);
      throw;
    }
    for (const Output& file : files_) ::unlink(file.kept.c_str());
    return names;
  }

 private:
  struct Output {
    fs::path name, temporary, kept;  // kept: what had the name
    bool placed = false, moved = false;
  };
  // A second name, so that the first is never without its file; moved away where the file system has no such names.
  static void put_by(Output& file) {
    if (fs::is_directory(file.name)) fail_errno(EISDIR, file.name.string());
    ::unlink(file.kept.c_str());
    if (::link(file.name.c_str(), file.kept.c_str()) == 0 || errno == ENOENT) return;
    if (errno != EPERM && errno != ENOTSUP && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) {
      fail_errno(errno, file.name.string() + ": cannot be put by for the new one");
    }
    durable_rename(file.name, file.kept);
    file.moved = true;
  }
  static void restore(const Output& file) {
    if (!file.placed && !file.moved) {
      ::unlink(file.kept.c_str());
    } else if (std::rename(file.kept.c_str(), file.name.c_str()) != 0 && errno == ENOENT && file.placed) {
      ::unlink(file.name.c_str());  // there was none before
    }
  }
  std::vector<Output> files_;
};

std::int64_t chunk_rows_of(const PackSource& source, std::int64_t wanted, std::int64_t rows) {
  const std::uint64_t row = std::max<std::uint64_t>(source.row_bytes(), 1);
  if (wanted <= 0 || row > largest_chunk) return 0;
  return std::min({wanted, rows, static_cast<std::int64_t>(largest_chunk / row)});
}

class Packer {
 public:
  Packer(const PackOptions& options, const std::function<void(std::int64_t, std::int64_t)>& progress)
      : options_(options),
        progress_(progress),
        sources_(open_sources(options)),
        rows_(sources_.front().rows->shape()[0]) {
    if (options.files < 1 || options.files > 99999 || options.files > rows_) {
      fail(ExitCode::usage, "{} samples cannot be packed into {} files", rows_, options.files);
    }
    if (!options.shuffle_samples) return;
    order_.resize(static_cast<std::size_t>(rows_));
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    permute(order_, shuffle_key(options.seed, 0, Shuffled::packing));
    for (Source& source : sources_) source.rows->expect_random(random_memory / sources_.size());
  }

  void write_file(const fs::path& path, std::int64_t first, std::int64_t count) {
    const std::shared_ptr<Hdf5File> file = Hdf5File::create(path);
    file->write_attribute("creator", fmt::format("trireme pack {}", version()));
    file->write_attribute("rows", fmt::format("{} to {} of {}", first, first + count, rows_));
    if (options_.shuffle_samples) file->write_attribute("shuffle", fmt::format("seed {}", options_.seed));
    for (const Source& source : sources_) {
      file->write_attribute("source." + source.field, source.rows->provenance());
      Hdf5File::Creation how;
      how.chunk_rows = chunk_rows_of(*source.rows, options_.chunk_rows, count);
      how.deflate = options_.deflate;
      how.shuffle = options_.shuffle;
      how.fletcher32 = options_.fletcher32;
      file->create_dataset("/" + source.field, source.rows->shape().with_rows(count), source.rows->dtype(), how);
    }
    for (const Source& source : sources_) write_field(*file, source, first, count);
    file->close();
    File(path, O_RDONLY).sync();
    done_ += count;
    if (progress_) progress_(done_, rows_);
  }

  [[nodiscard]] std::int64_t rows() const { return rows_; }

 private:
  void write_field(Hdf5File& file, const Source& source, std::int64_t first, std::int64_t count) {
    const std::size_t row = source.rows->row_bytes();
    // Whole chunks at a time, so that each is encoded once.
    const std::int64_t chunk = std::max<std::int64_t>(chunk_rows_of(*source.rows, options_.chunk_rows, count), 1);
    const auto fitting = static_cast<std::int64_t>(piece_bytes / std::max<std::size_t>(row, 1));
    const std::int64_t step = std::max<std::int64_t>(fitting / chunk, 1) * chunk;
    for (std::int64_t at = 0; at < count; at += step) {
      const std::int64_t now = std::min(step, count - at);
      piece_.resize(static_cast<std::size_t>(now) * row);
      read_rows(*source.rows, first + at, now, row);
      file.write("/" + source.field, at, now, source.rows->dtype(), piece_);
      if (progress_ && &source == &sources_.front()) progress_(done_ + at, rows_);
    }
  }

  void read_rows(PackSource& source, std::int64_t first, std::int64_t count, std::size_t row) {
    if (order_.empty()) {
      source.read(first, count, piece_);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto from = static_cast<std::int64_t>(order_[static_cast<std::size_t>(first + i)]);
      source.read(from, 1, std::span(piece_).subspan(static_cast<std::size_t>(i) * row, row));
    }
  }

  const PackOptions& options_;
  const std::function<void(std::int64_t, std::int64_t)>& progress_;
  std::vector<Source> sources_;
  std::int64_t rows_, done_ = 0;
  std::vector<std::uint64_t> order_;  // empty: as they come
  std::vector<std::byte> piece_;
};

}  // namespace

std::vector<fs::path> pack(const PackOptions& options,
                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  Packer packer(options, progress);
  const std::vector<fs::path> names = output_names(options);
  if (options.output.has_parent_path()) make_folders(options.output.parent_path());
  sweep(options.output);
  check_outputs(options, names);
  Outputs outputs(names);
  for (std::int64_t i = 0; i < options.files; ++i) {
    const std::int64_t first = packer.rows() * i / options.files;
    const std::int64_t end = packer.rows() * (i + 1) / options.files;
    packer.write_file(outputs.temporary(static_cast<std::size_t>(i)), first, end - first);
  }
  return outputs.commit();
}

}  // namespace trireme::io
