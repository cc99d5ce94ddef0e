// Runs one op on one backend, or its f64 reference, on values held by the host.
#pragma once

#include <optional>
#include <random>

#include "tests/ops/backends.h"

namespace trireme::ops::testing {

// Values of any type, as doubles (exact for every type used in tests).
struct Values {
  Shape shape;
  Dtype dtype = Dtype::f32;
  std::vector<double> values;
};

// The declared attributes of `op` with those of the case set.
[[nodiscard]] Attributes attributes_of(const Op& op, const Case& test);
// Inputs as the case wants them; f32 ones are rounded to f32, so that both sides see the same numbers.
[[nodiscard]] std::vector<Values> draw(const Case& test, std::mt19937_64& random);
[[nodiscard]] std::vector<Values> reference(const Op& op, const Attributes& attributes, Mode mode,
                                            const std::vector<Values>& in);

// One application. Everything a kernel has to write is filled with 0xFF bytes (NaN) before, and memory behind it must
// still be so afterwards (check_guards).
class Application {
 public:
  Application(const BackendUnderTest& under_test, std::uint32_t op, const Attributes& attributes, Mode mode,
              const std::vector<Values>& in);

  [[nodiscard]] std::vector<Values> forward();
  // Gradients of all inputs whose bit is set in `wanted`; none for the others. out_grads[i] absent: none came.
  [[nodiscard]] std::vector<std::optional<Values>> backward(const std::vector<std::optional<Values>>& out_grads,
                                                            std::uint32_t wanted);
  // Kernels alone, for counting allocations. backward() must have run before run_backward().
  void run_forward();
  void run_backward();
  void check_guards() const;

 private:
  [[nodiscard]] Tensor place(const Values& values);
  [[nodiscard]] Tensor blank(const Shape& shape, Dtype dtype);
  [[nodiscard]] Values fetch(const Tensor& tensor) const;

  const Op& op_;
  const OpKernels& kernels_;
  Attributes attributes_;
  Mode mode_;
  std::shared_ptr<device::Device> device_;
  mutable device::Stream stream_;
  tensor::Arena arena_, scratch_;
  std::vector<Tensor> in_, out_, saved_, out_grads_, in_grads_, guards_;
  const device::StepBlock* block_;
};

// The address of randomness in all tests.
[[nodiscard]] device::StepBlock test_block();
inline constexpr std::uint32_t test_ordinal = 3;

// The bit of input i is set where it can have a gradient.
[[nodiscard]] std::uint32_t differentiable_inputs(const Op& op, std::size_t inputs);

}  // namespace trireme::ops::testing
