// The one place that sets threads.
#pragma once

#include <cstddef>

namespace trireme {

// Re-executes the program once with a wait policy for OpenMP threads in its environment (libgomp reads it when it is
// loaded): where a rank has several cores to itself its threads spin for about 0.1 ms before they sleep, since waking
// one costs more than a small op; else they sleep at once, so that ranks sharing cores don't spin against each other.
// Returns when all is set, or in the second start, where it takes away what it had set. Call first in main.
void settle_thread_environment(char** argv);

// Sets the number of OpenMP threads of the calling thread, which is one of them (the compute thread).
void set_compute_threads(int threads);

// Cores this process may use (affinity mask), at least 1.
[[nodiscard]] int usable_cores();

// Names the calling thread for debuggers and profiles ("trm-comm"); at most 15 bytes.
void name_thread(const char* name);

// The calling thread works ahead or behind: from now on it never interrupts a thread that computes (SCHED_BATCH).
void stand_back() noexcept;

// Calls body(begin, end) over a fixed partition of [0, count) into compute-thread-many pieces that begin at
// multiples of `grain`; inline where count ≤ grain or one thread is set. Allocates nothing.
// The partition depends on count, grain and thread number alone; bodies must not depend on it for bits.

template <class Body>
void parallel_for(std::size_t count, std::size_t grain, const Body& body);

namespace detail {
using RangeBody = void (*)(const void* state, std::size_t begin, std::size_t end);
void parallel_for(std::size_t count, std::size_t grain, RangeBody body, const void* state);
}  // namespace detail

template <class Body>
void parallel_for(std::size_t count, std::size_t grain, const Body& body) {
  detail::parallel_for(
      count, grain,
      [](const void* state, std::size_t begin, std::size_t end) { (*static_cast<const Body*>(state))(begin, end); },
      &body);
}

}  // namespace trireme
