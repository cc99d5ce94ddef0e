// The futex calls of Doorbell.
#include "core/device/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace trireme::device {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

void Doorbell::wake() noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Doorbell::sleep(std::uint32_t seen, std::chrono::nanoseconds left) noexcept {
  timespec limit{};
  if (left != forever) {
    limit.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
  }
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAIT_PRIVATE, seen,
          left != forever ? &limit : nullptr, nullptr, 0);
}

}  // namespace trireme::device
