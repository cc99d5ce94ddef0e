// A futex word between threads: ring() after a change of state, wait() until a condition on that state holds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trireme::device {

// Seconds on the steady clock.
[[nodiscard]] inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Gives the other hardware thread of a core its turn inside a short spin.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// Any number of threads on both sides. ring() enters the kernel only where someone sleeps: bit 0 of the word says
// so, the other bits count rings, so a ring between a sleeper's last look and its sleep is never lost.
class Doorbell {
 public:
  static constexpr std::chrono::nanoseconds forever{-1};

  void ring() noexcept {
    std::uint32_t old = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(old, (old | 1u) + 1u, std::memory_order_seq_cst)) {
    }
    if ((old & 1u) != 0) wake();
  }

  // Spins for about `spins` pauses (some 40 ns each), then sleeps. False where `limit` passed first.
  template <class Condition>
  bool wait(const Condition& holds, int spins, std::chrono::nanoseconds limit = forever) {
    for (int i = 0; i < spins; ++i) {
      if (holds()) return true;
      relax();
    }
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (true) {
      std::uint32_t seen = word_.load(std::memory_order_seq_cst);
      if (holds()) return true;
      std::chrono::nanoseconds left = forever;
      if (limit != forever) {
        left = deadline - std::chrono::steady_clock::now();
        if (left.count() <= 0) return false;
      }
      if ((seen & 1u) == 0) {
        if (!word_.compare_exchange_weak(seen, seen | 1u, std::memory_order_seq_cst)) continue;
        seen |= 1u;
      }
      sleep(seen, left);
    }
  }

 private:
  void wake() noexcept;
  void sleep(std::uint32_t seen, std::chrono::nanoseconds left) noexcept;
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace trireme::device
