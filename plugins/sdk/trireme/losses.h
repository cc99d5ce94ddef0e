// losses.h: what a micro-batch is judged by.
//
//   Loss loss(const Outputs& out, const Batch& batch) override {
//     report("accuracy", accuracy(out["logits"], batch["label"]));
//     return cross_entropy(out["logits"], batch["label"], {.smoothing = 0.1});
//   }
#pragma once
#include <cstdint>

#include "ops.h"

namespace trireme {
inline namespace sdk {

// Sum and weight over the micro-batch, one f64 each; the core adds both over the whole batch and divides.
struct Metric {
  Tensor sum, weight;
};
// The same for the loss. n: the weight of a full micro-batch with nothing ignored, known from shapes.
struct Loss {
  Tensor sum, weight;
  std::uint64_t n = 0;
};

struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;  // rows with this label count in neither sum nor weight
  double smoothing = 0;              // label smoothing, [0, 1)
};

// logits (…, C), labels (…) of i64, i32 or u8. −Σ log softmax(logits) at the label; weight: rows that count.
inline Loss cross_entropy(const Tensor& logits, const Tensor& labels, CrossEntropyOptions options = {}) {
  const auto [sum, weight] = detail::apply<2>(
      "softmax_cross_entropy", {logits, labels},
      {detail::integer("ignore_index", options.ignore_index), detail::number("smoothing", options.smoothing)});
  return {sum, weight, static_cast<std::uint64_t>(labels.size())};
}
// Rows whose largest logit is at the label, and rows that count.
inline Metric accuracy(const Tensor& logits, const Tensor& labels, std::int64_t ignore_index = -100) {
  const auto [sum, weight] =
      detail::apply<2>("accuracy", {logits, labels}, {detail::integer("ignore_index", ignore_index)});
  return {sum, weight};
}

}  // namespace sdk
}  // namespace trireme
