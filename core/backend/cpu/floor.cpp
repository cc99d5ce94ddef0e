// Floors, measured.
#include "core/backend/cpu/floor.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn.h"
#include "core/base/simd.h"
#include "core/base/threads.h"
#include "core/device/doorbell.h"

namespace trireme::backend {
namespace {

using device::seconds_now;

// The best of runs over about 30 ms, at least five.
template <class Body>
double best_seconds(const Body& body) {
  body();
  double best = std::numeric_limits<double>::infinity();
  const double end = seconds_now() + 0.03;
  for (int i = 0; i < 5 || seconds_now() < end; ++i) {
    const double start = seconds_now();
    body();
    best = std::min(best, seconds_now() - start);
  }
  return best;
}

// A primitive on memory of its own.
double run_alone(const dnnl::primitive& primitive, std::initializer_list<std::pair<int, Desc>> arguments) {
  dnnl::stream stream(onednn_engine());
  std::vector<dnnl::memory> memory;
  std::vector<dnnl_exec_arg_t> bound;
  for (const auto& [name, desc] : arguments) {
    memory.emplace_back(desc, onednn_engine());
    auto* bytes = static_cast<std::byte*>(memory.back().get_data_handle());
    std::fill(bytes, bytes + desc.get_size(), std::byte{0});
    bound.push_back({name, memory.back().get()});
  }
  return best_seconds(
      [&] { dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(bound.size()), bound.data()); });
}

double product_seconds(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed) {
  double best = std::numeric_limits<double>::infinity();
  for (const bool own_layout : {false, true}) {
    const Desc a({m, k}, f32, own_layout ? Tag::any : a_transposed ? Tag::ba : Tag::ab);
    const Desc b({k, n}, f32, own_layout ? Tag::any : b_transposed ? Tag::ba : Tag::ab);
    const Desc c({m, n}, f32, own_layout ? Tag::any : Tag::ab);
    const dnnl::matmul::primitive_desc descriptor(onednn_engine(), a, b, c);
    best = std::min(best, run_alone(dnnl::matmul(descriptor), {{DNNL_ARG_SRC, descriptor.src_desc()},
                                                               {DNNL_ARG_WEIGHTS, descriptor.weights_desc()},
                                                               {DNNL_ARG_DST, descriptor.dst_desc()}}));
  }
  return best;
}

struct Convolution {
  Dims x, weight, y, stride, padding;
};

dnnl::convolution_forward::primitive_desc forward_of(const Convolution& c, Tag pictures) {
  return {onednn_engine(),
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          Desc(c.x, f32, pictures),
          Desc(c.weight, f32, Tag::any),
          Desc(c.y, f32, pictures),
          c.stride,
          c.padding,
          c.padding};
}

// Forward, or the wanted ones of both gradients, in one kind of layout.
double convolution_seconds(const Convolution& c, Tag pictures, bool backward, bool want_x, bool want_weight) {
  const auto forward = forward_of(c, pictures);
  const Desc x(c.x, f32, pictures), y(c.y, f32, pictures), weight(c.weight, f32, Tag::any);
  if (!backward) {
    return run_alone(dnnl::convolution_forward(forward), {{DNNL_ARG_SRC, forward.src_desc()},
                                                          {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                                          {DNNL_ARG_DST, forward.dst_desc()}});
  }
  double seconds = 0;
  if (want_x) {
    const dnnl::convolution_backward_data::primitive_desc data(onednn_engine(), dnnl::algorithm::convolution_direct, x,
                                                               weight, y, c.stride, c.padding, c.padding, forward);
    seconds += run_alone(dnnl::convolution_backward_data(data), {{DNNL_ARG_DIFF_DST, data.diff_dst_desc()},
                                                                 {DNNL_ARG_WEIGHTS, data.weights_desc()},
                                                                 {DNNL_ARG_DIFF_SRC, data.diff_src_desc()}});
  }
  if (want_weight) {
    const dnnl::convolution_backward_weights::primitive_desc weights(
        onednn_engine(), dnnl::algorithm::convolution_direct, x, weight, y, c.stride, c.padding, c.padding, forward);
    seconds +=
        run_alone(dnnl::convolution_backward_weights(weights), {{DNNL_ARG_SRC, weights.src_desc()},
                                                                {DNNL_ARG_DIFF_DST, weights.diff_dst_desc()},
                                                                {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()}});
  }
  return seconds;
}

bool wanted(const FloorCall& call, std::size_t input) {
  return input < call.in_grads.size() && static_cast<bool>(call.in_grads[input]);
}

double conv2d_floor(const FloorCall& call) {
  const Tensor &x = call.in[0], &weight = call.in[1], &y = call.out[0];
  const auto stride = call.attributes.integers("stride"), padding = call.attributes.integers("padding");
  const Convolution c{{x.shape[0], x.shape[3], x.shape[1], x.shape[2]},
                      {weight.shape[0], weight.shape[3], weight.shape[1], weight.shape[2]},
                      {y.shape[0], y.shape[3], y.shape[1], y.shape[2]},
                      {stride[0], stride[1]},
                      {padding[0], padding[1]}};
  double best = std::numeric_limits<double>::infinity();
  for (const Tag pictures : {Tag::nhwc, Tag::any}) {
    // With `any` oneDNN may offer its reference code alone.
    const std::string_view name = forward_of(c, pictures).impl_info_str();
    if (name.starts_with("ref")) continue;
    best = std::min(best, convolution_seconds(c, pictures, call.backward, wanted(call, 0), wanted(call, 1)));
  }
  return best;
}

double linear_floor(const FloorCall& call) {
  const auto rows = static_cast<std::int64_t>(rows_of(call.in[0]));
  const std::int64_t out = call.in[1].shape[0], in = call.in[1].shape[1];
  if (!call.backward) return product_seconds(rows, out, in, false, true);
  return (wanted(call, 0) ? product_seconds(rows, in, out, false, false) : 0) +
         (wanted(call, 1) ? product_seconds(out, in, rows, true, false) : 0);
}

// Forward reads the inputs and writes outputs and saved tensors; backward reads the outputs' gradients and what was
// saved, and writes the wanted gradients. (What else of inputs an op's backward reads is not counted: a floor may be
// too low.)
double bytes_floor(const FloorCall& call, std::size_t working_set) {
  const auto sum = [](std::span<const Tensor> tensors, bool only_wanted) {
    std::size_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += only_wanted && !tensor ? 0 : tensor.bytes();
    return bytes;
  };
  if (!call.backward)
    return copy_seconds(sum(call.in, false), sum(call.out, false) + sum(call.saved, false), working_set);
  return copy_seconds(sum(call.out.first(1), false) + sum(call.saved, false), sum(call.in_grads, true), working_set);
}

TRIREME_SIMD float read_range(const float* from, std::size_t count) {
  float sum[16] = {};
  for (std::size_t i = 0; i + 16 <= count; i += 16) {
    for (std::size_t k = 0; k < 16; ++k) sum[k] += from[i + k];
  }
  float all = 0;
  for (const float part : sum) all += part;
  return all;
}

}  // namespace

double copy_seconds(std::size_t bytes_read, std::size_t bytes_written, std::size_t working_set) {
  const std::size_t read = bytes_read / sizeof(float), written = bytes_written / sizeof(float);
  std::vector<float> memory(std::max(working_set / sizeof(float), read + written), 1.0f);
  // What is read but has no counterpart written is only read, and the other way round.
  const std::size_t both = std::min(read, written);
  std::size_t at = 0;
  volatile float sink = 0;
  return best_seconds([&] {
    if (at + read + written > memory.size()) at = 0;
    const float* const from = memory.data() + at;
    float* const to = memory.data() + at + read;
    at += read + written;
    parallel_for(both, grain,
                 [&](std::size_t begin, std::size_t end) { std::copy(from + begin, from + end, to + begin); });
    parallel_for(read - both, grain,
                 [&](std::size_t begin, std::size_t end) { sink = read_range(from + both + begin, end - begin); });
    parallel_for(written - both, grain,
                 [&](std::size_t begin, std::size_t end) { std::fill(to + both + begin, to + both + end, 0.0f); });
  });
}

double floor_seconds(const FloorCall& call, std::size_t working_set) {
  if (call.op == "conv2d") return conv2d_floor(call);
  if (call.op == "linear") return linear_floor(call);
  return bytes_floor(call, working_set);
}

}  // namespace trireme::backend
