// The tape's graph: who gets which gradient, in what order, against closed forms. Arithmetic is exact in f32 here
// (small integers and quarters), so values are compared for equality unless a test says why not.
#include <gmock/gmock.h>

#include "tests/autograd/fixture.h"

namespace trireme::autograd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(TapeTest, DiamondAddsBothPaths) {
  begin();
  const Handle x = parameter({3}, {1, -2, 0.5f});
  const Handle loss = apply("sum", {apply("add", {apply("mul", {x, x}), x})});  // Σ x² + x
  EXPECT_EQ(number(loss), 1 + 1 + 4 - 2 + 0.25 + 0.5);
  backward(loss);
  EXPECT_THAT(gradient(0), ElementsAre(3, -3, 2));  // 2x + 1
  EXPECT_THAT(ready, ElementsAre(Range{100, 103}));
}

TEST_F(TapeTest, SeedIsLossScaleOverN) {
  block.loss_scale = 8;
  begin();
  const Handle x = parameter({2}, {1, 2});
  backward(apply("sum", {x}), 4);
  EXPECT_THAT(gradient(0), ElementsAre(2, 2));
}

TEST_F(TapeTest, ParameterIsAnnouncedAfterItsLastContribution) {
  begin();
  const Handle w = parameter({2}, {2, 3}), v = parameter({2}, {5, 7});
  const Handle a = apply("mul", {w, v});  // w·v
  const Handle b = apply("mul", {a, w});  // w²·v
  const Handle c = apply("add", {b, w});  // w²·v + w
  backward(apply("sum", {c}));
  EXPECT_THAT(gradient(0), ElementsAre(2 * 2 * 5 + 1, 2 * 3 * 7 + 1));
  EXPECT_THAT(gradient(1), ElementsAre(4, 9));
  EXPECT_THAT(log, ElementsAre("mul", "mul", "add", "sum", "dsum", "dadd", "dmul", "dmul", "ready 1", "ready 2"));
}

TEST_F(TapeTest, EachParameterIsAnnouncedAsBackwardPasses) {
  begin();
  const Handle w = parameter({1}, {2}), v = parameter({1}, {3});
  backward(apply("sum", {apply("mul", {apply("mul", {leaf({1}, {5}), w}), v})}));
  EXPECT_THAT(log, ElementsAre("mul", "mul", "sum", "dsum", "dmul", "ready 2", "dmul", "ready 1"));
  EXPECT_THAT(gradient(0), ElementsAre(15));
  EXPECT_THAT(gradient(1), ElementsAre(10));
}

TEST_F(TapeTest, AnOpWithoutOutputIsRefused) {
  begin();
  const Handle x = leaf({2}, {1, 2});
  const std::uint32_t reshape = ops::Registry::get().find("reshape", 1);
  try {
    tape.apply(reshape, {&x, 1}, ops::Registry::get()[reshape].attributes, {});
    ADD_FAILURE() << "it was run";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "reshape: no output wanted; ask for at least one");
  }
}

TEST_F(TapeTest, WithoutPathNothingIsWrittenOrAnnounced) {
  begin();
  const Handle w = parameter({2}, {1, 2});
  const Handle unused = parameter({2}, {3, 4});
  const Handle dead = apply("mul", {unused, w});  // leads nowhere
  const Handle loss = apply("sum", {apply("add", {w, leaf({2}, {1, 1})})});
  (void)dead;
  backward(loss);
  EXPECT_THAT(gradient(0), ElementsAre(1, 1));
  EXPECT_THAT(gradient(1), ElementsAre(poison, poison));
  EXPECT_THAT(ready, ElementsAre(Range{100, 102}));
  EXPECT_THAT(log, Not(testing::Contains("dmul")));
}

TEST_F(TapeTest, ReshapeSharesMemoryAndGradient) {
  begin();
  const Handle x = parameter({2, 2}, {1, 2, 3, 4});
  const Handle flat = reshape(x, {4}), back = reshape(flat, {1, 4});
  EXPECT_EQ(tape.value(flat).data, tape.value(x).data);
  EXPECT_EQ(tape.value(back).shape, (Shape{1, 4}));
  const Handle squares = reshape(apply("mul", {flat, flat}), {2, 2});
  backward(apply("sum", {apply("add", {squares, x})}));  // Σ x² + x, by way of three shapes
  EXPECT_THAT(gradient(0), ElementsAre(3, 5, 7, 9));
  EXPECT_THAT(ready, ElementsAre(Range{100, 104}));
}

TEST_F(TapeTest, LossOverTwoUsesOfANumberInF64) {
  begin();
  const Handle x = parameter({2}, {3, 4});
  const Handle total = apply("sum", {apply("mul", {x, x})});
  backward(total);
  EXPECT_THAT(gradient(0), ElementsAre(6, 8));
}

TEST_F(TapeTest, GradientMemoryIsReused) {
  begin();
  Handle x = apply("mul", {parameter({50000}, Floats(50000, 1)), leaf({50000}, Floats(50000, 1))});
  for (int i = 0; i < 20; ++i) x = apply("add", {x, leaf({50000}, Floats(50000, 1))});
  const Handle loss = apply("sum", {x});
  const std::size_t forward_bytes = tape.peak_bytes();
  backward(loss);
  EXPECT_THAT(gradient(0), testing::Each(1.0f));
  // Two gradients of 200,000 B live at once; the arena takes 4 MiB at a time.
  EXPECT_LE(tape.peak_bytes(), forward_bytes + 2 * 200064 + 128);
}

