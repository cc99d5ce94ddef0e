// The tape's handles, leaves and marks, and how a micro-batch begins and ends.
#include "core/autograd/tape.h"

#include <utility>

#include "core/autograd/state.h"
#include "core/base/error.h"

namespace trireme::autograd {

Tape::State::State(const ops::Backend& with, std::shared_ptr<device::Device> on)
    : backend(with),
      device(std::move(on)),
      relu_op(ops::Registry::get().find("relu", 1)),
      memory(device),
      workspace(device, std::size_t{64} << 10) {}

Index Tape::State::add_value(Tensor tensor, bool needs_gradient) {
  if (values.size() >> index_bits != 0) {
    fail(ExitCode::internal, "a micro-batch has more than {} tensors", std::size_t{1} << index_bits);
  }
  const auto index = static_cast<Index>(values.size());
  Value& value = values.emplace_back();
  value.tensor = tensor;
  value.stamp = generation;
  value.root = index;
  value.needs_gradient = needs_gradient;
  return index;
}

Index Tape::State::find(Handle handle) const {
  const auto index = static_cast<Index>(handle & ((Handle{1} << index_bits) - 1));
  const std::uint64_t stamp = handle >> index_bits;
  if (index < values.size() && values[index].stamp == stamp) return index;
  if (handle == 0) fail(ExitCode::internal, "an empty tensor (handle 0) was used");
  if (stamp >= first_generation && stamp <= generation) {
    fail(ExitCode::internal, "stale tensor: it was given back (by rewind, or when its custom function ended)");
  }
  if (stamp == 0 || stamp > generation) {
    fail(ExitCode::internal, "unknown tensor: handle {:#x} was never given out", handle);
  }
  fail(ExitCode::internal,
       "stale tensor: it belongs to an earlier micro-batch (generation {}, now {}). A tensor is valid until its "
       "micro-batch ends; a model keeps nothing from step to step",
       stamp, generation);
}

void Tape::State::truncate_values(std::size_t count) {
  if (values.size() == count) return;
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(count), values.end());
  ++generation;
}

Tape::Tape(const ops::Backend& backend, std::shared_ptr<device::Device> device)
    : state_(std::make_unique<State>(backend, std::move(device))) {
  state_->tape = this;
}

Tape::~Tape() = default;

void Tape::begin(Mode mode, const device::StepBlock* block, device::Stream stream) {
  reset();
  State& s = *state_;
  s.mode = mode;
  s.block = block;
  s.stream = std::move(stream);
  s.ordinal = mode == Mode::train ? 0 : std::uint32_t{1} << 31;
}

void Tape::reset() {
  State& s = *state_;
  s.values.clear();
  s.nodes.clear();
  s.saved.clear();
  s.marks.clear();
  s.pool.clear();
  s.memory.reset();
  s.workspace.reset();
  s.held_back = none;
  s.inside_custom = s.backward_ran = false;
  s.first_generation = ++s.generation;
}

Handle Tape::leaf(const ops::Tensor& value) { return state_->handle(state_->add_value(value, false)); }

Handle Tape::parameter(const ops::Tensor& value, const ops::Tensor& gradient, Range range) {
  State& s = *state_;
  const Index index = s.add_value(value, s.mode == Mode::train && gradient.data != nullptr);
  s.values[index].is_parameter = true;
  s.values[index].gradient = gradient;
  s.values[index].range = range;
  return s.handle(index);
}

Handle Tape::allocate(const Shape& shape, Dtype dtype) {
  State& s = *state_;
  s.flush();
  return s.handle(s.add_value(s.memory.allocate(shape, dtype), false));
}

void* Tape::workspace(std::size_t bytes) { return state_->workspace.allocate(bytes); }

const ops::Tensor& Tape::value(Handle handle) {
  State& s = *state_;
  const Index index = s.find(handle);
  s.compute(index);
  return s.values[index].tensor;
}

ops::Signature::Entry Tape::signature(Handle handle) const {
  const Tensor& tensor = state_->values[state_->find(handle)].tensor;
  return {tensor.shape, tensor.dtype};
}

bool Tape::has_gradient_path(Handle handle) const { return state_->root(state_->find(handle)).needs_gradient; }

std::uint32_t Tape::take_ordinal() { return state_->ordinal++; }

std::uint64_t Tape::mark() {
  State& s = *state_;
  if (s.mode != Mode::predict) {
    fail(ExitCode::internal, "mark: only in predict; training and evaluation keep a micro-batch's tensors to its end");
  }
  s.flush();
  s.marks.push_back({s.values.size(), s.nodes.size(), s.saved.size(), s.memory.mark()});
  return s.marks.size();
}

void Tape::rewind(std::uint64_t mark) {
  State& s = *state_;
  if (mark == 0 || mark > s.marks.size()) {
    fail(ExitCode::internal, "rewind: mark {} is not one of the {} that are set", mark, s.marks.size());
  }
  s.marks.resize(mark);
  const State::Mark& to = s.marks.back();
  s.held_back = none;  // made after the mark, which computes what is held back
  s.truncate_values(to.values);
  s.nodes.erase(s.nodes.begin() + static_cast<std::ptrdiff_t>(to.nodes), s.nodes.end());
  s.saved.erase(s.saved.begin() + static_cast<std::ptrdiff_t>(to.saved), s.saved.end());
  s.memory.rewind(to.memory);
}

std::string_view Tape::missing_op() const { return state_->missing; }

std::size_t Tape::peak_bytes() const { return state_->memory.peak_bytes() + state_->workspace.peak_bytes(); }

}  // namespace trireme::autograd
