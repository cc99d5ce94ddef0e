// Replaces malloc by one that counts the calls of each thread. For programs of one source alone.
#pragma once

#include <cstddef>

#ifndef TRIREME_SANITIZED  // a sanitizer brings a malloc of its own

extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT: glibc's own names
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT
}

namespace trireme {
inline thread_local std::size_t allocations = 0;
}

extern "C" void* malloc(std::size_t bytes) {
  ++trireme::allocations;
  return __libc_malloc(bytes);
}
extern "C" void* calloc(std::size_t count, std::size_t bytes) {
  ++trireme::allocations;
  return __libc_calloc(count, bytes);
}
extern "C" void* realloc(void* memory, std::size_t bytes) {
  ++trireme::allocations;
  return __libc_realloc(memory, bytes);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++trireme::allocations;
  return __libc_memalign(alignment, bytes);
}
extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  ++trireme::allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? 12 : 0;  // ENOMEM
}
#endif
