// conv2d, channels-last: x (B, H, W, in), weight (out, kh, kw, in), bias (out) or none → y (B, H', W', out),
// H' = (H + 2·padding − kh) ÷ stride + 1. Attribute relu: y = max(y, 0).
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace conv2d {

constexpr std::array<std::string_view, 3> names{"x", "weight", "bias"};

struct Extents {
  std::int64_t batch, height, width, in, out, kh, kw, sh, sw, ph, pw, y_height, y_width;
};

Extents extents(const Shape& x, const Shape& weight, const Attributes& attributes) {
  const auto stride = attributes.integers("stride"), padding = attributes.integers("padding");
  Extents e{x[0],      x[1],      x[2],       x[3],       weight[0], weight[1], weight[2],
            stride[0], stride[1], padding[0], padding[1], 0,         0};
  e.y_height = (e.height + 2 * e.ph - e.kh) / e.sh + 1;
  e.y_width = (e.width + 2 * e.pw - e.kw) / e.sw + 1;
  return e;
}

void infer(Inference& inference) {
  const Rule rule(inference, "conv2d", names, 2);
  rule.type(0, {Dtype::f32});
  rule.type(1, {Dtype::f32});
  const Shape &x = rule.shape(0), &weight = rule.shape(1);
  rule.require(x.rank() == 4, 0, "it must be (batch, height, width, channels)");
  rule.require(weight.rank() == 4, 1, "it must be (out, kernel height, kernel width, in)");
  rule.require(weight[3] == x[3], 1, "its last extent must be the channels of x");
  if (rule.given(2)) {
    rule.type(2, {Dtype::f32});
    rule.require(rule.shape(2) == Shape{weight[0]}, 2, "it must be (out), out being the weight's first extent");
  }
  const auto stride = inference.attributes.integers("stride"), padding = inference.attributes.integers("padding");
  rule.attribute(stride[0] > 0 && stride[1] > 0, "stride", "must be two numbers above 0");
  rule.attribute(padding[0] >= 0 && padding[1] >= 0 && padding[0] < weight[1] && padding[1] < weight[2], "padding",
                 "must be two numbers from 0 to below the kernel's extents");
  const Extents e = extents(x, weight, inference.attributes);
  rule.require(e.height + 2 * e.ph >= e.kh && e.width + 2 * e.pw >= e.kw, 1,
               "its kernel must not exceed the padded picture");
  inference.out.add(Shape{e.batch, e.y_height, e.y_width, e.out}, Dtype::f32);
}

void reference(Reference& r) {
  const auto &x = r.in[0], &weight = r.in[1];
  const Extents e = extents(x.shape, weight.shape, r.attributes);
  const std::size_t channels = index(e.in);
  RefTensor y = zeros(Shape{e.batch, e.y_height, e.y_width, e.out});
  std::size_t at = 0;
  for (std::int64_t b = 0; b < e.batch; ++b) {
    for (std::int64_t i = 0; i < e.y_height; ++i) {
      for (std::int64_t j = 0; j < e.y_width; ++j) {
        for (std::int64_t o = 0; o < e.out; ++o, ++at) {
          double sum = r.in.size() > 2 ? r.in[2].values[index(o)] : 0;
          for (std::int64_t u = 0; u < e.kh; ++u) {
            for (std::int64_t v = 0; v < e.kw; ++v) {
              const std::int64_t row = i * e.sh + u - e.ph, column = j * e.sw + v - e.pw;
              if (row < 0 || row >= e.height || column < 0 || column >= e.width) continue;
              const double* from = x.values.data() + index((b * e.height + row) * e.width + column) * channels;
              const double* by = weight.values.data() + index((o * e.kh + u) * e.kw + v) * channels;
              for (std::size_t c = 0; c < channels; ++c) sum += from[c] * by[c];
            }
          }
          y.values[at] = r.attributes.flag("relu") ? relu(sum) : sum;
        }
      }
    }
  }
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  return {
      {"plain", {{{2, 5, 6, 3}}, {{4, 3, 3, 3}}}, {}},
      {"bias_relu_same", {{{2, 7, 7, 8}}, {{8, 3, 3, 8}}, {{8}}}, {{"relu", {1}}, {"padding", {1, 1}}}},
      {"one_channel", {{{2, 9, 9, 1}}, {{16, 3, 3, 1}}, {{16}}}, {{"padding", {1, 1}}}},
      {"three_channels", {{{2, 8, 8, 3}}, {{16, 5, 5, 3}}, {{16}}}, {{"padding", {2, 2}}, {"relu", {1}}}},
      {"stride", {{{2, 8, 8, 16}}, {{32, 3, 3, 16}}}, {{"stride", {2, 2}}, {"padding", {1, 1}}}},
      {"uneven", {{{1, 9, 6, 2}}, {{3, 2, 3, 2}}, {{3}}}, {{"stride", {2, 1}}, {"padding", {0, 2}}}},
      {"pointwise", {{{2, 4, 4, 16}}, {{8, 1, 1, 16}}, {{8}}}, {}},
      {"pointwise_stride", {{{2, 6, 6, 8}}, {{16, 1, 1, 8}}}, {{"stride", {2, 2}}}},
      {"one_pixel", {{{3, 1, 1, 5}}, {{7, 1, 1, 5}}, {{7}}}, {{"relu", {1}}}},
      {"whole_picture", {{{3, 4, 4, 6}}, {{5, 4, 4, 6}}, {{5}}}, {}},
      {"blocks", {{{4, 8, 8, 32}}, {{32, 3, 3, 32}}, {{32}}}, {{"padding", {1, 1}}, {"relu", {1}}}},
      {"evaluate", {{{2, 6, 6, 8}}, {{8, 3, 3, 8}}, {{8}}}, {{"padding", {1, 1}}, {"relu", {1}}}, Mode::evaluate},
  };
}

}  // namespace conv2d
}  // namespace

Op conv2d_op() {
  Op op{.name = "conv2d",
        .inputs = 3,
        .optional = 1,
        .attributes = {},
        .infer = conv2d::infer,
        .reference = conv2d::reference,
        .cases = conv2d::cases};
  op.attributes.declare({.name = "stride", .integers = {1, 1}, .list = true});
  op.attributes.declare({.name = "padding", .list = true});
  op.attributes.declare({.name = "relu"});
  op.joins_relu = true;
  return op;
}

}  // namespace trireme::ops
