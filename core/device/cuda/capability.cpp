// Architectures as CMake lists them against a compute capability.
#include "core/device/cuda/capability.h"

#include <algorithm>
#include <charconv>

namespace trireme::device::cuda {

namespace {

// What one entry gives on the device.
Code code_of(std::string_view entry, int major, int minor) {
  int number = 0;
  const auto [rest, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc()) return Code::binary;  // "native", "all"
  std::string_view suffix = entry.substr(static_cast<std::size_t>(rest - entry.data()));
  const bool exact = suffix.starts_with('a'), family = suffix.starts_with('f');
  if (exact || family) suffix.remove_prefix(1);
  const int at_major = number / 10, at_minor = number % 10;
  const bool same = at_major == major && at_minor == minor;
  const bool later = at_major == major && at_minor <= minor;
  const bool newer = at_major < major || later;
  if (suffix != "-virtual" && (exact ? same : later)) return Code::binary;
  if (suffix != "-real" && (exact ? same : family ? later : newer)) return Code::ptx;
  return Code::none;
}

}  // namespace

Code code_for(std::string_view architectures, int major, int minor) {
  Code best = Code::none;
  for (std::size_t begin = 0; begin < architectures.size();) {
    const std::size_t end = std::min(architectures.find_first_of(";,", begin), architectures.size());
    if (end > begin) best = std::min(best, code_of(architectures.substr(begin, end - begin), major, minor));
    begin = end + 1;
  }
  return best;
}

std::string with_device(std::string_view architectures, int major, int minor) {
  std::string all(architectures);
  std::replace(all.begin(), all.end(), ',', ';');
  if (!all.empty()) all += ';';
  all += std::to_string(10 * major + minor);
  return all;
}

}  // namespace trireme::device::cuda
