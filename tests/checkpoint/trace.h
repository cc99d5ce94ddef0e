// Records every change that this process makes to files below one folder: the program defines libc's calls itself, so
// those of HDF5 and of the standard library come by as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::trace {

struct Operation {
  enum class Kind {
    open,    // fd, path; `created`, `truncated`
    close,   // fd
    write,   // fd, offset, bytes
    resize,  // fd, offset: the new size
    sync,    // fd, of a file or a folder; path for messages
    rename,  // path to target
    make,    // a folder, path
    remove,  // a file or an empty folder, path
    mark     // the test's own: `number` was reported as durable
  } kind = Kind::mark;
  int fd = -1;
  std::filesystem::path path, target;
  std::uint64_t offset = 0, number = 0;
  std::string bytes;
  bool created = false, truncated = false;
};

// From start() to stop(), all threads, in the order of completion.
void start(const std::filesystem::path& folder);
void mark(std::uint64_t number);
[[nodiscard]] std::vector<Operation> stop();

}  // namespace trireme::trace
