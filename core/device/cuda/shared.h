// Memory that kernels of the one device of this process share. Made with the device, never freed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/device.h"
#include "core/device/update_math.h"

namespace trireme::device::cuda {

// What a kernel met that must end the run. Pinned memory: the device writes it over the bus, once in a run; the host
// looks after an event behind the kernel. Written by one thread of a kernel on the compute stream.
struct LabelFault {
  std::uint32_t set = 0;
  std::uint32_t op = 0;  // index into label_ops
  std::int64_t row = 0, label = 0, classes = 0, ignored = 0;
};
inline constexpr const char* label_ops[] = {"softmax_cross_entropy", "accuracy"};

// What a stream's kernels use between them; kernels of one stream never overlap.
struct StreamState {
  unsigned* arrived = nullptr;  // 0 between kernels: how many blocks of one that counts them have ended
  void* workspace = nullptr;    // of library calls
  std::size_t workspace_bytes = 0;
};

struct Shared {
  std::shared_ptr<Device> device;
  UpdateFactors* factors = nullptr;  // device memory; from an update's first kernel to its second
  LabelFault* fault = nullptr;       // pinned
};

// Throws Error(internal) before the device was made.
[[nodiscard]] const Shared& shared();
// Of the compute stream made up front, of others at their first use; at most 16 streams.
[[nodiscard]] const StreamState& state_of(const Stream& stream);

// By the device, once.
void make_shared_memory(const std::shared_ptr<Device>& device);
// Throws the fault, if there is one, as Error(data).
void throw_label_fault(LabelFault& fault);

}  // namespace trireme::device::cuda
