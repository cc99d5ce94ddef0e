// VmRSS, VmHWM, physical pages.
#include "core/base/memory.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace trireme {
namespace {

// "VmRSS:	  123456 kB"
std::uint64_t status_kib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::stoull(line.substr(key.size()));
  return 0;
}

}  // namespace

std::uint64_t resident_bytes() { return status_kib("VmRSS:") << 10; }
std::uint64_t peak_resident_bytes() { return status_kib("VmHWM:") << 10; }
std::uint64_t host_memory_bytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

}  // namespace trireme
