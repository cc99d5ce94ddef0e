// layers.h: ops with parameters of their own. Members of a model, made in its constructor:
//
//   Net(Config&) : conv_(*this, "conv", 1, 32, {.padding = 1, .bias = false}), norm_(*this, "norm", 32) {}
//   Tensor h = relu(norm_(conv_(x)));      // x (B, H, W, 1) → (B, H, W, 32); norm and relu run as one
//
// Initial values are those of PyTorch's layers, so that curves compare: torch/nn/modules/linear.py and conv.py call
// kaiming_uniform_(a = √5), that is uniform in ±1 ÷ √fan_in, and draw biases from the same interval.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base.h"

namespace trireme {
inline namespace sdk {
namespace detail {

inline Init fan_in(std::int64_t inputs) {
  if (inputs < 1) throw Error("a layer needs at least one input");
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return Init::uniform(-bound, bound);
}

}  // namespace detail

// y = x Wᵀ + b; x (…, in), W (out, in), b (out) → (…, out).
class Linear {
 public:
  Linear(Declarations& model, std::string_view name, std::int64_t in, std::int64_t out, bool bias = true)
      : out_(out), biased_(bias) {
    weight_ = model.parameter(std::string(name) + ".weight", {out, in}, detail::fan_in(in));
    if (bias) bias_ = model.parameter(std::string(name) + ".bias", {out}, detail::fan_in(in), false);
  }
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    detail::Context& c = x.context();
    const trireme_tensor* values = c.call().parameters;
    return detail::apply<1>("linear", {x, {c, values[weight_]}, {c, biased_ ? values[bias_] : 0}})[0];
  }
  [[nodiscard]] std::int64_t out() const { return out_; }

 private:
  std::int64_t out_;
  bool biased_;
  std::size_t weight_ = 0, bias_ = 0;
};

struct ConvOptions {
  std::int64_t kernel = 3, stride = 1, padding = 0;
  bool bias = true;
};

// x (B, H, W, in), weight (out, kernel, kernel, in) → (B, H', W', out), H' = (H + 2·padding − kernel) ÷ stride + 1.
class Conv2d {
 public:
  Conv2d(Declarations& model, std::string_view name, std::int64_t in, std::int64_t out, ConvOptions options = {})
      : out_(out), options_(options) {
    const std::int64_t k = options.kernel;
    const Init init = detail::fan_in(in * k * k);
    weight_ = model.parameter(std::string(name) + ".weight", {out, k, k, in}, init);
    if (options.bias) bias_ = model.parameter(std::string(name) + ".bias", {out}, init, false);
  }
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    detail::Context& c = x.context();
    const trireme_tensor* values = c.call().parameters;
    const std::array<std::int64_t, 2> stride{options_.stride, options_.stride};
    const std::array<std::int64_t, 2> padding{options_.padding, options_.padding};
    return detail::apply<1>("conv2d", {x, {c, values[weight_]}, {c, options_.bias ? values[bias_] : 0}},
                            {detail::integers("stride", stride), detail::integers("padding", padding)})[0];
  }
  [[nodiscard]] std::int64_t out() const { return out_; }

 private:
  std::int64_t out_;
  ConvOptions options_;
  std::size_t weight_ = 0, bias_ = 0;
};

struct NormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // of the new value in the running statistics
};

// Batch norm over all but the last extent: training normalises by the micro-batch's statistics and moves the running
// ones, which evaluation uses.
class BatchNorm {
 public:
  BatchNorm(Declarations& model, std::string_view name, std::int64_t channels, NormOptions options = {})
      : options_(options) {
    const std::string prefix(name);
    scale_ = model.parameter(prefix + ".scale", {channels}, Init::constant(1), false);
    shift_ = model.parameter(prefix + ".shift", {channels}, Init::zeros(), false);
    mean_ = model.buffer(prefix + ".mean", {channels}, 0);
    variance_ = model.buffer(prefix + ".variance", {channels}, 1);
  }
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    detail::Context& c = x.context();
    const trireme_call& call = c.call();
    std::array<Tensor, 3> to{};  // the op writes the new statistics straight into the new buffers
    if (call.new_buffers != nullptr) {
      to[1] = {c, call.new_buffers[mean_]};
      to[2] = {c, call.new_buffers[variance_]};
    }
    return detail::apply<3>(
        "batch_norm",
        {x,
         {c, call.parameters[scale_]},
         {c, call.parameters[shift_]},
         {c, call.buffers[mean_]},
         {c, call.buffers[variance_]}},
        {detail::number("epsilon", options_.epsilon), detail::number("momentum", options_.momentum)}, to)[0];
  }

 private:
  NormOptions options_;
  std::size_t scale_ = 0, shift_ = 0, mean_ = 0, variance_ = 0;
};

// The function dropout with its probability kept.
class Dropout {
 public:
  explicit Dropout(double p) : p_(p) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return p_ > 0 ? dropout(x, p_) : x; }

 private:
  double p_;
};

}  // namespace sdk
}  // namespace trireme
