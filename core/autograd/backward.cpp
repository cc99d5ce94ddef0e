// Backward: which nodes the loss reaches, then their gradients in reverse order. The first contribution to a gradient
// is written in place, further ones are added by way of a temporary.
#include <cmath>

#include "core/autograd/state.h"
#include "core/base/error.h"
#include "core/device/kernels.h"

namespace trireme::autograd {

void Tape::State::reach(Index loss) {
  for (Value& value : values) {
    value.reached = value.has_gradient = false;
    value.uses = 0;
  }
  root(loss).reached = true;
  for (std::size_t n = nodes.size(); n-- > 0;) {
    Node& node = nodes[n];
    node.reached = false;
    for (std::size_t i = 0; i < node.out_count; ++i) {
      if ((node.gives >> i & 1u) != 0 && values[node.out[i]].reached) node.reached = true;
    }
    if (!node.reached) continue;
    for (std::size_t i = 0; i < node.in_count; ++i) {
      if (!wants_gradient(node, i)) continue;
      root(node.in[i]).reached = true;
      ++root(node.in[i]).uses;
    }
  }
}

Tensor Tape::State::gradient_destination(Index value) {
  Value& to = root(value);
  const Tensor& like = values[value].tensor;
  if (to.has_gradient) return {nullptr, like.shape, like.dtype};
  if (!to.is_parameter) to.gradient = pool.take(to.tensor.shape, to.tensor.dtype, memory);
  to.has_gradient = true;
  return {to.gradient.data, like.shape, like.dtype};
}

void Tape::State::seed(Index loss, double n) {
  const Tensor gradient = gradient_destination(loss);
  device->kernels().seed(gradient.data, gradient.dtype, block, n, stream);
}

void Tape::State::add(const Tensor& into, const Tensor& addend) {
  if (into.dtype == Dtype::f64) {
    device->kernels().add_f64(into.span<double>(), into.span<double>(), addend.span<double>(), stream);
  } else {
    backend.accumulate(into, addend, stream);
  }
}

void Tape::State::backward_node(Index index) {
  std::array<Tensor, ops::max_tensors> in, out, out_gradients, in_gradients;
  std::uint32_t added = 0;  // bit i: in_gradients[i] is a temporary
  {
    const Node& node = nodes[index];
    for (std::size_t i = 0; i < node.out_count; ++i) {
      const Value& value = values[node.out[i]];
      out[i] = value.tensor;
      if ((node.gives >> i & 1u) != 0 && value.has_gradient) out_gradients[i] = value.gradient;
    }
    for (std::size_t i = 0; i < node.in_count; ++i) {
      if (node.in[i] != none) in[i] = values[node.in[i]].tensor;
      if (wants_gradient(node, i)) in_gradients[i] = gradient_destination(node.in[i]);
    }
  }
  // Everything above stays; what follows is temporary.
  const auto mark = memory.mark();
  const std::size_t in_count = nodes[index].in_count, out_count = nodes[index].out_count, node_count = nodes.size();
  for (std::size_t i = 0; i < in_count; ++i) {
    if (in_gradients[i] || !wants_gradient(nodes[index], i)) continue;
    in_gradients[i] = memory.allocate(in_gradients[i].shape, in_gradients[i].dtype);
    added |= 1u << i;
  }
  if (nodes[index].op == custom_op) {
    tell({.op = custom_op, .backward = true}, false);
    backward_custom(index, std::span(out_gradients).first(out_count), std::span(in_gradients).first(in_count));
    tell({.op = custom_op, .backward = true}, true);
  } else {
    const Node& node = nodes[index];
    const auto& kernels = backend.kernels(node.op);
    if (kernels.backward == nullptr) miss(node, "backward kernel");
    const ops::Backward call{std::span(in).first(in_count),
                             std::span(out).first(out_count),
                             std::span<const Tensor>(saved).subspan(node.saved_begin, node.saved_count),
                             std::span(out_gradients).first(out_count),
                             std::span(in_gradients).first(in_count),
                             node.attributes,
                             node.ordinal,
                             block,
                             memory,
                             stream};
    const OpCall told{node.op, true, false, call.in, call.out, call.saved, call.in_grads, &node.attributes};
    tell(told, false);
    kernels.backward(call);
    tell(told, true);
  }
  for (std::size_t i = 0; i < in_count; ++i) {
    if ((added >> i & 1u) == 0) continue;
    const Value& to = root(nodes[index].in[i]);
    const OpCall told{.op = add_op, .backward = true, .in = std::span(in_gradients).subspan(i, 1)};
    tell(told, false);
    add({to.gradient.data, in_gradients[i].shape, in_gradients[i].dtype}, in_gradients[i]);
    tell(told, true);
  }
  // A custom function may have had an absorbed tensor computed: that one stays too.
  if (nodes.size() == node_count) memory.rewind(mark);
}

void Tape::State::backward_custom(Index index, std::span<const Tensor> out_gradients,
                                  std::span<const Tensor> in_gradients) {
  std::array<Handle, ops::max_tensors> in{}, out{}, out_handles{}, in_handles{};
  const Node node = nodes[index];  // the body may move nodes and values
  const std::size_t value_count = values.size();
  for (std::size_t i = 0; i < node.in_count; ++i) {
    if (node.in[i] != none) in[i] = handle(node.in[i]);
    if (in_gradients[i]) in_handles[i] = handle(add_value(in_gradients[i], false));
  }
  for (std::size_t i = 0; i < node.out_count; ++i) {
    out[i] = handle(node.out[i]);
    if (out_gradients[i]) out_handles[i] = handle(add_value(out_gradients[i], false));
  }
  {
    const CustomScope scope(*this);
    node.custom->backward(std::span(in).first(node.in_count), std::span(out).first(node.out_count),
                          std::span(out_handles).first(node.out_count), std::span(in_handles).first(node.in_count));
  }
  truncate_values(value_count);
}

void Tape::State::finish(Index index, const Ready& ready) {
  const Node& node = nodes[index];
  for (std::size_t i = 0; i < node.in_count; ++i) {
    if (!wants_gradient(node, i)) continue;
    Value& value = root(node.in[i]);
    if (--value.uses == 0 && value.is_parameter && ready) ready(value.range);
  }
  for (std::size_t i = 0; i < node.out_count; ++i) {
    Value& value = values[node.out[i]];
    if ((node.gives >> i & 1u) == 0 || !value.has_gradient) continue;
    pool.give_back(value.gradient);
    value.has_gradient = false;
  }
}

void Tape::backward(Handle loss, double n, const Ready& ready) {
  State& s = *state_;
  const Index index = s.find(loss);
  s.compute(index);
  const Tensor& value = s.values[index].tensor;
  if (s.mode != Mode::train) fail(ExitCode::internal, "backward: only in training");
  if (s.backward_ran) fail(ExitCode::internal, "backward ran already in this micro-batch; it runs once");
  if (value.elements() != 1 || (value.dtype != Dtype::f64 && value.dtype != Dtype::f32)) {
    fail(ExitCode::internal, "backward: the loss must be one f64 or f32, it is {} {}", name_of(value.dtype),
         value.shape.text());
  }
  if (!(n > 0) || !std::isfinite(n)) fail(ExitCode::internal, "backward: n is {}, it must be above 0", n);
  if (!s.root(index).needs_gradient || s.root(index).is_parameter) {
    fail(ExitCode::internal, "backward: the loss depends on no parameter, so there is no gradient");
  }
  s.backward_ran = true;
  s.workspace.reset();
  s.reach(index);
  s.seed(index, n);
  for (auto node = static_cast<Index>(s.nodes.size()); node-- > 0;) {
    if (!s.nodes[node].reached) continue;
    s.backward_node(node);
    s.finish(node, ready);
  }
}

}  // namespace trireme::autograd
