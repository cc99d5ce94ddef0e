// libc's file calls, defined in the program so that they are found before libc's own.
#include "tests/checkpoint/trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

namespace trireme::trace {
namespace {

namespace fs = std::filesystem;
using Kind = Operation::Kind;

// Never destroyed: files are closed until the very end of the program.
struct Tracer {
  std::recursive_mutex mutex;  // held over the call itself, so that the order is the real one
  std::string folder;          // empty: not recording
  std::map<int, fs::path> open;
  std::vector<Operation> operations;
};
Tracer& tracer() {
  static Tracer* const shared = new Tracer;
  return *shared;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// The absolute path of `path` as seen from the folder `at`.
fs::path absolute_of(int at, const char* path) {
  const fs::path given(path);
  if (given.is_absolute()) return given;
  char buffer[4096];
  const std::string link = at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(at);
  const ssize_t length = ::readlink(link.c_str(), buffer, sizeof buffer);
  return fs::path(std::string(buffer, length < 0 ? 0 : static_cast<std::size_t>(length))) / given;
}

bool recorded(const Tracer& t, const fs::path& path) {
  return !t.folder.empty() && path.string().compare(0, t.folder.size(), t.folder) == 0;
}

Operation operation(Kind kind, int fd, fs::path path) {
  Operation made;
  made.kind = kind;
  made.fd = fd;
  made.path = std::move(path);
  return made;
}

// `call` on a path, recorded as `kind` where it succeeds.
template <class Call>
int on_path(Kind kind, int at, const char* path, const char* target, const Call& call) {
  Tracer& t = tracer();
  const std::lock_guard lock(t.mutex);
  const fs::path whole = t.folder.empty() ? fs::path() : absolute_of(at, path);
  const int result = call();
  if (result == 0 && recorded(t, whole)) {
    t.operations.push_back(operation(kind, -1, whole));
    if (target != nullptr) t.operations.back().target = target;
  }
  return result;
}

template <class Call>
int on_open(int at, const char* path, int flags, const Call& call) {
  Tracer& t = tracer();
  const std::lock_guard lock(t.mutex);
  if (t.folder.empty()) return call();
  const fs::path whole = absolute_of(at, path);
  struct stat before {};
  const bool existed = ::stat(whole.c_str(), &before) == 0;
  const int fd = call();
  if (fd >= 0 && recorded(t, whole)) {
    Operation made = operation(Kind::open, fd, whole);
    made.created = !existed && (flags & O_CREAT) != 0;
    made.truncated = (flags & O_TRUNC) != 0;
    t.operations.push_back(std::move(made));
    t.open[fd] = whole;
  }
  return fd;
}

template <class Call>
auto on_fd(Kind kind, int fd, std::uint64_t offset, const void* bytes, const Call& call) {
  Tracer& t = tracer();
  const std::lock_guard lock(t.mutex);
  const auto result = call();
  const auto open = t.open.find(fd);
  if (result >= 0 && open != t.open.end()) {
    Operation made = operation(kind, fd, open->second);
    made.offset = offset;
    if (bytes != nullptr) made.bytes.assign(static_cast<const char*>(bytes), static_cast<std::size_t>(result));
    if (!t.folder.empty()) t.operations.push_back(std::move(made));
    if (kind == Kind::close) t.open.erase(open);
  }
  return result;
}

std::uint64_t position(int fd) {
  struct stat status {};
  if ((::fcntl(fd, F_GETFL) & O_APPEND) != 0 && ::fstat(fd, &status) == 0) {
    return static_cast<std::uint64_t>(status.st_size);
  }
  const off_t at = ::lseek(fd, 0, SEEK_CUR);
  return at < 0 ? 0 : static_cast<std::uint64_t>(at);
}

}  // namespace

void start(const fs::path& folder) {
  Tracer& t = tracer();
  const std::lock_guard lock(t.mutex);
  t.folder = folder.string();
  t.operations.clear();
}

void mark(std::uint64_t number) {
  Tracer& t = tracer();
  const std::lock_guard lock(t.mutex);
  Operation made;
  made.number = number;
  t.operations.push_back(std::move(made));
}

std::vector<Operation> stop() {
  Tracer& t = tracer();
  const std::lock_guard lock(t.mutex);
  t.folder.clear();
  return std::exchange(t.operations, {});
}

}  // namespace trireme::trace

using namespace trireme::trace;

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return on_open(AT_FDCWD, path, flags, [&] { return real<int(const char*, int, ...)>("open")(path, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return ::open(path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return on_open(at, path, flags,
                 [&] { return real<int(int, const char*, int, ...)>("openat")(at, path, flags, mode); });
}
int creat(const char* path, mode_t mode) { return ::open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
  return on_fd(Kind::close, fd, 0, nullptr, [&] { return real<int(int)>("close")(fd); });
}
ssize_t write(int fd, const void* bytes, size_t count) {
  return on_fd(Kind::write, fd, position(fd), bytes,
               [&] { return real<ssize_t(int, const void*, size_t)>("write")(fd, bytes, count); });
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return on_fd(Kind::write, fd, static_cast<std::uint64_t>(offset), bytes,
               [&] { return real<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, bytes, count, offset); });
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) { return ::pwrite(fd, bytes, count, offset); }
int ftruncate(int fd, off_t size) noexcept {
  return on_fd(Kind::resize, fd, static_cast<std::uint64_t>(size), nullptr,
               [&] { return real<int(int, off_t)>("ftruncate")(fd, size); });
}
int ftruncate64(int fd, off64_t size) noexcept { return ::ftruncate(fd, size); }
int fsync(int fd) {
  return on_fd(Kind::sync, fd, 0, nullptr, [&] { return real<int(int)>("fsync")(fd); });
}
int fdatasync(int fd) {
  return on_fd(Kind::sync, fd, 0, nullptr, [&] { return real<int(int)>("fdatasync")(fd); });
}
int rename(const char* from, const char* to) noexcept {
  return on_path(Kind::rename, AT_FDCWD, from, to,
                 [&] { return real<int(const char*, const char*)>("rename")(from, to); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  return on_path(Kind::make, AT_FDCWD, path, nullptr,
                 [&] { return real<int(const char*, mode_t)>("mkdir")(path, mode); });
}
int unlink(const char* path) noexcept {
  return on_path(Kind::remove, AT_FDCWD, path, nullptr, [&] { return real<int(const char*)>("unlink")(path); });
}
int rmdir(const char* path) noexcept {
  return on_path(Kind::remove, AT_FDCWD, path, nullptr, [&] { return real<int(const char*)>("rmdir")(path); });
}
int remove(const char* path) noexcept {
  return on_path(Kind::remove, AT_FDCWD, path, nullptr, [&] { return real<int(const char*)>("remove")(path); });
}
int unlinkat(int at, const char* path, int flags) noexcept {
  return on_path(Kind::remove, at, path, nullptr,
                 [&] { return real<int(int, const char*, int)>("unlinkat")(at, path, flags); });
}

}  // extern "C"
