// The op that is held back so that a relu joins it: the same values and gradients as two ops, whoever looks at what.
#include <gmock/gmock.h>

#include "tests/autograd/fixture.h"

namespace trireme::autograd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

class ReluTest : public TapeTest {
 protected:
  // x (2, 3), W (4, 3), b (4); small integers, so exact in f32.
  Handle layer() {
    x_ = leaf({2, 3}, {1, -2, 3, 0, 1, -1});
    w_ = parameter({4, 3}, {1, 0, -1, 2, 1, 0, -1, -1, 2, 0, 3, 1});
    b_ = parameter({4}, {0, 1, -2, 1});
    return apply("linear", {x_, w_, b_});
  }
  Handle x_ = 0, w_ = 0, b_ = 0;
};

TEST_F(ReluTest, FusedEqualsUnfused) {
  const auto run = [&](bool look) {
    begin();
    const Handle h = layer();
    if (look) (void)tape.value(h);  // computes it, so that nothing can join
    const Handle y = apply("relu", {h});
    const Handle loss = apply("sum", {apply("mul", {y, y})});
    std::vector<Floats> all{values(y), {static_cast<float>(number(loss))}};
    backward(loss);
    all.push_back(gradient(0));
    all.push_back(gradient(1));
    return all;
  };
  const auto fused = run(false);
  EXPECT_THAT(log, Not(Contains("relu")));
  EXPECT_THAT(log, Contains("dlinear"));
  const auto unfused = run(true);
  EXPECT_THAT(log, Contains("relu"));
  EXPECT_THAT(log, Contains("drelu"));
  EXPECT_EQ(fused, unfused);
  // By hand: h = (-2, 1, 5, -2; 1, 2, -5, 3).
  EXPECT_THAT(fused[0], ElementsAre(0, 1, 5, 0, 1, 2, 0, 3));
  EXPECT_THAT(fused[3], ElementsAre(2, 2 + 4, 10, 6));
}

TEST_F(ReluTest, AbsorbedTensorUsedLaterIsComputedAndItsGradientsAddUp) {
  begin();
  const Handle h = layer();
  const Handle y = apply("relu", {h});
  const Handle loss = apply("sum", {apply("add", {y, h})});  // Σ relu(h) + h
  EXPECT_THAT(values(h), ElementsAre(-2, 1, 5, -2, 1, 2, -5, 3));
  EXPECT_EQ(number(loss), 12 + 3);
  backward(loss);
  EXPECT_THAT(gradient(1), ElementsAre(3, 4, 3, 3));          // 2 where h > 0, else 1, over the rows
  EXPECT_THAT(gradient(0), ElementsAre(1 + 0, -2 + 2, 3 - 2,  // row o: Σ over rows of that × x
                                       2 + 0, -4 + 2, 6 - 2,  //
                                       2 + 0, -4 + 1, 6 - 1,  //
                                       1 + 0, -2 + 2, 3 - 2));
  EXPECT_THAT(ready.size(), 2u);
  EXPECT_THAT(
      log, ElementsAre("linear", "linear", "add", "sum", "dsum", "dadd", "dlinear", "dlinear", "ready 1", "ready 2"));
}

TEST_F(ReluTest, AbsorbedTensorInBothBranchesOfTheTape) {
  begin();
  const Handle h = layer();
  const Handle y = apply("relu", {h});
  const Handle z = apply("relu", {h});  // again: the absorbed one is computed, then relu by itself
  EXPECT_EQ(values(y), values(z));
  backward(apply("sum", {apply("add", {y, z})}));
  EXPECT_THAT(gradient(1), ElementsAre(2, 4, 2, 2));
}

TEST_F(ReluTest, NothingJoinsAcrossAnotherCall) {
  begin();
  const Handle h = layer();
  const Handle other = apply("mul", {x_, x_});
  const Handle y = apply("relu", {h});
  EXPECT_THAT(log, ElementsAre("linear", "mul", "relu"));
  EXPECT_THAT(values(y), ElementsAre(0, 1, 5, 0, 1, 2, 0, 3));
  EXPECT_THAT(values(other), ElementsAre(1, 4, 9, 0, 1, 1));
}

TEST_F(ReluTest, ShapeIsKnownWhileHeldBack) {
  begin();
  const Handle h = layer();
  EXPECT_EQ(tape.signature(h).shape, (Shape{2, 4}));
  EXPECT_TRUE(log.empty());
  EXPECT_TRUE(tape.has_gradient_path(h));
  (void)apply("relu", {h});
  EXPECT_THAT(log, ElementsAre("linear"));
}

TEST_F(ReluTest, BatchNormWritesItsStatisticsWhereTold) {
  const auto& registry = ops::Registry::get();
  const std::uint32_t id = registry.find("batch_norm", 1);
  begin();
  const Handle x = parameter({4, 1}, {1, 3, 5, 7}), scale = parameter({1}, {2}), shift = parameter({1}, {-1});
  const Handle in[] = {x, scale, shift, leaf({1}, {10}), leaf({1}, {20})};
  const Handle mean = leaf({1}, {poison}), variance = leaf({1}, {poison});
  Handle out[] = {0, mean, variance};
  tape.apply(id, in, registry[id].attributes, out);
  EXPECT_EQ(out[1], mean);
  const Handle y = apply("relu", {out[0]});
  const auto normal = values(y);  // (x − 4) ÷ √5 · 2 − 1, at least 0
  EXPECT_EQ(normal[0], 0);
  EXPECT_NEAR(normal[3], 3 / std::sqrt(5.00001) * 2 - 1, 1e-6);
  EXPECT_NEAR(values(mean)[0], 0.9 * 10 + 0.1 * 4, 1e-5);
  EXPECT_NEAR(values(variance)[0], 0.9 * 20 + 0.1 * 20.0 / 3, 1e-5);
  // The absorbed output computed later must not move the statistics a second time.
  EXPECT_NEAR(values(out[0])[0], -3 / std::sqrt(5.00001) * 2 - 1, 1e-6);
  EXPECT_NEAR(values(mean)[0], 0.9 * 10 + 0.1 * 4, 1e-5);
  backward(apply("sum", {y}));
  EXPECT_THAT(ready.size(), 3u);
  EXPECT_THAT(gradient(2), ElementsAre(1));  // of the shift: one element is above 0
  Handle wrong[] = {0, leaf({2}, {0, 0}), variance};
  EXPECT_THAT(error_of([&] { tape.apply(id, in, registry[id].attributes, wrong); }),
              testing::HasSubstr("output 1 is f32 (1,), but the tensor given to write to is f32 (2,)"));
  Handle bad[] = {0, scale, variance};
  EXPECT_THAT(error_of([&] { tape.apply(id, in, registry[id].attributes, bad); }), testing::HasSubstr("parameter"));
}

}  // namespace
}  // namespace trireme::autograd
