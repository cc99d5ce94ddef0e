// An open HDF5 file with its datasets kept open, so that a read pays no lookup. Private to io/hdf5.
#pragma once

#include <map>

#include "io/hdf5/element_type.h"
#include "io/hdf5/handle.h"
#include "io/hdf5/hdf5.h"

namespace trireme::io {

class OpenHdf5File final : public Hdf5File {
 public:
  OpenHdf5File(std::filesystem::path path, FileHandle file);
  ~OpenHdf5File() override;

  // file.cpp
  [[nodiscard]] const std::filesystem::path& path() const override { return path_; }
  [[nodiscard]] std::vector<std::string> datasets() const override;
  [[nodiscard]] bool has(const std::string& dataset) const override;
  void write_attribute(const std::string& name, const std::string& text) override;
  [[nodiscard]] std::optional<std::string> attribute(const std::string& name) const override;
  void close() override;

  // layout.cpp
  [[nodiscard]] DatasetInfo info(const std::string& dataset) const override;
  void create_dataset(const std::string& dataset, const Shape& shape, Dtype dtype, const Creation& how) override;
  [[nodiscard]] std::uint64_t offset(const std::string& dataset) const override;

  // rows.cpp
  void read(const std::string& dataset, std::int64_t first, std::int64_t count, Dtype as,
            std::span<std::byte> to) const override;
  void write(const std::string& dataset, std::int64_t first, std::int64_t count, Dtype dtype,
             std::span<const std::byte> from) override;

 private:
  struct Opened {
    DatasetHandle handle;
    DatasetInfo info;
    ElementType type;
    bool half = false;  // IEEE binary16: read raw and widened here, HDF5 takes 20 times as long
  };
  [[nodiscard]] const Opened& opened(const std::string& dataset) const;
  [[nodiscard]] Opened open_dataset(const std::string& dataset) const;
  [[nodiscard]] std::string where(const std::string& dataset) const;
  void read_as(const Opened& from, std::int64_t first, std::int64_t count, hid_t type, void* to,
               bool check_range) const;

  std::filesystem::path path_;
  mutable std::map<std::string, Opened> opened_;
  FileHandle file_;
};

}  // namespace trireme::io
