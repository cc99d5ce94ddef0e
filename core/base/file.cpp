// System calls on files, each error with path and reason.
#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t largest_call = std::size_t{1} << 30;  // Linux moves at most 2 GiB − 4 KiB a call

// Calls `call` again while a signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// A folder given without parent ("job.toml") lies in the current one.
std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

File::File(const std::filesystem::path& path, int flags, unsigned mode) : path_(path) {
  fd_ = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd_ < 0) {
    fail_errno(errno, path.string() + ((flags & O_CREAT) != 0 ? ": cannot be created" : ": cannot be opened"));
  }
}

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

void File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), largest_call);
    const ssize_t written = uninterrupted([&] { return ::write(fd_, bytes.data(), size); });
    if (written < 0) fail_errno(errno, path_.string() + ": cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void File::write_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), largest_call);
    const ssize_t written =
        uninterrupted([&] { return ::pwrite(fd_, bytes.data(), size, static_cast<off_t>(offset)); });
    if (written < 0) {
      fail_errno(errno, fmt::format("{}: cannot be written at byte {}", path_.string(), offset));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void File::read_at(std::span<std::byte> bytes, std::uint64_t offset) const {
  const std::uint64_t end = offset + bytes.size();
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), largest_call);
    const ssize_t got = uninterrupted([&] { return ::pread(fd_, bytes.data(), size, static_cast<off_t>(offset)); });
    if (got < 0) fail_errno(errno, fmt::format("{}: cannot be read at byte {}", path_.string(), offset));
    if (got == 0) {
      fail(ExitCode::data, "{}: ends at byte {}, bytes up to {} were expected; the file is truncated", path_.string(),
           offset, end);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void File::sync() {
  if (uninterrupted([&] { return ::fsync(fd_); }) < 0) {
    fail_errno(errno, path_.string() + ": cannot be flushed to disk (fsync)");
  }
}

void File::close() {
  const int fd = std::exchange(fd_, -1);
  // After EINTR Linux has closed the descriptor all the same.
  if (fd >= 0 && ::close(fd) < 0 && errno != EINTR) fail_errno(errno, path_.string() + ": cannot be closed");
}

std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  const File file(path, O_RDONLY);
  std::string content;
  constexpr std::size_t step = 1 << 16;
  while (true) {
    const std::size_t used = content.size();
    content.resize(used + step);
    const ssize_t got = uninterrupted([&] { return ::read(file.fd(), content.data() + used, step); });
    if (got < 0) fail_errno(errno, path.string() + ": cannot be read");
    content.resize(used + static_cast<std::size_t>(got));
    if (content.size() > limit_bytes) {
      fail(ExitCode::data, "{}: larger than the {} bytes allowed here", path.string(), limit_bytes);
    }
    if (got == 0) return content;
  }
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  try {
    File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(std::as_bytes(std::span(content)));
    file.sync();
    file.close();
    durable_rename(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void make_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  std::error_code unknown;  // mkdir says it better
  for (auto at = std::filesystem::absolute(folder).lexically_normal(); !std::filesystem::is_directory(at, unknown);
       at = at.parent_path()) {
    if (at.has_filename()) missing.push_back(at);
    if (at == at.parent_path()) break;
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (::mkdir(at->c_str(), 0777) != 0) {
      const int error = errno;
      if (error != EEXIST) fail_errno(error, at->string() + ": cannot be created");
      if (!std::filesystem::is_directory(*at, unknown)) fail_errno(ENOTDIR, at->string());
    }
    sync_folder(at->parent_path());
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const File file(folder, O_RDONLY | O_DIRECTORY);
  // Some network file systems write folders through and refuse to be asked.
  if (uninterrupted([&] { return ::fsync(file.fd()); }) < 0 && errno != EINVAL && errno != ENOTSUP) {
    fail_errno(errno, folder.string() + ": folder cannot be flushed to disk (fsync)");
  }
}

void durable_rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) < 0) {
    fail_errno(errno, fmt::format("{}: cannot be renamed to {}", from.string(), to.string()));
  }
  sync_folder(folder_of(to));
}

}  // namespace trireme
