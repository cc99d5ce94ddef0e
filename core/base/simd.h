// TRIREME_SIMD before a leaf loop compiles it for AVX-512, AVX2 and the base line; the loader picks one.
// (A macro because an attribute cannot be named otherwise. Sanitizers run before the loader's choice, clang 14
// has no target_clones with arch=: both get the base line.)
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TRIREME_SANITIZED) && \
    !defined(__CUDACC__)
#define TRIREME_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), noinline))
#else
#define TRIREME_SIMD
#endif
