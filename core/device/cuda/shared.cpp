// What kernels of one device share.
#include "core/device/cuda/shared.h"

#include <array>

#include "core/base/error.h"

namespace trireme::device::cuda {

namespace {

// Enough for the products of the largest devices; less has cost speed, never correctness.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

struct Known {
  void* stream = nullptr;
  StreamState state;
};

// For the life of the process: the run time may be gone before static objects are.
Shared& memory() {
  static auto* const made = new Shared;  // NOLINT(cppcoreguidelines-owning-memory)
  return *made;
}

std::array<Known, 16> known_streams{};
std::size_t known = 0;

StreamState make_state(Device& device) {
  return {static_cast<unsigned*>(device.allocate(sizeof(unsigned))), device.allocate(workspace_bytes), workspace_bytes};
}

}  // namespace

const Shared& shared() {
  if (!memory().device) fail(ExitCode::internal, "cuda: a kernel was asked for before the device was made");
  return memory();
}

const StreamState& state_of(const Stream& stream) {
  void* const native = stream.native();
  for (std::size_t i = 0; i < known; ++i)
    if (known_streams[i].stream == native) return known_streams[i].state;
  if (known == known_streams.size())
    fail(ExitCode::internal, "cuda: ops ran on {} streams already; they belong on the compute stream", known);
  known_streams[known] = {native, make_state(*shared().device)};
  return known_streams[known++].state;
}

void make_shared_memory(const std::shared_ptr<Device>& device) {
  Shared& made = memory();
  if (made.device) return;
  made.factors = static_cast<UpdateFactors*>(device->allocate(sizeof(UpdateFactors)));
  made.fault = static_cast<LabelFault*>(device->allocate_pinned(sizeof(LabelFault)));
  made.device = device;
  static_cast<void>(state_of(device->compute_stream()));
}

void throw_label_fault(LabelFault& fault) {
  if (fault.set == 0) return;
  const LabelFault met = fault;
  fault.set = 0;
  fail(ExitCode::data, "{}: row {} of the micro-batch has label {}, outside [0, {}) and not ignore_index ({})",
       label_ops[met.op], met.row, met.label, met.classes, met.ignored);
}

}  // namespace trireme::device::cuda
