// Raw plugins, which bring their own gradients.
#include "tests/plugin/fixture.h"

namespace trireme::plugin {
namespace {

std::vector<Field> fields() { return {{"x", Shape{}, Dtype::f32}, {"y", Shape{}, Dtype::f32}}; }

TEST(RawModel, GivesLossMetricsAndGradient) {
  Micro micro(fixture_file("regression"), {}, fields(), 8);
  EXPECT_TRUE(micro.model->raw());
  micro.model->shape_pass(8);
  micro.block.loss_scale = 2;
  const auto x = micro.data[0].span<float>(), y = micro.data[1].span<float>();
  double sum = 0, slope = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const double error = 0.5 * double{x[i]} - double{y[i]};
    sum += error * error, slope += 2 * error * double{x[i]};
  }
  const Loss loss = micro.forward();
  EXPECT_NEAR(micro.number(loss.sum), sum, 1e-12);
  EXPECT_EQ(loss.n, 8);
  ASSERT_EQ(micro.model->metrics().size(), 1u);
  EXPECT_EQ(micro.model->metrics()[0].name, "error");
  // Announced only now: buckets leave after the scalars.
  std::vector<Range> ready;
  micro.model->backward(loss, [&](Range range) { ready.push_back(range); });
  const Range w = micro.parameter("w").range;
  EXPECT_EQ(ready, std::vector<Range>{w});  // the spare one has no gradient
  EXPECT_NEAR(micro.gradients[w.begin], slope * 2 / 8, 1e-6);
  micro.model->reset();
  EXPECT_NEAR(micro.loss_sum(Mode::evaluate), sum, 1e-12);
}

TEST(RawModel, Refusals) {
  const std::pair<const char*, const char*> cases[] = {
      {"no_loss", "gave no loss"},
      {"two_losses", "loss: given twice"},
      {"late_report", "report 'late': comes after loss"},
      {"twice", "gradient_ready: [0, 1) overlaps [0, 1), which is announced already"},
  };
  for (const auto& [what, words] : cases) {
    const Caught caught = error_of([&] { Micro(fixture_file("regression"), fault(what), fields(), 4).train(); });
    EXPECT_PRED2(contains, caught.text, words);
    EXPECT_PRED2(contains, caught.text, "plugin 'regression' (");
    EXPECT_EQ(caught.code, ExitCode::internal);
  }
  Micro evaluates(fixture_file("regression"), fault("evaluate"), fields(), 4);
  EXPECT_PRED2(contains, error_of([&] { evaluates.loss_sum(Mode::evaluate); }).text,
               "gradient_ready: there are gradients in training alone");
}

}  // namespace
}  // namespace trireme::plugin
