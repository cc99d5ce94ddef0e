// Opens and creates files. What can be told from the outside (missing, folder, empty, another format) is told in our
// own words before HDF5 is asked.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/base/error.h"
#include "core/base/file.h"
#include "io/hdf5/file_impl.h"

namespace trireme::io {
namespace {

// What a file is instead, from its first bytes.
std::string other_format(const std::filesystem::path& path, std::uint64_t size) {
  std::array<char, 64> head{};
  const std::size_t length = std::min<std::uint64_t>(size, head.size());
  File(path, O_RDONLY).read_at(std::as_writable_bytes(std::span(head)).first(length), 0);
  const std::string_view bytes(head.data(), length);
  if (bytes.starts_with("version https://git-lfs")) return "it is a Git LFS pointer: fetch the file it stands for";
  if (bytes.starts_with("\x1f\x8b")) return "it is compressed by gzip: decompress it first";
  if (bytes.starts_with("\x93NUMPY")) return "it is a NumPy array";
  if (bytes.starts_with("PK\x03\x04")) return "it is a ZIP or NumPy .npz archive";
  if (length >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] >= 8 && bytes[2] <= 0xE) {
    return "it looks like an IDX file: `trireme pack` makes HDF5 of it";
  }
  return "its signature is missing";
}

std::uint64_t check_from_outside(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) fail(ExitCode::data, "{}: no such file", path.string());
    fail(errno == EIO ? ExitCode::io : ExitCode::data, "{}: cannot be opened: {}", path.string(), std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) fail(ExitCode::data, "{}: is a folder, not a data file", path.string());
  if (!S_ISREG(status.st_mode)) fail(ExitCode::data, "{}: is not a regular file", path.string());
  if (::access(path.c_str(), R_OK) != 0) {
    fail(ExitCode::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  if (status.st_size == 0) fail(ExitCode::data, "{}: is empty", path.string());
  return static_cast<std::uint64_t>(status.st_size);
}

[[noreturn]] void fail_open(const std::filesystem::path& path, std::uint64_t size) {
  const auto [words, of_system_call] = hdf5_words();
  if (words.find("truncated file") != std::string::npos) {
    fail(ExitCode::data, "{}: is truncated: it has {} bytes and should have more ({}). Copy it again", path.string(),
         size, words);
  }
  if (words.find("unable to lock file") != std::string::npos) {
    fail(ExitCode::data,
         "{}: is locked: another process is writing it, or its file system has no locks (then set "
         "HDF5_USE_FILE_LOCKING=FALSE in the environment and let nobody write it): {}",
         path.string(), words);
  }
  if (words.find("already open for write") != std::string::npos) {
    fail(ExitCode::data,
         "{}: is being written, or its writer died: if nobody writes it, look whether it is complete and run "
         "`h5clear -s {}`: {}",
         path.string(), path.string(), words);
  }
  fail(of_system_call ? ExitCode::io : ExitCode::data, "{}: HDF5 cannot open it: {}", path.string(), words);
}

PropertyHandle access_properties() {
  PropertyHandle access(H5Pcreate(H5P_FILE_ACCESS));
  // Blocks are read whole; a sieve buffer would read 64 KiB around each small one.
  H5Pset_sieve_buf_size(access.get(), 1);
  return access;
}

}  // namespace

std::shared_ptr<Hdf5File> Hdf5File::open(const std::filesystem::path& path) {
  const std::uint64_t size = check_from_outside(path);
  const Hdf5Lock lock;
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 == 0) fail(ExitCode::data, "{}: is not an HDF5 file; {}", path.string(), other_format(path, size));
  const PropertyHandle access = access_properties();
  FileHandle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  if (!file) fail_open(path, size);
  return std::make_shared<OpenHdf5File>(path, std::move(file));
}

std::shared_ptr<Hdf5File> Hdf5File::create(const std::filesystem::path& path) {
  const Hdf5Lock lock;
  const PropertyHandle access = access_properties();
  FileHandle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  if (!file) fail(ExitCode::io, "{}: cannot be created: {}", path.string(), hdf5_words().text);
  return std::make_shared<OpenHdf5File>(path, std::move(file));
}

std::shared_ptr<Hdf5File> Hdf5File::append(const std::filesystem::path& path) {
  const std::uint64_t size = check_from_outside(path);
  const Hdf5Lock lock;
  const PropertyHandle access = access_properties();
  FileHandle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()));
  if (!file) fail_open(path, size);
  return std::make_shared<OpenHdf5File>(path, std::move(file));
}

}  // namespace trireme::io
