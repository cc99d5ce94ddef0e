// raw.h: a model that computes its own gradients (hand-written, raw CUDA, another framework). No op is recorded.
//
//   class Regression final : public RawModel {        // y ≈ w·x, squared error
//    public:
//     explicit Regression(Config&) : w_(parameter("w", {1}, Init::zeros())) {}
//     void step(const Batch& batch) override {
//       const auto x = batch["x"].span<float>(), y = batch["y"].span<float>();
//       const float w = value(w_).span<float>()[0];
//       double sum = 0, slope = 0;
//       for (std::size_t i = 0; i < x.size(); ++i) {
//         const double error = double{w} * x[i] - y[i];
//         sum += error * error, slope += 2 * error * x[i];
//       }
//       loss(sum, double(x.size()), x.size());
//       if (training()) gradient(w_).span<float>()[0] = float(slope * scale(x.size())), ready(w_);
//     }
//    private:
//     std::size_t w_;
//   };
//   TRIREME_RAW_MODEL(Regression, "regression", "1.0")
#pragma once
#include <cstdint>

#include "base.h"

namespace trireme {
inline namespace sdk {

class RawModel : public Declarations {
 public:
  // Reports metrics, then the loss, then writes each gradient and says that it is ready. One never written counts as 0.
  virtual void step(const Batch& batch) = 0;

 protected:
  [[nodiscard]] Tensor value(std::size_t parameter) const { return Declarations::parameter(parameter); }
  // Where the gradient of loss sum · scale(n) goes. Training alone.
  [[nodiscard]] Tensor gradient(std::size_t parameter) const {
    if (context().call().gradients == nullptr) throw Error("gradient: there are gradients in training alone");
    return {context(), context().call().gradients[parameter]};
  }
  // loss scale ÷ n; read on the host, so on the CPU only.
  [[nodiscard]] double scale(std::uint64_t n) const {
    return static_cast<double>(context().call().step_block->loss_scale) / static_cast<double>(n);
  }
  void ready(std::size_t parameter) {
    context().check(context().host().gradient_ready(context().core(), context().call().ranges[parameter]));
  }
  using Declarations::report;
  void report(std::string_view name, double sum, double weight) { report(name, Metric{number(sum), number(weight)}); }
  void loss(double sum, double weight, std::uint64_t n) { loss({number(sum), number(weight), n}); }
  void loss(const Loss& l) { context().check(context().host().loss(context().core(), l.sum.id(), l.weight.id(), l.n)); }
  void output(std::string_view name, const Tensor& value) {
    context().check(context().host().output(context().core(), detail::to_c(name), value.id()));
  }

 private:
  [[nodiscard]] Tensor number(double value) {
    const Tensor one = allocate({1}, TRIREME_F64);
    one.span<double>()[0] = value;
    return one;
  }
};

}  // namespace sdk
}  // namespace trireme
