// Stacks to switch between within one thread: one for each GPU thread that is under way. x86-64 and System V only.
#pragma once

#include <cstddef>

namespace trireme::cuda_emulation {

struct Fiber {
  void* stack_pointer = nullptr;  // while it does not run
  char* stack = nullptr;          // its lowest byte, above a guard page
  std::size_t stack_bytes = 0;
  void* shadow = nullptr;  // AddressSanitizer's
};

// `entry` never returns and begins with fiber_entered.
[[nodiscard]] Fiber* make_fiber(void (*entry)());
void free_fiber(Fiber* fiber);
// The calling thread as a fiber, to be switched from and back to.
[[nodiscard]] Fiber thread_as_fiber();
void switch_fiber(Fiber& from, Fiber& to);
void fiber_entered(Fiber& fiber);

}  // namespace trireme::cuda_emulation
