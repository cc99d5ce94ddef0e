// ops.h: what models are made of. Each op runs at once, is recorded, and has its gradient.
//
//   Tensor h = relu(add(x, skip));                             // (B, 64); relu joins the op before it
//   h = dropout(h, 0.5);                                       // does nothing outside of training
//   Loss l = cross_entropy(h, batch["label"], {.ignore_index = 255, .smoothing = 0.1});
//
// Shapes that don't fit end the run with the op's name, both shapes and both types. Images are (B, H, W, C).
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "tensor.h"

namespace trireme {
inline namespace sdk {
namespace detail {

inline trireme_attribute number(std::string_view name, double value) {
  trireme_attribute a{};
  a.name = to_c(name);
  a.kind = TRIREME_ATTR_NUMBER;
  a.number = value;
  return a;
}
inline trireme_attribute integer(std::string_view name, std::int64_t value) {
  trireme_attribute a{};
  a.name = to_c(name);
  a.kind = TRIREME_ATTR_INTEGER;
  a.integer = value;
  return a;
}
// `values` must outlive the call that the attribute is for.
inline trireme_attribute integers(std::string_view name, std::span<const std::int64_t> values) {
  trireme_attribute a{};
  a.name = to_c(name);
  a.kind = TRIREME_ATTR_INTEGERS;
  a.integers = values.data();
  a.integer_count = values.size();
  return a;
}

// Applies an op of the core. `to`, where given, are tensors that outputs are written to (empty ones: made anew).
template <std::size_t Outs>
std::array<Tensor, Outs> apply(std::string_view op, std::initializer_list<Tensor> in,
                               std::initializer_list<trireme_attribute> attributes = {},
                               const std::array<Tensor, Outs>& to = {}) {
  Context& c = in.begin()->context();
  std::array<trireme_tensor, 8> ids{};
  std::array<trireme_tensor, Outs> made{};
  if (in.size() > ids.size()) throw Error("an op has at most 8 inputs");
  std::size_t n = 0;
  for (const Tensor& tensor : in) ids[n++] = tensor.id();
  for (std::size_t i = 0; i < Outs; ++i) made[i] = to[i].id();
  c.check(c.host().apply(c.core(), c.op(op), ids.data(), n, attributes.begin(), attributes.size(), made.data(), Outs));
  std::array<Tensor, Outs> out;
  for (std::size_t i = 0; i < Outs; ++i) out[i] = Tensor(c, made[i]);
  return out;
}

}  // namespace detail

inline Tensor Tensor::flatten(std::int64_t first) const {
  return detail::apply<1>("flatten", {*this}, {detail::integer("first", first)})[0];
}
inline Tensor Tensor::reshape(std::initializer_list<std::int64_t> dims) const {
  return detail::apply<1>("reshape", {*this}, {detail::integers("shape", {dims.begin(), dims.size()})})[0];
}
inline Tensor flatten(const Tensor& x, std::int64_t first = 1) { return x.flatten(first); }
inline Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> dims) { return x.reshape(dims); }

inline Tensor relu(const Tensor& x) { return detail::apply<1>("relu", {x})[0]; }
// Zeroes elements with probability p and scales the rest by 1 ÷ (1 − p); in training alone.
inline Tensor dropout(const Tensor& x, double p) {
  return detail::apply<1>("dropout", {x}, {detail::number("p", p)})[0];
}
// Elementwise. b has a's shape, or is (C), C being a's last extent: the same for every row.
inline Tensor add(const Tensor& a, const Tensor& b) { return detail::apply<1>("add", {a, b})[0]; }
inline Tensor mul(const Tensor& a, const Tensor& b) { return detail::apply<1>("mul", {a, b})[0]; }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }

// (B, H, W, C) → (B, (H − window) ÷ stride + 1, …, C). Stride 0: as the window.
inline Tensor max_pool2d(const Tensor& x, std::int64_t window, std::int64_t stride = 0) {
  const std::array<std::int64_t, 2> windows{window, window}, strides{stride, stride};
  return detail::apply<1>("max_pool2d", {x},
                          {detail::integers("window", windows), detail::integers("stride", strides)})[0];
}
// x · scale + shift in f32, from any integer type, f32 or f64. No gradient: for inputs.
inline Tensor convert(const Tensor& x, double scale = 1, double shift = 0) {
  return detail::apply<1>("convert", {x}, {detail::number("scale", scale), detail::number("shift", shift)})[0];
}
// Of all elements: one f64, as losses and metrics want it.
inline Tensor sum(const Tensor& x) { return detail::apply<1>("sum", {x})[0]; }
inline Tensor mean(const Tensor& x) { return detail::apply<1>("mean", {x})[0]; }

}  // namespace sdk
}  // namespace trireme
