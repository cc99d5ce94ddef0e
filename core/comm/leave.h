// The last line of a rank that leaves at once.
#pragma once

#include <string>
#include <string_view>

namespace trireme::comm {

[[nodiscard]] std::string host_name();
// One line on stderr by one write(2), "[rank 3 node17] error: TEXT": no lock of the log is taken, since the thread
// that hangs may hold it.
void say(int rank, std::string_view text) noexcept;

}  // namespace trireme::comm
