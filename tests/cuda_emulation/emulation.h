// An emulated CUDA device for tests: the CUDA run time, cuBLASLt and NCCL as far as the CUDA module calls them, on the CPU.
// The module's very sources are compiled against it (device_language.h comes in front of kernel files); it is never part of the product.
// A call that is not here does not link.
//
// What streams are given waits. Later calls run it, in an order drawn from a seed:
//   TRIREME_EMULATION_MODE  eager: at once. minimal: only what the host waits for, that stream first. random: some with each
//                           call. sparse: little with few calls. Default: random.
//   TRIREME_EMULATION_SEED  a number (default 1). Order of streams, blocks and threads follow from it, and facts that CUDA
//                           leaves open (whether cuBLASLt's relu keeps NaN).
//   TRIREME_EMULATION_COUNTS  set: counts() to standard error at the end of the process.
//   TRIREME_EMULATION_PROTECTION  mprotect: device memory is closed to the host by mprotect even where the CPU has protection keys.
// One host thread alone with the device repeats exactly. Where the host makes no call for a while, everything goes on by itself, as on
// a device.
//
// What is found wrong goes to standard error, fails this and every later call (cudaErrorLaunchFailure, whose text tells it),
// and stops the work of all streams: memory that is not the device's or was freed, host access to device memory (a SIGSEGV, said
// on standard error), divergent barriers and warp collectives, the default stream, CUDA calls in host functions. Device and
// shared memory begin as NaN, freed memory becomes NaN and is used again. Races within a kernel are not looked for; threads take
// turns at barriers and warp collectives, in seeded order.
#pragma once

#include <cstdint>
#include <string>

namespace trireme::cuda_emulation {

enum class Mode { eager, minimal, random, sparse };

// Starts over with another order, once everything queued is done. Forgets a finding.
void begin(std::uint64_t seed, Mode mode);
// The modes in turn, for tests over many seeds.
[[nodiscard]] constexpr Mode mode_of(std::uint64_t seed) { return static_cast<Mode>(seed % 4); }

// The first thing found since, empty if none; forgets it, and the device works again.
[[nodiscard]] std::string take_finding();

// Whether the host gets at this byte.
[[nodiscard]] bool host_can_read(const void* memory);

// Since the process began. A synchronization is a call that waits for all that a stream was given, or the device.
struct Counts {
  std::uint64_t launches = 0, copies = 0, allocations = 0, synchronizations = 0;
};
[[nodiscard]] Counts counts();

}  // namespace trireme::cuda_emulation
