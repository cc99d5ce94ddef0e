// avg_pool2d, channels-last, no padding: x (B, H, W, C) → y (B, H', W', C), H' = (H − window) ÷ stride + 1: the mean of
// each window. Stride 0: as the window. A window of (H, W) is global average pooling.
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace avg_pool2d {

constexpr std::array<std::string_view, 1> names{"x"};

struct Extents {
  std::int64_t wh, ww, sh, sw;
};

Extents extents(const Attributes& attributes) {
  const auto window = attributes.integers("window"), stride = attributes.integers("stride");
  return {window[0], window[1], stride[0] == 0 ? window[0] : stride[0], stride[1] == 0 ? window[1] : stride[1]};
}

void infer(Inference& inference) {
  const Rule rule(inference, "avg_pool2d", names, 1);
  rule.type(0, {Dtype::f32});
  const Shape& x = rule.shape(0);
  rule.require(x.rank() == 4, 0, "it must be (batch, height, width, channels)");
  const Extents e = extents(inference.attributes);
  rule.attribute(e.wh > 0 && e.ww > 0, "window", "must be two numbers above 0");
  rule.attribute(e.sh > 0 && e.sw > 0, "stride", "must be two numbers from 0 (0: as the window)");
  rule.require(x[1] >= e.wh && x[2] >= e.ww, 0, "the window must not exceed the picture");
  const Shape y{x[0], (x[1] - e.wh) / e.sh + 1, (x[2] - e.ww) / e.sw + 1, x[3]};
  inference.out.add(y, Dtype::f32);
}

void reference(Reference& r) {
  const auto& x = r.in[0];
  const Extents e = extents(r.attributes);
  const Shape shape{x.shape[0], (x.shape[1] - e.wh) / e.sh + 1, (x.shape[2] - e.ww) / e.sw + 1, x.shape[3]};
  RefTensor y = zeros(shape);
  std::size_t at = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t i = 0; i < shape[1]; ++i) {
      for (std::int64_t j = 0; j < shape[2]; ++j) {
        for (std::int64_t c = 0; c < shape[3]; ++c, ++at) {
          double sum = 0;
          for (std::int64_t k = 0; k < e.wh * e.ww; ++k) {
            const std::int64_t row = i * e.sh + k / e.ww, column = j * e.sw + k % e.ww;
            sum += x.values[index(((b * x.shape[1] + row) * x.shape[2] + column) * x.shape[3] + c)];
          }
          y.values[at] = sum / static_cast<double>(e.wh * e.ww);
        }
      }
    }
  }
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  const auto image = [](Shape shape) {
    return Case::Input{
        .shape = shape,
    };
  };
  return {
      {"two", {image({2, 6, 4, 8})}, {{"window", {2, 2}}}},
      {"cropped", {image({2, 7, 5, 3})}, {{"window", {2, 2}}}},
      {"overlapping", {image({2, 7, 7, 5})}, {{"window", {3, 3}}, {"stride", {2, 2}}}},
      {"dense", {image({1, 5, 6, 4})}, {{"window", {2, 3}}, {"stride", {1, 1}}}},
      {"gaps", {image({1, 8, 9, 2})}, {{"window", {2, 2}}, {"stride", {3, 4}}}},
      {"whole", {image({2, 4, 5, 17})}, {{"window", {4, 5}}}},
      {"channels", {image({2, 4, 4, 40})}, {{"window", {2, 2}}}},
      {"evaluate", {image({2, 6, 4, 8})}, {{"window", {2, 2}}}, Mode::evaluate},
  };
}

}  // namespace avg_pool2d
}  // namespace

Op avg_pool2d_op() {
  Op op{.name = "avg_pool2d",
        .attributes = {},
        .infer = avg_pool2d::infer,
        .reference = avg_pool2d::reference,
        .cases = avg_pool2d::cases};
  op.attributes.declare({.name = "window", .integers = {2, 2}, .list = true});
  op.attributes.declare({.name = "stride", .list = true});
  return op;
}

}  // namespace trireme::ops
