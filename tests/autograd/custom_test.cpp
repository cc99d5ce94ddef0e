// User-defined functions on the tape.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/autograd/fixture.h"

namespace trireme::autograd {
namespace {

using testing::ElementsAre;

class CustomTest : public TapeTest {
 protected:
  using Handles = std::span<const Handle>;

  // y = a·sin(b), elementwise.
  std::shared_ptr<Custom> sine() {
    auto body = std::make_shared<Custom>();
    body->forward = [this](Handles in, Handles out) {
      const auto a = tape.value(in[0]).span<float>(), b = tape.value(in[1]).span<float>();
      const auto y = tape.value(out[0]).span<float>();
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * std::sin(b[i]);
    };
    body->backward = [this](Handles in, Handles, Handles dout, Handles din) {
      const auto a = tape.value(in[0]).span<float>(), b = tape.value(in[1]).span<float>();
      const auto dy = tape.value(dout[0]).span<float>();
      wanted = {din[0] != 0, din[1] != 0};
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (din[0] != 0) tape.value(din[0]).span<float>()[i] = dy[i] * std::sin(b[i]);
        if (din[1] != 0) tape.value(din[1]).span<float>()[i] = dy[i] * a[i] * std::cos(b[i]);
      }
    };
    return body;
  }
  Handle call(const std::shared_ptr<Custom>& body, std::initializer_list<Handle> in, const Shape& shape) {
    const ops::Signature::Entry like{shape, Dtype::f32};
    Handle out = 0;
    tape.custom(body, {in.begin(), in.size()}, {&like, 1}, {&out, 1});
    return out;
  }
  std::vector<bool> wanted;
};

TEST_F(CustomTest, GradientAgreesWithFiniteDifferences) {
  const auto loss_at = [&](const Floats& a, const Floats& b) {
    begin();
    const Handle pa = parameter({3}, a), pb = parameter({3}, b);
    // The inputs are used a second time, so gradients meet.
    return apply("sum", {apply("mul", {call(sine(), {pa, pb}, {3}), apply("add", {pa, pb})})});
  };
  const Floats a{0.5f, -1.25f, 2}, b{0.3f, 1.1f, -0.7f};
  backward(loss_at(a, b));
  const Floats da = gradient(0), db = gradient(1);
  EXPECT_THAT(wanted, ElementsAre(true, true));
  EXPECT_THAT(ready.size(), 2u);
  const float step = 1.0f / 256;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto difference = [&](bool first) {
      Floats up_a = a, down_a = a, up_b = b, down_b = b;
      (first ? up_a : up_b)[i] += step;
      (first ? down_a : down_b)[i] -= step;
      const double up = number(loss_at(up_a, up_b)), down = number(loss_at(down_a, down_b));
      return (up - down) / (2.0 * step);
    };
    // Central differences: f32 rounding of values around 3 gives 3·6e-8 ÷ step = 5e-5, the third derivative 1e-5.
    EXPECT_NEAR(da[i], difference(true), 2e-4);
    EXPECT_NEAR(db[i], difference(false), 2e-4);
  }
}

TEST_F(CustomTest, LeavesWantNoGradient) {
  begin();
  const Handle a = leaf({2}, {3, 4}), b = parameter({2}, {0, 0});
  backward(apply("sum", {call(sine(), {a, b}, {2})}));
  EXPECT_THAT(wanted, ElementsAre(false, true));
  EXPECT_THAT(gradient(0), ElementsAre(3, 4));
}

TEST_F(CustomTest, OpsInsideAreNotRecorded) {
  auto body = std::make_shared<Custom>();
  body->forward = [&](Handles in, Handles out) {
    const auto& registry = ops::Registry::get();
    const std::uint32_t mul = registry.find("mul", 1);
    Handle to = out[0];
    const Handle pair[] = {in[0], in[0]};
    tape.apply(mul, pair, registry[mul].attributes, {&to, 1});  // y = x², straight into the output
  };
  body->backward = [&](Handles in, Handles, Handles dout, Handles din) {
    const Handle twice = apply("add", {in[0], in[0]});
    const auto& registry = ops::Registry::get();
    const std::uint32_t mul = registry.find("mul", 1);
    Handle to = din[0];
    const Handle pair[] = {twice, dout[0]};
    tape.apply(mul, pair, registry[mul].attributes, {&to, 1});
  };
  begin();
  const Handle x = parameter({3}, {1, -2, 3});
  const Handle y = call(body, {x}, {3});
  EXPECT_THAT(values(y), ElementsAre(1, 4, 9));
  backward(apply("sum", {y}));
  EXPECT_THAT(gradient(0), ElementsAre(2, -4, 6));
  EXPECT_THAT(log, ElementsAre("custom", "mul", "sum", "dsum", "dcustom", "add", "mul", "ready 1"));
}

TEST_F(CustomTest, UnusedOutputGivesNoGradientAndTensorsOfBackwardEndWithIt) {
  Handle leaked = 0;
  auto body = std::make_shared<Custom>();
  body->forward = [&](Handles in, Handles out) {
    const auto x = tape.value(in[0]).span<float>();
    for (std::size_t i = 0; i < 2; ++i) {
      tape.value(out[0]).span<float>()[i] = 3 * x[i];
      tape.value(out[1]).span<float>()[i] = -1;
    }
  };
  body->backward = [&](Handles, Handles, Handles dout, Handles din) {
    EXPECT_NE(dout[0], 0u);
    EXPECT_EQ(dout[1], 0u);
    leaked = dout[0];
    for (std::size_t i = 0; i < 2; ++i) {
      tape.value(din[0]).span<float>()[i] = 3 * tape.value(dout[0]).span<float>()[i];
    }
  };
  begin();
  const Handle x = parameter({2}, {1, 2});
  const ops::Signature::Entry like[] = {{Shape{2}, Dtype::f32}, {Shape{2}, Dtype::f32}};
  Handle out[2] = {};
  tape.custom(body, {&x, 1}, like, out);
  backward(apply("sum", {out[0]}));
  EXPECT_THAT(gradient(0), ElementsAre(3, 3));
  EXPECT_THAT(error_of([&] { (void)tape.value(leaked); }), testing::HasSubstr("given back"));
}

TEST_F(CustomTest, ErrorInsideReachesTheCallerAndTheTapeGoesOn) {
  auto body = std::make_shared<Custom>();
  body->forward = [](Handles, Handles) { throw Error(ExitCode::internal, "no such luck"); };
  body->backward = [](Handles, Handles, Handles, Handles) {};
  begin();
  const Handle x = parameter({1}, {2});
  EXPECT_EQ(error_of([&] { call(body, {x}, {1}); }), "no such luck");
  backward(apply("sum", {apply("mul", {x, x})}));
  EXPECT_THAT(gradient(0), ElementsAre(4));
}

TEST_F(CustomTest, WorkspaceEndsWithTheFunction) {
  void *first = nullptr, *second = nullptr;
  auto body = std::make_shared<Custom>();
  body->forward = [&](Handles, Handles out) {
    (first == nullptr ? first : second) = tape.workspace(100);
    tape.value(out[0]).span<float>()[0] = 0;
  };
  body->backward = [](Handles, Handles, Handles, Handles) {};
  begin();
  const Handle x = leaf({1}, {2});
  call(body, {x}, {1});
  call(body, {x}, {1});
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace trireme::autograd
