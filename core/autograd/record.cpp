// Forward: ops and custom functions are checked, run and recorded; one op is held back so that a relu joins it.
#include <algorithm>

#include "core/autograd/state.h"
#include "core/base/error.h"

namespace trireme::autograd {
namespace {

const ops::Op& op_of(std::uint32_t id) {
  const auto& registry = ops::Registry::get();
  if (id >= registry.all().size()) {
    fail(ExitCode::internal, "apply: op id {} was never given out; ids come from op(name, version)", id);
  }
  return registry[id];
}

}  // namespace

bool Tape::State::wants_gradient(const Node& node, std::size_t input) const {
  if (node.in[input] == none || !values[values[node.in[input]].root].needs_gradient) return false;
  return node.op == custom_op || (ops::Registry::get()[node.op].wants_gradient >> input & 1u) != 0;
}

void Tape::State::infer(Node& node) {
  const ops::Op& op = ops::Registry::get()[node.op];
  ops::Signature in;
  bool needs_gradient = false;
  for (std::size_t i = 0; i < node.in_count; ++i) {
    in.add(values[node.in[i]].tensor.shape, values[node.in[i]].tensor.dtype);
    needs_gradient = needs_gradient || wants_gradient(node, i);
  }
  needs_gradient = needs_gradient && op.differentiable && mode == Mode::train && !inside_custom;
  ops::Inference inference{in, node.attributes, mode, {}, {}};
  op.infer(inference);
  if (node.out_count > inference.out.count) {
    fail(ExitCode::internal, "{}: {} outputs wanted, it gives {}", op.name, node.out_count, inference.out.count);
  }
  node.out_count = inference.out.count;
  for (std::size_t i = 0; i < node.out_count; ++i) {
    const auto& [shape, dtype] = inference.out[i];
    const bool gives = needs_gradient && (op.gives_gradient >> i & 1u) != 0 && is_floating(dtype);
    if (node.out[i] == none) {
      node.out[i] = add_value({nullptr, shape, dtype}, gives);
      if (gives) node.gives |= 1u << i;
      continue;
    }
    const Tensor& given = values[node.out[i]].tensor;
    if (given.shape != shape || given.dtype != dtype) {
      fail(ExitCode::internal, "{}: output {} is {} {}, but the tensor given to write to is {} {}", op.name, i,
           name_of(dtype), shape.text(), name_of(given.dtype), given.shape.text());
    }
  }
  node.saved_begin = saved.size();
  node.saved_count = inference.saved.count;
  for (std::size_t i = 0; i < node.saved_count; ++i) {
    saved.push_back({nullptr, inference.saved[i].shape, inference.saved[i].dtype});
  }
}

void Tape::State::miss(const Node& node, std::string_view which) {
  missing = ops::Registry::get()[node.op].name;
  fail(ExitCode::internal, "op '{}' has no {} on {}", missing, which, device->name());
}

void Tape::State::run(const Node& node) {
  const auto& kernels = backend.kernels(node.op);
  if (kernels.forward == nullptr) miss(node, "kernel");
  if (node.gives != 0 && kernels.backward == nullptr) miss(node, "backward kernel");
  std::array<Tensor, ops::max_tensors> in, out;
  for (std::size_t i = 0; i < node.in_count; ++i) in[i] = values[node.in[i]].tensor;
  for (std::size_t i = 0; i < node.out_count; ++i) {
    Tensor& tensor = values[node.out[i]].tensor;
    if (!tensor) tensor = memory.allocate(tensor.shape, tensor.dtype);
    out[i] = tensor;
  }
  for (std::size_t i = 0; i < node.saved_count; ++i) {
    Tensor& tensor = saved[node.saved_begin + i];
    tensor = memory.allocate(tensor.shape, tensor.dtype);
  }
  const ops::Forward call{std::span(in).first(node.in_count),
                          std::span(out).first(node.out_count),
                          std::span<const Tensor>(saved).subspan(node.saved_begin, node.saved_count),
                          node.attributes,
                          mode,
                          node.ordinal,
                          block,
                          memory,
                          stream};
  const OpCall told{.op = node.op, .in = call.in, .out = call.out, .saved = call.saved, .attributes = &node.attributes};
  const auto mark = memory.mark();
  tell(told, false);
  kernels.forward(call);
  tell(told, true);
  memory.rewind(mark);
}

void Tape::State::tell(OpCall call, bool ended) const {
  if (!tape->on_op) return;
  call.ended = ended;
  tape->on_op(call);
}

void Tape::State::flush() {
  if (held_back == none) return;
  const Index index = held_back;
  held_back = none;
  run(nodes[index]);
}

void Tape::State::compute(Index value) {
  flush();
  if (values[value].absorbed != none) materialise(value);
}

void Tape::State::materialise(Index value) {
  Node node = nodes[values[value].absorbed];
  values[value].absorbed = none;
  node.attributes.set("relu", 0.0);
  std::fill(node.out.begin(), node.out.end(), none);
  node.out[0] = value;
  node.out_count = 1;
  infer(node);
  node.gives = values[value].needs_gradient ? 1 : 0;
  nodes.push_back(node);
  run(nodes.back());
}

bool Tape::State::join_relu(std::uint32_t op, std::span<const Handle> in, std::span<Handle> out) {
  if (held_back == none || op != relu_op || in.size() != 1 || out.size() != 1 || out[0] != 0) return false;
  Node& node = nodes[held_back];
  const Index before = node.out[0];
  if (in[0] != handle(before)) return false;
  const Index after = add_value(values[before].tensor, values[before].needs_gradient);
  values[before].absorbed = held_back;
  node.attributes.set("relu", 1.0);
  node.out[0] = after;
  saved.resize(node.saved_begin);  // the fused op may save something else
  infer(node);
  held_back = none;
  run(node);
  out[0] = handle(after);
  return true;
}

void Tape::apply(std::uint32_t op, std::span<const Handle> in, const ops::Attributes& attributes,
                 std::span<Handle> out) {
  State& s = *state_;
  if (out.empty()) fail(ExitCode::internal, "{}: no output wanted; ask for at least one", op_of(op).name);
  if (s.join_relu(op, in, out)) return;
  s.flush();
  const ops::Op& info = op_of(op);
  Node node;
  node.op = op;
  node.attributes = attributes;
  node.in_count = in.size();
  while (node.in_count > 0 && in[node.in_count - 1] == 0) --node.in_count;
  if (node.in_count > info.inputs || node.in_count + info.optional < info.inputs || out.size() > ops::max_tensors) {
    fail(ExitCode::internal, "{}: {} inputs given, {} to {} wanted", info.name, node.in_count,
         info.inputs - info.optional, info.inputs);
  }
  for (std::size_t i = 0; i < node.in_count; ++i) {
    node.in[i] = s.find(in[i]);
    s.compute(node.in[i]);
  }
  node.out.fill(none);
  node.out_count = out.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != 0) node.out[i] = s.destination(out[i], info.name);
  }
  if (info.random) node.ordinal = s.ordinal++;

  if (info.aliases_input && node.out[0] == none) {
    const Index from = node.in[0];
    s.infer(node);
    Value& alias = s.values[node.out[0]];
    alias.tensor.data = s.values[from].tensor.data;
    alias.root = s.values[from].root;
    alias.needs_gradient = s.values[from].needs_gradient;
    out[0] = s.handle(node.out[0]);
    return;
  }
  const bool may_join = info.joins_relu && !s.inside_custom && !attributes.flag("relu") && !out.empty() && out[0] == 0;
  s.infer(node);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = s.handle(node.out[i]);
  if (s.inside_custom) return s.run(node);
  s.nodes.push_back(node);
  if (may_join) {
    s.held_back = static_cast<Index>(s.nodes.size() - 1);
  } else {
    s.run(s.nodes.back());
  }
}

