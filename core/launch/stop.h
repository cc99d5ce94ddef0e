// Requests to stop: signals and the deadline that `trireme launch` passed on. Work is never done in the handler.
#pragma once

#include <string>

namespace trireme::launch {

// From now on TERM, INT and USR1 only set a flag (a second INT ends the process at once). TRIREME_DEADLINE (seconds since
// the epoch, from `trireme launch`) minus TRIREME_STOP_BEFORE_S (default 60) counts as a request too.
void catch_stop_requests();
[[nodiscard]] bool stop_requested() noexcept;
// "SIGTERM", "deadline", or empty.
[[nodiscard]] std::string stop_reason();

}  // namespace trireme::launch
