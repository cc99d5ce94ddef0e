// Switching stacks: the six registers a call must keep, and the stack pointer.
#include "tests/cuda_emulation/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "the CUDA emulation switches stacks on x86-64 alone"
#endif

extern "C" void trireme_emulation_switch(void** save, void* load);
asm(R"(
.text
.globl trireme_emulation_switch
.hidden trireme_emulation_switch
.type trireme_emulation_switch,@function
trireme_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size trireme_emulation_switch,.-trireme_emulation_switch
)");

namespace trireme::cuda_emulation {

namespace {

constexpr std::size_t guard = 4096;
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t stack_bytes = 256 << 10;
#else
constexpr std::size_t stack_bytes = 64 << 10;
#endif

}  // namespace

Fiber* make_fiber(void (*entry)()) {
  void* const memory =
      mmap(nullptr, guard + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) {
    std::perror("cuda emulation: no stack for a GPU thread");
    std::abort();
  }
  auto fiber = std::make_unique<Fiber>();
  fiber->stack = static_cast<char*>(memory) + guard;
  fiber->stack_bytes = stack_bytes;
  // As if it had been switched from: six registers, then where to return to, with the stack aligned as after a call.
  void** const top = reinterpret_cast<void**>(fiber->stack + stack_bytes) - 8;
  std::fill_n(top, 8, nullptr);
  top[6] = reinterpret_cast<void*>(entry);
  fiber->stack_pointer = top;
  return fiber.release();
}

void free_fiber(Fiber* fiber) {
  const std::unique_ptr<Fiber> owned(fiber);
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(owned->stack, owned->stack_bytes);
#endif
  munmap(owned->stack - guard, guard + owned->stack_bytes);
}

Fiber thread_as_fiber() {
  Fiber fiber;
#ifdef __SANITIZE_ADDRESS__
  pthread_attr_t attributes;
  void* lowest = nullptr;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &lowest, &fiber.stack_bytes);
    pthread_attr_destroy(&attributes);
  }
  fiber.stack = static_cast<char*>(lowest);
#endif
  return fiber;
}

void switch_fiber(Fiber& from, Fiber& to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from.shadow, to.stack, to.stack_bytes);
#endif
  trireme_emulation_switch(&from.stack_pointer, to.stack_pointer);
  fiber_entered(from);
}

void fiber_entered([[maybe_unused]] Fiber& fiber) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fiber.shadow, nullptr, nullptr);
#endif
}

}  // namespace trireme::cuda_emulation
