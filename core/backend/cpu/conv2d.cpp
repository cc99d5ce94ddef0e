// conv2d by oneDNN on channels-last arrays; weights are brought to oneDNN's layout in each call (they are small).
// y and all gradients are written, never added to.
#include "core/backend/cpu/columns.h"
#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn.h"
#include "core/base/error.h"

#include <optional>

namespace trireme::backend {
namespace {
namespace conv2d {

struct Problem {
  Dims x, weight, y, stride, padding;  // oneDNN's order: (B, C, H, W), (out, in, kh, kw)
  std::string text;

  [[nodiscard]] Desc x_desc() const { return {x, f32, Tag::nhwc}; }
  [[nodiscard]] Desc y_desc() const { return {y, f32, Tag::nhwc}; }
  [[nodiscard]] Desc weight_desc() const { return {weight, f32, Tag::ohwi}; }
  [[nodiscard]] Desc any_weight_desc() const { return {weight, f32, Tag::any}; }
  [[nodiscard]] Desc bias_desc() const { return {{weight[0]}, f32, Tag::a}; }
};

Problem problem(const Tensor& x, const Tensor& weight, const Tensor& y, const ops::Attributes& attributes) {
  const auto stride = attributes.integers("stride"), padding = attributes.integers("padding");
  return {{x.shape[0], x.shape[3], x.shape[1], x.shape[2]},
          {weight.shape[0], weight.shape[3], weight.shape[1], weight.shape[2]},
          {y.shape[0], y.shape[3], y.shape[1], y.shape[2]},
          {stride[0], stride[1]},
          {padding[0], padding[1]},
          fmt::format("conv2d: x {}, weight {}, stride ({}, {}), padding ({}, {})", x.shape.text(), weight.shape.text(),
                      stride[0], stride[1], padding[0], padding[1])};
}

ShapeKey key_of(const Tensor& x, const Tensor& weight, const ops::Attributes& attributes, bool bias) {
  const auto stride = attributes.integers("stride"), padding = attributes.integers("padding");
  return {x.shape[0],
          x.shape[1],
          x.shape[2],
          x.shape[3],
          weight.shape[0],
          weight.shape[1],
          weight.shape[2],
          weight.shape[3],
          stride[0],
          stride[1],
          padding[0],
          padding[1],
          bias,
          onednn_threads()};
}

// A convolution and, where oneDNN wants the weights in another layout, the change to or from it.
struct Convolution {
  Primitive main;
  std::optional<Primitive> reorder;
  std::size_t weight_bytes = 0;
};

dnnl::convolution_forward::primitive_desc forward_descriptor(const Problem& p, bool bias) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  auto& engine = onednn_engine();
  dnnl::convolution_forward::primitive_desc descriptor =
      bias ? dnnl::convolution_forward::primitive_desc(engine, kind, algorithm, p.x_desc(), p.any_weight_desc(),
                                                       p.bias_desc(), p.y_desc(), p.stride, p.padding, p.padding,
                                                       user_scratchpad())
           : dnnl::convolution_forward::primitive_desc(engine, kind, algorithm, p.x_desc(), p.any_weight_desc(),
                                                       p.y_desc(), p.stride, p.padding, p.padding, user_scratchpad());
  refuse_reference(descriptor, p.text + " (forward)");
  return descriptor;
}

Convolution make_forward(const Problem& p, bool bias) {
  const auto descriptor = forward_descriptor(p, bias);
  const dnnl::convolution_forward convolution(descriptor);
  const Desc weight = descriptor.weights_desc();
  Convolution made{
      bias ? Primitive(convolution, descriptor.scratchpad_desc(),
                       {{DNNL_ARG_SRC, p.x_desc()},
                        {DNNL_ARG_WEIGHTS, weight},
                        {DNNL_ARG_DST, p.y_desc()},
                        {DNNL_ARG_BIAS, p.bias_desc()}})
           : Primitive(convolution, descriptor.scratchpad_desc(),
                       {{DNNL_ARG_SRC, p.x_desc()}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, p.y_desc()}}),
      std::nullopt, weight.get_size()};
  if (weight != p.weight_desc()) made.reorder = make_reorder(p.weight_desc(), weight);
  return made;
}

Convolution make_backward_data(const Problem& p) {
  const dnnl::convolution_backward_data::primitive_desc descriptor(
      onednn_engine(), dnnl::algorithm::convolution_direct, p.x_desc(), p.any_weight_desc(), p.y_desc(), p.stride,
      p.padding, p.padding, forward_descriptor(p, false), user_scratchpad());
  refuse_reference(descriptor, p.text + " (gradient of x)");
  const Desc weight = descriptor.weights_desc();
  Convolution made{
      Primitive(dnnl::convolution_backward_data(descriptor), descriptor.scratchpad_desc(),
                {{DNNL_ARG_DIFF_DST, p.y_desc()}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, p.x_desc()}}),
      std::nullopt, weight.get_size()};
  if (weight != p.weight_desc()) made.reorder = make_reorder(p.weight_desc(), weight);
  return made;
}