Index Tape::State::destination(Handle handle, std::string_view op) {
  const Index index = find(handle);
  const Value& value = values[index];
  if (value.is_parameter || value.needs_gradient || !value.tensor) {
    fail(ExitCode::internal,
         "{}: the tensor given to write to is a parameter or another op's output; use allocate or a new buffer", op);
  }
  return index;
}

void Tape::custom(const std::shared_ptr<Custom>& body, std::span<const Handle> in,
                  std::span<const ops::Signature::Entry> shapes, std::span<Handle> out) {
  State& s = *state_;
  s.flush();
  if (in.size() > ops::max_tensors || shapes.size() > ops::max_tensors || shapes.size() != out.size()) {
    fail(ExitCode::internal, "custom function: {} inputs and {} outputs; at most {} each are possible", in.size(),
         out.size(), ops::max_tensors);
  }
  Node node;
  node.custom = body;
  node.in_count = in.size();
  node.out_count = out.size();
  bool needs_gradient = false;
  for (std::size_t i = 0; i < in.size(); ++i) {
    node.in[i] = in[i] == 0 ? none : s.find(in[i]);
    if (node.in[i] != none) s.compute(node.in[i]);
    needs_gradient = needs_gradient || s.wants_gradient(node, i);
  }
  needs_gradient = needs_gradient && s.mode == Mode::train && !s.inside_custom;
  std::array<Index, ops::max_tensors> made{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    // Without gradient while forward runs, so that ops may write to it.
    made[i] = node.out[i] = s.add_value(s.memory.allocate(shapes[i].shape, shapes[i].dtype), false);
    if (needs_gradient && is_floating(shapes[i].dtype)) node.gives |= 1u << i;
    out[i] = s.handle(node.out[i]);
  }
  if (!s.inside_custom) s.nodes.push_back(node);
  s.tell({.op = custom_op}, false);
  {
    const CustomScope scope(s);
    body->forward(in, out);
  }
  s.tell({.op = custom_op}, true);
  for (std::size_t i = 0; i < out.size(); ++i) s.values[made[i]].needs_gradient = (node.gives >> i & 1u) != 0;
}

}  // namespace trireme::autograd
