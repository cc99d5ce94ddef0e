// max_pool2d, channels-last, no padding: x (B, H, W, C) → y (B, H', W', C), H' = (H − window) ÷ stride + 1. The first
// of equal largest wins; NaN is larger than all. Stride 0: as the window.
#include <array>
#include <cmath>
#include <limits>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace max_pool2d {

constexpr std::array<std::string_view, 1> names{"x"};

struct Extents {
  std::int64_t wh, ww, sh, sw;
};

Extents extents(const Attributes& attributes) {
  const auto window = attributes.integers("window"), stride = attributes.integers("stride");
  return {window[0], window[1], stride[0] == 0 ? window[0] : stride[0], stride[1] == 0 ? window[1] : stride[1]};
}

void infer(Inference& inference) {
  const Rule rule(inference, "max_pool2d", names, 1);
  rule.type(0, {Dtype::f32});
  const Shape& x = rule.shape(0);
  rule.require(x.rank() == 4, 0, "it must be (batch, height, width, channels)");
  const Extents e = extents(inference.attributes);
  rule.attribute(e.wh > 0 && e.ww > 0 && e.wh <= 256 && e.ww <= 256 && e.wh * e.ww <= 256, "window",
                 "must be two numbers above 0 with a product of at most 256");
  rule.attribute(e.sh > 0 && e.sw > 0, "stride", "must be two numbers from 0 (0: as the window)");
  rule.require(x[1] >= e.wh && x[2] >= e.ww, 0, "the window must not exceed the picture");
  const Shape y{x[0], (x[1] - e.wh) / e.sh + 1, (x[2] - e.ww) / e.sw + 1, x[3]};
  inference.out.add(y, Dtype::f32);
  if (inference.mode == Mode::train) inference.saved.add(y, Dtype::u8);  // where in the window, row-major
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
          double most = -std::numeric_limits<double>::infinity();
          for (std::int64_t k = 0; k < e.wh * e.ww; ++k) {
            const std::int64_t row = i * e.sh + k / e.ww, column = j * e.sw + k % e.ww;
            const double value = x.values[index(((b * x.shape[1] + row) * x.shape[2] + column) * x.shape[3] + c)];
            if (value > most || std::isnan(value)) most = value;
          }
          y.values[at] = most;
        }
      }
    }
  }
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  const auto image = [](Shape shape) { return Case::Input{.shape = shape, .distinct = true}; };
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

}  // namespace max_pool2d
}  // namespace

Op max_pool2d_op() {
  Op op{.name = "max_pool2d",
        .attributes = {},
        .infer = max_pool2d::infer,
        .reference = max_pool2d::reference,
        .cases = max_pool2d::cases};
  op.attributes.declare({.name = "window", .integers = {2, 2}, .list = true});
  op.attributes.declare({.name = "stride", .list = true});
  return op;
}

}  // namespace trireme::ops
