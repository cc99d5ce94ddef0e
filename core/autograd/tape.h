// The tape of one micro-batch: tensors by handle, ops recorded as they run, backward in reverse. Knows no ranks:
// a gradient that is final is announced by a hook. Compute thread only; reset() keeps all memory, so a steady
// step allocates nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/range.h"
#include "core/ops/op.h"

namespace trireme::autograd {

// 0: none. Valid until reset(); a stale one is refused with the age of its micro-batch.
using Handle = std::uint64_t;

// A user-defined differentiable function (trireme_custom): handles inside are of the same tape, ops applied inside are
// not recorded. What backward needs of forward has to be an input or an output.
struct Custom {
  std::function<void(std::span<const Handle> in, std::span<const Handle> out)> forward;
  // in_grads[i] = 0: not wanted; out_grads[i] = 0: none came.
  std::function<void(std::span<const Handle> in, std::span<const Handle> out, std::span<const Handle> out_grads,
                     std::span<const Handle> in_grads)>
      backward;
};

// One call of an op's kernel, as an observer is told of it. Views are valid during the call.
struct OpCall {
  std::uint32_t op = 0;  // Tape::custom_op: a custom function; Tape::add_op: gradients that meet are added
  bool backward = false;
  bool ended = false;  // told twice: just before the kernel is queued (CPU: run) and just after
  std::span<const ops::Tensor> in{}, out{}, saved{};
  std::span<const ops::Tensor> in_grads{};  // backward: those that are wanted have data
  const ops::Attributes* attributes = nullptr;
};

class Tape {
 public:
  Tape(const ops::Backend& backend, std::shared_ptr<device::Device> device);
  ~Tape();

  // Starts a micro-batch. In evaluate and predict nothing is recorded for backward.
  void begin(Mode mode, const device::StepBlock* block, device::Stream stream);
  // Leaves. A parameter's gradient is written to `gradient` (a range of the gradient arena).
  Handle leaf(const ops::Tensor& value);
  Handle parameter(const ops::Tensor& value, const ops::Tensor& gradient, Range range);

  // Runs an op. One that joins a relu is held back until the next call, so that the relu comes along; a tensor whose
  // op was absorbed so and that is used after all is computed then. Writes out.size() handles. An `out` that is not 0
  // on entry names the tensor to write to instead (new buffers): no gradient flows through it.
  void apply(std::uint32_t op, std::span<const Handle> in, const ops::Attributes& attributes, std::span<Handle> out);
  void custom(const std::shared_ptr<Custom>& body, std::span<const Handle> in,
              std::span<const ops::Signature::Entry> shapes, std::span<Handle> out);
  [[nodiscard]] Handle allocate(const Shape& shape, Dtype dtype);  // activation memory, no gradient
  void* workspace(std::size_t bytes);  // until the plugin's running call ends (custom function, forward and loss)

  // The tensor behind a handle, computed. Throws Error(internal) for a stale or unknown handle.
  // The reference is valid until the next call.
  [[nodiscard]] const ops::Tensor& value(Handle handle);
  [[nodiscard]] ops::Signature::Entry signature(Handle handle) const;  // computes nothing
  [[nodiscard]] bool has_gradient_path(Handle handle) const;           // leads to a parameter
  // The next ordinal, for randomness outside of ops. Evaluation and training never share one.
  [[nodiscard]] std::uint32_t take_ordinal();

  // Marks give back the memory and handles made since (predict only).
  [[nodiscard]] std::uint64_t mark();
  void rewind(std::uint64_t mark);

  // Called on the compute thread when a parameter's gradient is final for this micro-batch. Parameters without gradient
  // are not announced.
  using Ready = std::function<void(Range)>;
  // Runs backward from `loss` (one element, f32 or f64), seeded with loss scale ÷ n, read on the device.
  void backward(Handle loss, double n, const Ready& ready);
  void reset();
  [[nodiscard]] std::size_t peak_bytes() const;

  // Name of the op that was asked for and is not on this backend; empty: none was.
  [[nodiscard]] std::string_view missing_op() const;

  // Called around each kernel (tests: delays; bench: time). Null by default.
  static constexpr std::uint32_t custom_op = ~0u, add_op = ~0u - 1;
  std::function<void(const OpCall&)> on_op;

 private:
  friend class CustomScope;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::autograd