Convolution make_backward_weight(const Problem& p) {
  const dnnl::convolution_backward_weights::primitive_desc descriptor(
      onednn_engine(), dnnl::algorithm::convolution_direct, p.x_desc(), p.any_weight_desc(), p.y_desc(), p.stride,
      p.padding, p.padding, forward_descriptor(p, false), user_scratchpad());
  refuse_reference(descriptor, p.text + " (gradient of weight)");
  const Desc weight = descriptor.diff_weights_desc();
  Convolution made{
      Primitive(dnnl::convolution_backward_weights(descriptor), descriptor.scratchpad_desc(),
                {{DNNL_ARG_SRC, p.x_desc()}, {DNNL_ARG_DIFF_DST, p.y_desc()}, {DNNL_ARG_DIFF_WEIGHTS, weight}}),
      std::nullopt, weight.get_size()};
  if (weight != p.weight_desc()) made.reorder = make_reorder(weight, p.weight_desc());
  return made;
}

// The weights as `convolution` wants them.
const void* laid_out(Convolution& convolution, const Tensor& weight, tensor::Arena& scratch) {
  if (!convolution.reorder) return weight.data;
  void* memory = scratch.allocate(convolution.weight_bytes);
  convolution.reorder->run({weight.data, memory}, scratch);
  return memory;
}

void forward(const Forward& f) {
  const Tensor &x = f.in[0], &weight = f.in[1], &y = f.out[0];
  const Tensor bias = tensor_or_none(f.in, 2);
  if (count(y) == 0) return;
  thread_local ShapeCache<Convolution> cache;
  Convolution& convolution = cache.get(key_of(x, weight, f.attributes, static_cast<bool>(bias)), [&] {
    return make_forward(problem(x, weight, y, f.attributes), static_cast<bool>(bias));
  });
  const void* weights = laid_out(convolution, weight, f.scratch);
  if (bias) {
    convolution.main.run({x.data, weights, y.data, bias.data}, f.scratch);
  } else {
    convolution.main.run({x.data, weights, y.data}, f.scratch);
  }
  if (f.attributes.flag("relu")) relu_in_place(y.span<float>());
}

void backward(const Backward& b) {
  const Tensor &x = b.in[0], &weight = b.in[1], &y = b.out[0], &dy = b.out_grads[0];
  const Tensor dx = tensor_or_none(b.in_grads, 0), dweight = tensor_or_none(b.in_grads, 1);
  const Tensor dbias = tensor_or_none(b.in_grads, 2);
  const std::size_t rows = rows_of(y), out = columns_of(y);
  const float* dz = dy.as<float>();  // (B, H', W', out), the gradient before the relu
  if (b.attributes.flag("relu")) {
    const Tensor masked = b.scratch.allocate(y.shape, Dtype::f32);
    relu_gradient(dz, y.as<float>(), masked.as<float>(), rows, out, dbias.as<float>(), b.scratch);
    dz = masked.as<float>();
  } else if (dbias) {
    column_sums(dz, rows, out, dbias.as<float>(), b.scratch);
  }
  const ShapeKey key = key_of(x, weight, b.attributes, false);
  if (dweight) {
    thread_local ShapeCache<Convolution> cache;
    Convolution& convolution =
        cache.get(key, [&] { return make_backward_weight(problem(x, weight, y, b.attributes)); });
    void* into = convolution.reorder ? b.scratch.allocate(convolution.weight_bytes) : dweight.data;
    convolution.main.run({x.data, dz, into}, b.scratch);
    if (convolution.reorder) convolution.reorder->run({into, dweight.data}, b.scratch);
  }
  if (dx) {
    thread_local ShapeCache<Convolution> cache;
    Convolution& convolution = cache.get(key, [&] { return make_backward_data(problem(x, weight, y, b.attributes)); });
    convolution.main.run({dz, laid_out(convolution, weight, b.scratch), dx.data}, b.scratch);
  }
}

}  // namespace conv2d
}  // namespace

OpKernels conv2d_kernels() { return {conv2d::forward, conv2d::backward}; }

}  // namespace trireme::backend
