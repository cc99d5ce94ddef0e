// What a tape holds: values, nodes, memory of one micro-batch. Seen by the sources of this folder alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/autograd/gradient_pool.h"
#include "core/autograd/tape.h"

namespace trireme::autograd {

using ops::Tensor;
using Index = std::uint32_t;  // of a value or a node
inline constexpr Index none = ~Index{0};

// A tensor behind a handle. `root` is the value whose memory and gradient it shares (reshape), else itself;
// everything below `root` is asked of the root alone.
struct Value {
  Tensor tensor;            // data null: not computed yet (held back or absorbed)
  std::uint64_t stamp = 0;  // generation that made it; part of its handle
  Index root = none;
  Index absorbed = none;  // node that went on with the relu without writing this value
  bool needs_gradient = false;
  bool is_parameter = false;
  Range range{};    // parameter: where in the arena
  Tensor gradient;  // parameter: given at once; else taken from the pool in backward
  // In backward alone.
  bool reached = false;       // the loss depends on it
  bool has_gradient = false;  // something was written to `gradient`
  std::uint32_t uses = 0;     // contributions still to come
};

struct Node {
  std::uint32_t op = Tape::custom_op;
  std::uint32_t ordinal = 0;
  std::uint32_t gives = 0;  // bit i: gradients flow through output i
  bool reached = false;
  std::size_t in_count = 0, out_count = 0, saved_begin = 0, saved_count = 0;
  std::array<Index, ops::max_tensors> in{}, out{};  // in: `none` for an absent optional input
  ops::Attributes attributes;
  std::shared_ptr<Custom> custom;
};

struct Tape::State {
  State(const ops::Backend& with, std::shared_ptr<device::Device> on);

  // Values.
  Index add_value(Tensor tensor, bool needs_gradient);  // by value: it may be one of `values`
  [[nodiscard]] Handle handle(Index value) const { return values[value].stamp << index_bits | value; }
  [[nodiscard]] Index find(Handle handle) const;  // throws for a stale or unknown one
  [[nodiscard]] Value& root(Index value) { return values[values[value].root]; }
  [[nodiscard]] Index destination(Handle handle, std::string_view op);  // one that an op may write to
  void truncate_values(std::size_t count);                              // the handles beyond become stale

  // Ops. `infer` makes the node's saved tensors and its out values where those are `none`.
  void infer(Node& node);
  void run(const Node& node);
  [[noreturn]] void miss(const Node& node, std::string_view which);
  void flush();                   // computes the op that is held back
  void compute(Index value);      // sees to it that the value has data
  void materialise(Index value);  // an absorbed value: the op once more, without relu
  bool join_relu(std::uint32_t op, std::span<const Handle> in, std::span<Handle> out);
  [[nodiscard]] bool wants_gradient(const Node& node, std::size_t input) const;

  // Backward.
  void reach(Index loss);
  void seed(Index loss, double n);
  // Where a contribution to a value's gradient goes. No data: there is one already, add to it.
  Tensor gradient_destination(Index value);
  void add(const Tensor& into, const Tensor& addend);
  void backward_node(Index index);
  void backward_custom(Index index, std::span<const Tensor> out_gradients, std::span<const Tensor> in_gradients);
  void finish(Index index, const Ready& ready);  // announces parameters, gives back the outputs' gradients

  static constexpr int index_bits = 24;  // 16 M values a micro-batch; the rest counts generations

  const ops::Backend& backend;
  std::shared_ptr<device::Device> device;
  Tape* tape = nullptr;  // for on_op
  void tell(OpCall call, bool ended) const;
  const std::uint32_t relu_op;

  Mode mode = Mode::predict;
  const device::StepBlock* block = nullptr;
  device::Stream stream;
  std::uint32_t ordinal = 0;
  bool inside_custom = false;  // ops are run at once and not recorded
  bool backward_ran = false;
  Index held_back = none;
  std::string_view missing;
  std::uint64_t generation = 1, first_generation = 1;

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Tensor> saved;
  struct Mark {
    std::size_t values, nodes, saved;
    tensor::Arena::Mark memory;
  };
  std::vector<Mark> marks;
  tensor::Arena memory, workspace;
  GradientPool pool;
};

// While the body of a custom function runs.
class CustomScope {
 public:
  explicit CustomScope(Tape::State& state)
      : state_(state), outer_(state.inside_custom), workspace_(state.workspace.mark()) {
    state_.inside_custom = true;
  }
  ~CustomScope() {
    state_.inside_custom = outer_;
    state_.workspace.rewind(workspace_);
  }
  CustomScope(const CustomScope&) = delete;
  CustomScope& operator=(const CustomScope&) = delete;

 private:
  Tape::State& state_;
  bool outer_;
  tensor::Arena::Mark workspace_;
};

}  // namespace trireme::autograd
