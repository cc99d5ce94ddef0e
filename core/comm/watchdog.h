// Whether this rank's work goes on: the last step, phase and part it told, and since when nothing new came.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace trireme::comm {

// progress() and disarm() from any thread without a lock; stalled() from one.
class Watchdog {
 public:
  // Armed by the first call. `phase` is a literal. `part` tells calls apart in a phase of many rounds.
  void progress(std::uint64_t step, const char* phase, std::uint64_t part) noexcept {
    if (armed_.load(std::memory_order_relaxed) && step_.load(std::memory_order_relaxed) == step &&
        part_.load(std::memory_order_relaxed) == part && phase_.load(std::memory_order_relaxed) == phase)
      return;
    step_.store(step, std::memory_order_relaxed);
    part_.store(part, std::memory_order_relaxed);
    phase_.store(phase, std::memory_order_relaxed);
    armed_.store(true, std::memory_order_relaxed);
    changes_.fetch_add(1, std::memory_order_release);
  }
  void disarm() noexcept { armed_.store(false, std::memory_order_relaxed); }
  // Seconds since the last new progress; 0 while not armed.
  [[nodiscard]] double stalled(double now) noexcept {
    const std::uint64_t changes = changes_.load(std::memory_order_acquire);
    if (changes != seen_ || !armed_.load(std::memory_order_relaxed)) seen_ = changes, since_ = now;
    return now - since_;
  }
  [[nodiscard]] std::uint64_t step() const noexcept { return step_.load(std::memory_order_relaxed); }
  [[nodiscard]] const char* phase() const noexcept { return phase_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> step_{0}, part_{0}, changes_{0};
  std::atomic<const char*> phase_{"start"};
  std::atomic<bool> armed_{false};
  std::uint64_t seen_ = 0;
  double since_ = 0;
};

}  // namespace trireme::comm
