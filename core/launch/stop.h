// Requests to stop: signals and the deadline that `trireme launch` passed on. No thread that works ever takes the
// signal.
#pragma once

#include <string>

namespace trireme::launch {

// TERM, INT and USR1 wait until catch_stop_requests(), through an exec too. First in main, for a command that will call
// it.
void hold_stop_requests();
// From now on TERM, INT and USR1 to the process, but those that it was started to ignore, only set a flag (a second INT
// ends it at once). Call it before other threads start: they inherit the mask that keeps signals away. TRIREME_DEADLINE
// (seconds since the epoch, from `trireme launch`) minus TRIREME_STOP_BEFORE_S (default 60) counts as a request too.
void catch_stop_requests();
[[nodiscard]] bool stop_requested() noexcept;
// "SIGTERM", "deadline", or empty.
[[nodiscard]] std::string stop_reason();
[[nodiscard]] bool is_ignored(int signal) noexcept;  // has SIG_IGN

}  // namespace trireme::launch