TEST_F(TapeTest, EvaluationHasNoBackward) {
  begin(Mode::evaluate);
  const Handle loss = apply("sum", {parameter({2}, {1, 2})});
  EXPECT_EQ(number(loss), 3);
  EXPECT_FALSE(tape.has_gradient_path(loss));
  EXPECT_THAT(error_of([&] { backward(loss); }), HasSubstr("only in training"));
}

TEST_F(TapeTest, LossesThatCannotBe) {
  begin();
  const Handle x = leaf({2}, {1, 2}), w = parameter({2}, {1, 2});
  EXPECT_THAT(error_of([&] { backward(apply("sum", {x})); }), HasSubstr("depends on no parameter"));
  EXPECT_THAT(error_of([&] { backward(apply("mul", {w, w})); }), HasSubstr("must be one f64 or f32, it is f32 (2,)"));
  const Handle loss = apply("sum", {w});
  EXPECT_THAT(error_of([&] { backward(loss, 0); }), HasSubstr("n is 0"));
  EXPECT_THAT(error_of([&] { backward(loss, std::numeric_limits<double>::quiet_NaN()); }), HasSubstr("n is nan"));
  backward(loss);
  EXPECT_THAT(error_of([&] { backward(loss); }), HasSubstr("ran already"));
}

TEST_F(TapeTest, StaleAndUnknownHandlesAreRefused) {
  begin();
  const Handle old = parameter({1}, {1});
  begin();
  begin();
  const Handle now = parameter({1}, {1});
  EXPECT_NE(old, now);
  EXPECT_THAT(error_of([&] { (void)tape.value(old); }),
              HasSubstr("stale tensor: it belongs to an earlier micro-batch"));
  EXPECT_THAT(error_of([&] { apply("relu", {old}); }), HasSubstr("stale tensor"));
  EXPECT_THAT(error_of([&] { (void)tape.signature(old); }), HasSubstr("stale tensor"));
  EXPECT_THAT(error_of([&] { backward(old); }), HasSubstr("stale tensor"));
  EXPECT_THAT(error_of([&] { (void)tape.value(now + 1); }), HasSubstr("tensor"));
  EXPECT_THAT(error_of([&] { (void)tape.value(0); }), HasSubstr("empty tensor"));
  EXPECT_THAT(error_of([&] { (void)tape.value(~Handle{0}); }), HasSubstr("unknown tensor"));
}

TEST_F(TapeTest, WrongUseOfAnOpNamesIt) {
  begin();
  const Handle a = parameter({2}, {1, 2}), b = leaf({3}, {1, 2, 3});
  EXPECT_THAT(error_of([&] { apply("add", {a, b}); }), HasSubstr("add: input 1 (b) is f32 (3,)"));
  EXPECT_THAT(error_of([&] { apply("relu", {a, b}); }), HasSubstr("relu: 2 inputs given, 1 to 1 wanted"));
  Handle out = 0;
  EXPECT_THAT(error_of([&] { tape.apply(9999, {&a, 1}, {}, {&out, 1}); }), HasSubstr("op id 9999"));
  EXPECT_EQ(number(apply("sum", {b})), 6);  // the tape goes on
}

TEST_F(TapeTest, RewindGivesBackMemoryAndHandles) {
  begin(Mode::predict);
  const Handle x = leaf({1000}, Floats(1000, 2));
  const Handle kept = apply("mul", {x, x});
  const std::uint64_t mark = tape.mark();
  Handle last = 0;
  std::size_t bytes = 0;
  for (int i = 0; i < 3; ++i) {
    last = apply("add", {kept, x});
    EXPECT_EQ(values(last)[999], 6);
    if (i == 0) bytes = tape.peak_bytes();
    tape.rewind(mark);
  }
  EXPECT_EQ(tape.peak_bytes(), bytes);
  EXPECT_THAT(error_of([&] { (void)tape.value(last); }), HasSubstr("given back"));
  EXPECT_EQ(values(kept)[0], 4);
  EXPECT_THAT(error_of([&] { tape.rewind(mark + 1); }), HasSubstr("rewind"));
  begin();
  EXPECT_THAT(error_of([&] { (void)tape.mark(); }), HasSubstr("only in predict"));
}

TEST_F(TapeTest, RandomOpsAreKeyedByTheirOrdinal) {
  const auto masks = [&](Mode mode) {
    begin(mode);
    const Handle x = leaf({64}, Floats(64, 1));
    const Handle one = apply("dropout", {x}, {{"p", 0.5}}), two = apply("dropout", {x}, {{"p", 0.5}});
    return std::pair(values(one), values(two));
  };
  const auto [first, second] = masks(Mode::train);
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::uint32_t ordinal : {0u, 1u}) {
      const float kept = to_uniform(random_bits(op_key(block, ordinal), i)) >= 0.5f ? 2.0f : 0.0f;
      EXPECT_EQ((ordinal == 0 ? first : second)[i], kept) << "element " << i << ", ordinal " << ordinal;
    }
  }
  EXPECT_NE(first, second);
  EXPECT_EQ(masks(Mode::train).first, first);  // counted anew in each micro-batch
  block.micro_batch = 1;
  EXPECT_NE(masks(Mode::train).first, first);
  begin();
  EXPECT_EQ(tape.take_ordinal(), 0u);
  begin(Mode::evaluate);
  EXPECT_EQ(tape.take_ordinal(), 1u << 31);
}

}  // namespace
}  // namespace trireme::autograd
