// What an op is. One file an op in this folder: shape rule, f64 reference, gradient wishes and test cases; its
// kernels stand under the same file name in each backend. A new op adds its file, its line in registry.cpp and
// its kernels; nothing else changes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mode.h"
#include "core/base/philox.h"
#include "core/device/step_block.h"
#include "core/device/stream.h"
#include "core/tensor/arena.h"
#include "core/tensor/tensor.h"

namespace trireme::ops {

using tensor::Tensor;

inline constexpr std::size_t max_tensors = 8;  // inputs, outputs or saved tensors of one op

// Attributes of one application: fixed size, copied by value.
struct Attribute {
  std::string_view name;                   // from the op's declaration: lives for ever
  double number = 0;                       // integers too (exact below 2^53)
  std::array<std::int64_t, 8> integers{};  // pairs such as stride (h, w); a shape, ended by 0
  bool list = false;                       // takes integers, not a number
};
class Attributes {
 public:
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] std::span<const std::int64_t, 8> integers(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const { return integer(name) != 0; }
  // Sets a declared attribute; throws Error(internal) naming op and the attributes it has.
  void set(std::string_view name, double number);
  void set(std::string_view name, std::span<const std::int64_t> integers);
  [[nodiscard]] std::span<const Attribute> all() const { return {items_.data(), count_}; }
  void declare(Attribute item);                    // once, by the op
  void name_op(std::string_view op) { op_ = op; }  // once, by the registry: for errors

 private:
  [[nodiscard]] std::size_t find(std::string_view name) const;
  std::array<Attribute, 8> items_{};
  std::size_t count_ = 0;
  std::string_view op_;
};

// Shapes and types that the shape rule works on. Fixed capacity, allocates nothing.
struct Signature {
  struct Entry {
    Shape shape;
    Dtype dtype = Dtype::f32;
  };
  std::array<Entry, max_tensors> items{};
  std::size_t count = 0;

  void add(const Shape& shape, Dtype dtype) { items[count++] = {shape, dtype}; }
  [[nodiscard]] const Entry& operator[](std::size_t i) const { return items[i]; }
};

struct Inference {
  const Signature& in;
  const Attributes& attributes;
  Mode mode;
  Signature out;    // filled by the rule
  Signature saved;  // what backward wants besides inputs and outputs: statistics, indices
};

// Everything a forward kernel gets. `saved` tensors are allocated; `scratch` is rewound after the call.
struct Forward {
  std::span<const Tensor> in, out, saved;
  const Attributes& attributes;
  Mode mode;
  std::uint32_t ordinal;           // of this application in the micro-batch; keys randomness
  const device::StepBlock* block;  // device memory
  tensor::Arena& scratch;
  device::Stream& stream;
};
// A backward kernel writes (never adds to) every in_grad that has data; one without data is not wanted.
// out_grads without data: no gradient came (counts as zero).
struct Backward {
  std::span<const Tensor> in, out, saved, out_grads, in_grads;
  const Attributes& attributes;
  std::uint32_t ordinal;
  const device::StepBlock* block;
  tensor::Arena& scratch;
  device::Stream& stream;
};

// f64 reference for tests: dense values, same shapes. Integer inputs come as doubles.
struct RefTensor {
  Shape shape;
  std::vector<double> values;
};
struct Reference {
  std::span<const RefTensor> in;
  const Attributes& attributes;
  Mode mode;
  RandomKey key;               // of this op: dropout's mask must be the kernel's
  std::vector<RefTensor> out;  // filled
};

// One test case: shapes, attributes, how inputs are drawn.
struct Case {
  std::string name;
  struct Input {
    Shape shape;
    Dtype dtype = Dtype::f32;
    double low = -1, high = 1;  // uniform; integers: [low, high)
    bool distinct = false;      // a shuffled ramp: no ties, distance ≥ 10 × the difference step
  };
  std::vector<Input> inputs;
  std::vector<std::pair<std::string, std::vector<double>>> attributes;
  Mode mode = Mode::train;
  double tolerance = 2e-5;  // relative to the largest reference value; say why when raised
};

struct Op {
  std::string_view name;
  std::uint32_t version = 1;
  std::size_t inputs = 1;  // at most; the last `optional` ones may be absent (id 0)
  std::size_t optional = 0;
  Attributes attributes;      // declared, with defaults
  void (*infer)(Inference&);  // throws Error(internal) with op, input, both shapes and types
  void (*reference)(Reference&);
  std::vector<Case> (*cases)();
  bool differentiable = true;
  std::uint32_t wants_gradient = ~0u;  // bit i: input i can have a gradient (labels cannot)
  std::uint32_t gives_gradient = ~0u;  // bit i: gradients flow through output i (new running buffers: not)
  bool joins_relu = false;             // has attribute "relu": a following relu is done in the same pass
  bool aliases_input = false;          // output 0 is input 0's memory under another shape (reshape)
  bool random = false;                 // takes an ordinal's key: always counts an ordinal
};

// All ops by name. Read-only after start; ids are indices.
class Registry {
 public:
  [[nodiscard]] static const Registry& get();
  [[nodiscard]] std::span<const Op> all() const { return ops_; }
  // Throws Error(internal) with the nearest known name, or both versions.
  [[nodiscard]] std::uint32_t find(std::string_view name, std::uint32_t version) const;
  [[nodiscard]] const Op& operator[](std::uint32_t id) const { return ops_[id]; }

 private:
  Registry();
  std::vector<Op> ops_;
};

// A backend: for each op id its kernels (null: this backend lacks the op).
struct OpKernels {
  void (*forward)(const Forward&) = nullptr;
  void (*backward)(const Backward&) = nullptr;
};
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const OpKernels& kernels(std::uint32_t op) const = 0;
  // into += addend, for gradients that meet. f32.
  virtual void accumulate(const Tensor& into, const Tensor& addend, device::Stream& stream) const = 0;
};

}  // namespace trireme::ops
