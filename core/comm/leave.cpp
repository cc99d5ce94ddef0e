// The last line of a rank that leaves at once.
#include "core/comm/leave.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace trireme::comm {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

void say(int rank, std::string_view text) noexcept {
  try {
    const std::string line = fmt::format("[rank {} {}] error: {}\n", rank, host_name(), text);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing is left to say it with
  }
}

}  // namespace trireme::comm
