// A steady micro-batch allocates nothing: every malloc of the thread is counted. Ops without oneDNN, whose own small
// allocations are counted apart (tests of whole runs).
#include <gtest/gtest.h>

#include "core/autograd/tape.h"
#include "core/backend/cpu/cpu.h"
#include "tests/autograd/count_malloc.h"

#ifndef TRIREME_SANITIZED  // a sanitizer brings a malloc of its own
namespace trireme::autograd {
namespace {

TEST(TapeAllocations, ASteadyMicroBatchHasNone) {
  const auto device = device::make_cpu();
  Tape tape(backend::cpu_backend(), device);
  device::StepBlock block;
  auto stream = device->compute_stream();
  const auto& registry = ops::Registry::get();
  const std::uint32_t mul = registry.find("mul", 1), add = registry.find("add", 1), relu = registry.find("relu", 1),
                      dropout = registry.find("dropout", 1), flatten = registry.find("flatten", 1),
                      sum = registry.find("sum", 1);
  std::vector<float> x(6000, 0.5f), w(6000, 0.25f), dw(6000);
  const auto body = std::make_shared<Custom>();
  body->forward = [&tape](std::span<const Handle> in, std::span<const Handle> out) {
    const auto from = tape.value(in[0]).span<float>(), to = tape.value(out[0]).span<float>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = 2 * from[i];
  };
  body->backward = [&tape](std::span<const Handle>, std::span<const Handle>, std::span<const Handle> dout,
                           std::span<const Handle> din) {
    const auto from = tape.value(dout[0]).span<float>(), to = tape.value(din[0]).span<float>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = 2 * from[i];
  };
  std::size_t announced = 0;
  const Tape::Ready ready = [&announced](Range) { ++announced; };
  const auto apply = [&](std::uint32_t op, std::initializer_list<Handle> in) {
    Handle out = 0;
    tape.apply(op, {in.begin(), in.size()}, registry[op].attributes, {&out, 1});
    return out;
  };
  for (int step = 0; step < 12; ++step) {
    const std::size_t before = allocations;
    tape.begin(Mode::train, &block, stream);
    const Handle image = tape.leaf({x.data(), Shape{20, 30, 10}, Dtype::f32});
    const Handle weight =
        tape.parameter({w.data(), Shape{20, 300}, Dtype::f32}, {dw.data(), Shape{20, 300}, Dtype::f32}, {0, 6000});
    Handle h = apply(mul, {apply(flatten, {image}), weight});
    h = apply(dropout, {apply(relu, {apply(add, {h, weight})})});
    const ops::Signature::Entry like{Shape{20, 300}, Dtype::f32};
    Handle doubled = 0;
    tape.custom(body, {&h, 1}, {&like, 1}, {&doubled, 1});
    tape.backward(apply(sum, {apply(mul, {doubled, weight})}), 20, ready);
    (void)tape.workspace(1000);
    const std::size_t made = allocations - before;
    if (step >= 3) {
      EXPECT_EQ(made, 0u) << "step " << step;
    } else if (step == 0) {
      EXPECT_GT(made, 0u);  // the counter counts
    }
  }
  EXPECT_EQ(announced, 12u);
}

}  // namespace
}  // namespace trireme::autograd
#endif
