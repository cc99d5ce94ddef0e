// function.h: differentiable functions of one's own, where no op does it. A member of the model:
//
//   struct Square final : Function {                               // y = x²
//     void forward(Tensors in, Tensors out) override {
//       const auto x = in[0].span<float>(), y = out[0].span<float>();
//       for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
//     }
//     void backward(Tensors in, Tensors, Tensors dout, Tensors din) override {
//       const auto x = in[0].span<float>(), dy = dout[0].span<float>(), dx = din[0].span<float>();
//       for (std::size_t i = 0; i < x.size(); ++i) dx[i] = 2 * x[i] * dy[i];
//     }
//   };
//   Tensor y = square_.apply({x}, {like(x)})[0];                   // in the model's forward
//
// Ops may be used inside too (their results are not recorded); what backward needs of forward has to be an input or an
// output (an extra output without use gets no gradient and costs nothing).
#pragma once
#include <array>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>

#include "ops.h"

namespace trireme {
inline namespace sdk {

using Tensors = std::span<const Tensor>;

// Type and shape of an output.
struct Like {
  trireme_shape shape{};
  trireme_dtype dtype = TRIREME_F32;
};
inline Like like(const Tensor& x) { return {x.shape(), x.dtype()}; }
inline Like like(std::initializer_list<std::int64_t> dims, trireme_dtype dtype = TRIREME_F32) {
  return {detail::shape_of(dims), dtype};
}

// Lives as long as its model. At most 8 inputs and 8 outputs.
class Function {
 public:
  Function() = default;
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;
  virtual ~Function() = default;

  // Writes every out.
  virtual void forward(Tensors in, Tensors out) = 0;
  // Writes every din that is not empty (an empty one is not wanted). An empty dout counts as zero.
  virtual void backward(Tensors in, Tensors out, Tensors dout, Tensors din) = 0;

  // Runs forward and records it.
  std::array<Tensor, 8> apply(std::initializer_list<Tensor> in, std::initializer_list<Like> out) {
    if (in.size() == 0) throw Error("a function needs an input");
    context_ = &in.begin()->context();
    if (in.size() > 8 || out.size() > 8) throw Error("a function has at most 8 inputs and 8 outputs");
    std::array<trireme_tensor, 8> ids{}, made{};
    std::array<trireme_field, 8> shapes{};
    std::size_t n = 0, m = 0;
    for (const Tensor& tensor : in) ids[n++] = tensor.id();
    for (const Like& like : out) shapes[m++] = {{}, like.shape, like.dtype, 0};
    const trireme_custom body{&Function::call_forward, &Function::call_backward, this, nullptr};
    context_->check(context_->host().custom(context_->core(), &body, ids.data(), n, shapes.data(), m, made.data()));
    return tensors(made.data(), m);
  }

 private:
  std::array<Tensor, 8> tensors(const trireme_tensor* ids, std::size_t count) const {
    std::array<Tensor, 8> all;
    for (std::size_t i = 0; i < count; ++i) all[i] = Tensor(*context_, ids[i]);
    return all;
  }
  template <class F>
  trireme_status guard(F&& body) const noexcept {
    const trireme_host& host = context_->host();
    try {
      body();
      return TRIREME_OK;
    } catch (const std::exception& e) {
      host.fail(host.core, detail::to_c(e.what()));
    } catch (...) {
      host.fail(host.core, detail::to_c("an exception that is no std::exception"));
    }
    return TRIREME_FAILED;
  }
  static trireme_status call_forward(void* state, const trireme_tensor* in, std::size_t in_count,
                                     const trireme_tensor* out, std::size_t out_count) {
    Function& self = *static_cast<Function*>(state);
    return self.guard([&] {
      const auto ins = self.tensors(in, in_count), outs = self.tensors(out, out_count);
      self.forward(Tensors(ins).first(in_count), Tensors(outs).first(out_count));
    });
  }
  static trireme_status call_backward(void* state, const trireme_tensor* in, std::size_t in_count,
                                      const trireme_tensor* out, std::size_t out_count,
                                      const trireme_tensor* out_gradients, const trireme_tensor* in_gradients) {
    Function& self = *static_cast<Function*>(state);
    return self.guard([&] {
      const auto ins = self.tensors(in, in_count), outs = self.tensors(out, out_count);
      const auto douts = self.tensors(out_gradients, out_count), dins = self.tensors(in_gradients, in_count);
      self.backward(Tensors(ins).first(in_count), Tensors(outs).first(out_count), Tensors(douts).first(out_count),
                    Tensors(dins).first(in_count));
    });
  }
  detail::Context* context_ = nullptr;  // of the model that applied it last; a function belongs to one model
};

}  // namespace sdk
}  // namespace trireme
