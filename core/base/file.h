// Files, and writes after which a crash leaves the old content or the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

// An owned file descriptor.
class File {
 public:
  File() = default;
  // flags as for open(2), O_CLOEXEC added. Throws Error(io) with path and strerror.
  File(const std::filesystem::path& path, int flags, unsigned mode = 0644);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(std::span<const std::byte> bytes);  // all of it, at the file position
  void write_at(std::span<const std::byte> bytes, std::uint64_t offset);
  void read_at(std::span<std::byte> bytes, std::uint64_t offset) const;  // short read: Error(data)
  void sync();                                                           // fsync
  void close();                                                          // reports what close(2) says

 private:
  int fd_ = -1;
  std::filesystem::path path_;
};

[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes);
// Writes PATH.tmp, fsyncs, renames over PATH, fsyncs the folder.
void replace_file(const std::filesystem::path& path, std::string_view content);
// Creates the folder and those above it that are missing, each durably. One that is there is as good.
void make_folders(const std::filesystem::path& folder);
void sync_folder(const std::filesystem::path& folder);
// rename(2), then fsync of the parent folder of `to`.
void durable_rename(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace trireme
