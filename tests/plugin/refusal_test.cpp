// What a job or a plugin can get wrong: each error has plugin, file and text, or the place in the job.
#include <algorithm>

#include "tests/plugin/fixture.h"

namespace trireme::plugin {
namespace {

const Field x_field{"x", Shape{3}, Dtype::f32};

Config config(const std::string& key, JobScalar value) { return {{key, {std::move(value), "job.toml:12"}}}; }

Caught creating(const Config& with, std::vector<Field> fields = {x_field}, const std::string& name = "behaviour") {
  return error_of([&] { Micro micro(fixture_file(name), with, std::move(fields), 2); });
}
// The first micro-batch, then a second one.
Caught running(const std::string& what, bool backward = true) {
  return error_of([&] {
    Micro micro(fixture_file("behaviour"), fault(what), {x_field}, 2);
    for (int i = 0; i < 2; ++i) {
      if (backward) {
        micro.train();
      } else {
        micro.loss_sum(Mode::evaluate);
      }
    }
  });
}
std::string by_behaviour(const std::string& text) {
  return "plugin 'behaviour' (" + std::filesystem::canonical(fixture_file("behaviour")).string() + "): " + text;
}

TEST(PluginKeys, WrongOnesNameKeyRangeAndPlace) {
  const std::pair<Config, const char*> cases[] = {
      {config("width", 3.5), "job.toml:12: model.width = 3.5: an integer is wanted (extent of x)"},
      {config("width", std::string("3")), "job.toml:12: model.width = \"3\": an integer is wanted (extent of x)"},
      {config("width", std::int64_t{9}),
       "job.toml:12: model.width = 9: an integer in the range [1, 8] is wanted (extent of x)"},
      {config("rate", 1.5), "job.toml:12: model.rate = 1.5: a number in the range [0, 1] is wanted (between 0 and 1)"},
      {config("rate", true), "job.toml:12: model.rate = true: a number is wanted (between 0 and 1)"},
      {config("flag", std::int64_t{1}), "job.toml:12: model.flag = 1: true or false is wanted (does nothing)"},
      {config("mode", std::string("fany")),
       "job.toml:12: model.mode = \"fany\": one of plain | fancy; did you mean 'fancy'? is wanted (one of two)"},
      {config("mode", 2.0), "job.toml:12: model.mode = 2: one of plain | fancy is wanted (one of two)"},
      {config("widht", std::int64_t{3}), "job.toml:12: unknown key 'model.widht': did you mean 'model.width'?"},
      {config("q", true), "job.toml:12: unknown key 'model.q': the plugin has 'fault' 'width' 'rate' 'flag' 'mode'"},
  };
  for (const auto& [with, words] : cases) {
    const Caught caught = creating(with);
    EXPECT_EQ(caught.text, words);
    EXPECT_EQ(caught.code, ExitCode::usage);
  }
}

TEST(PluginKeys, RightOnesAreInForce) {
  Config with = config("rate", std::int64_t{1});  // an integer is a number too
  with.merge(config("mode", std::string("fancy")));
  const Micro micro(fixture_file("behaviour"), with, {x_field}, 2);
  const auto keys = micro.model->keys();
  ASSERT_EQ(keys.size(), 5u);
  EXPECT_EQ(keys[1].name, "width");
  EXPECT_EQ(keys[1].type, "integer");
  EXPECT_EQ(keys[1].range, "[1, 8]");
  EXPECT_EQ(keys[1].fallback, "3");
  EXPECT_EQ(keys[1].value, "3");
  EXPECT_EQ(keys[2].value, "1");
  EXPECT_EQ(keys[2].fallback, "0.5");
  EXPECT_EQ(keys[4].range, "plain | fancy");
  EXPECT_EQ(keys[4].value, "\"fancy\"");
}

TEST(PluginCreate, Errors) {
  const std::string in_constructor = "training, rows, parameter, buffer, report and allocate are not for a constructor";
  const std::pair<const char*, std::string> cases[] = {
      {"create", "boom in create"},
      {"create_other", "an exception that is no std::exception"},
      {"outside", "a tensor was used outside of forward, loss, predict or step"},
      {"max", "buffer 'most': reduced by max; that comes with a later version, take mean"},
      {"early", in_constructor},
      {"early_rows", in_constructor},
      {"early_allocate", in_constructor},
      {"early_report", in_constructor},
      {"default", "key 'bad': its default 3 lies outside of its own range [0, 1]"},
      {"two_types", "key 'width' is asked for as integer and as number"},
      {"twice", "parameter 'w' is declared twice"},
      {"empty", "parameter 'nothing' has no elements: its shape is (0,)"},
  };
  for (const auto& [what, words] : cases) {
    const Caught caught = creating(fault(what));
    EXPECT_EQ(caught.text, by_behaviour(words));
    EXPECT_EQ(caught.code, ExitCode::internal);
  }
}

TEST(PluginCreate, TablesByHand) {
  EXPECT_PRED2(contains, creating({}, {x_field}, "throws").text,
               "create threw an exception across the C boundary: boom across the boundary");
  EXPECT_PRED2(contains, creating({}, {x_field}, "silent").text, "create failed with status 1 and no text");
  EXPECT_PRED2(contains, creating({}, {x_field}, "phases").text,
               "declare_phase 'generator': phases come with a later version");
  EXPECT_PRED2(contains, creating({}, {x_field}, "early_apply").text, "apply: not possible in create");
  EXPECT_PRED2(contains, creating({}, {x_field}, "summarises").text,
               "its table has summarise; that comes with a later version");
  const Caught other = error_of([] { Micro(fixture_file("throws_other"), {}, {x_field}, 2).train(); });
  EXPECT_PRED2(contains, other.text, "forward threw something across the C boundary that is no std::exception");
  EXPECT_EQ(other.code, ExitCode::internal);
  EXPECT_PRED2(contains, other.text, "plugin 'table' (");
}

TEST(PluginFields, MismatchesShowBothShapes) {
  const Caught shape = creating(fault("input"));
  EXPECT_EQ(shape.code, ExitCode::usage);
  EXPECT_EQ(
      shape.text,
      "field 'x': plugin 'behaviour' wants f32 (4,) for one sample, the data has f32 (3,) (after [data] transform)");
  const Caught type = creating(fault("input_any"), {{"x", Shape{3}, Dtype::u8}});
  EXPECT_PRED2(contains, type.text, "wants f32 (any,) for one sample, the data has u8 (3,)");
  const Caught name = creating(fault("input_name"));
  EXPECT_EQ(name.code, ExitCode::usage);
  EXPECT_PRED2(contains, name.text, "field 'xx': plugin 'behaviour' wants it");
  EXPECT_PRED2(contains, name.text, "it has 'x'");
  EXPECT_EQ(creating(fault("input_any")).text, "no error");
}

TEST(PluginFields, WrongMicroBatch) {
  Micro micro(fixture_file("behaviour"), {}, {x_field}, 2);
  micro.data[0].shape = Shape{2, 4};
  EXPECT_PRED2(contains, error_of([&] { micro.forward(); }).text,
               "field 'x' is f32 (2, 4), the model was made for (rows, …) of f32 (3,)");
  micro.data[0].shape = Shape{2, 3};
  micro.gradients.resize(5);
  EXPECT_PRED2(contains, error_of([&] { micro.forward(); }).text, "gradients of 5 and new buffers of");
}

TEST(PluginRun, ErrorsHavePluginAndText) {
  const std::pair<const char*, std::string> cases[] = {
      {"forward", "boom in forward"},
      {"forward_other", "an exception that is no std::exception"},
      {"loss", "boom in loss"},
      {"custom_forward", "boom in a custom forward"},
      {"custom_backward", "an exception that is no std::exception"},
      {"parallel", "boom in a thread"},
      {"field", "no field named 'y' in [data] fields of the job; it has 'x'"},
      {"op", "unknown op 'reluu': did you mean 'relu'?"},
      {"shapes",
       "add: input 1 (b) is f32 (6,), but it must have a's shape, or one extent, a's last; inputs: a f32 (2, 3), "
       "b f32 (6,)"},
      {"attribute", "dropout: no attribute 'q'; it has p"},
      {"read_only", "relu: output 0 is to be written to a field, parameter or buffer; those are read-only"},
      {"no_path",
       "the loss depends on no parameter, so there is no gradient; ops without gradient (convert, accuracy) or "
       "raw views break the path"},
      {"f32_loss",
       "loss: its sum must be one f64, it is f32 (2, 3); the ops sum, mean, accuracy and "
       "softmax_cross_entropy give that"},
      {"no_input", "a function needs an input"},
      {"n_changes",
       "loss: n is 31, was 32 in the first micro-batch; it follows from shapes alone, ignored rows go into weight"},
      {"no_n", "loss: n is 0; it is the weight of a full micro-batch with nothing ignored"},
      {"metric_f32",
       "other: its sum must be one f64, it is f32 (2, 3); the ops sum, mean, accuracy and "
       "softmax_cross_entropy give that"},
      {"metric_twice", "metric 'total' is given twice"},
      {"metric_missing", "metric 'total' is missing; it was given the first time"},
      {"metric_more",
       "metric 'extra' was not given the first time; the names and their order must be the same in every "
       "micro-batch"},
      {"output_name",
       "output 'z' is given where 'y' was given the first time; the names and their order must be the same "
       "in every micro-batch"},
  };
  for (const auto& [what, words] : cases) {
    const Caught caught = running(what);
    EXPECT_EQ(caught.text, by_behaviour(words)) << what;
    EXPECT_EQ(caught.code, ExitCode::internal) << what;
  }
  EXPECT_EQ(running("n_changes", false).text, "no error");  // only training divides by n
  const Caught stale = running("stale");
  EXPECT_PRED2(contains, stale.text, by_behaviour("stale tensor: it belongs to an earlier micro-batch"));
  EXPECT_EQ(running("none").text, "no error");
  EXPECT_EQ(running("no_path", false).text, "no error");  // evaluation needs no gradient
}

TEST(PluginShapePass, FixesNamesAndFindsErrorsBeforeTheFirstStep) {
  Micro micro(fixture_file("behaviour"), fault("metric_more"), {x_field}, 2);
  micro.model->shape_pass(2);
  EXPECT_EQ(micro.model->metric_names(), std::vector<std::string>{"total"});
  EXPECT_PRED2(contains, error_of([&] { micro.loss_sum(Mode::evaluate); }).text, "metric 'extra' was not given");
  Micro pathless(fixture_file("behaviour"), fault("no_path"), {x_field}, 2);
  EXPECT_PRED2(contains, error_of([&] { pathless.model->shape_pass(2); }).text, "the loss depends on no parameter");
}

TEST(PluginRun, CustomFunctionAgainstClosedForm) {
  Micro micro(fixture_file("behaviour"), {}, {x_field}, 2);
  const auto x = micro.data[0].span<float>();
  const auto ready = micro.train();
  EXPECT_EQ(ready.size(), 2u);
  const Range w = micro.parameter("w").range, b = micro.parameter("b").range;
  for (std::size_t i = 0; i < 3; ++i) {
    // Loss Σ w·x² + b over two rows, n = 2.
    EXPECT_NEAR(micro.gradients[w.begin + i], (x[i] * x[i] + x[i + 3] * x[i + 3]) / 2, 1e-6);
    EXPECT_EQ(micro.gradients[b.begin + i], 1);
  }
}

TEST(PluginRun, CustomFunctionInTheMiddleOfTheTape) {
  Micro micro(fixture_file("behaviour"), fault("twice_squared"), {x_field}, 2);
  const auto x = micro.data[0].span<float>();
  micro.train();
  const Range w = micro.parameter("w").range, b = micro.parameter("b").range;
  const auto values = micro.model->parameters();
  for (std::size_t i = 0; i < 3; ++i) {
    double dw = 0, db = 0;
    for (const double v : {double{x[i]}, double{x[i + 3]}}) {  // loss Σ (w·x² + b)²
      const double y = double{values[w.begin + i]} * v * v + double{values[b.begin + i]};
      dw += y * v * v, db += y;
    }
    EXPECT_NEAR(micro.gradients[w.begin + i], dw, 1e-5);
    EXPECT_NEAR(micro.gradients[b.begin + i], db, 1e-5);
  }
}

TEST(PluginRun, BuffersLeftAloneKeepTheirValues) {
  Micro micro(fixture_file("behaviour"), {}, {x_field}, 2);
  std::fill(micro.new_buffers.begin(), micro.new_buffers.end(), 99.0f);
  micro.train();
  const auto& buffers = micro.model->layout().buffers;
  ASSERT_EQ(buffers.size(), 2u);
  for (std::uint64_t i = 0; i < 2; ++i) EXPECT_EQ(micro.new_buffers[buffers[0].range.begin + i], 7);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(micro.new_buffers[buffers[1].range.begin + i], -1);

  Micro writes(fixture_file("behaviour"), fault("new_buffer"), {x_field}, 2);
  std::fill(writes.new_buffers.begin(), writes.new_buffers.end(), 99.0f);
  writes.train();
  EXPECT_EQ(writes.new_buffers[buffers[1].range.begin], 40);
  EXPECT_EQ(writes.new_buffers[buffers[1].range.begin + 1], -1);  // a raw view begins with the old values
}

TEST(PluginRun, RandomNumbersAreAddressed) {
  Micro micro(fixture_file("behaviour"), fault("random"), {x_field}, 2000);
  const auto draw = [&] {
    micro.forward(Mode::train);
    const auto y = micro.model->value(micro.model->outputs()[0].value).span<float>();
    std::vector<float> values(y.begin(), y.end());
    const Range w = micro.parameter("w").range;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] /= micro.model->parameters()[w.begin + i % 3];
    micro.model->reset();
    return values;
  };
  const auto first = draw();
  EXPECT_EQ(draw(), first);
  double sum = 0, squares = 0;
  for (const float value : first) sum += double{value}, squares += std::pow(double{value} - 3, 2);
  const auto count = static_cast<double>(first.size());
  EXPECT_NEAR(sum / count, 3, 5 * 2 / std::sqrt(count));  // five deviations of the mean, and of the variance
  EXPECT_NEAR(squares / count, 4, 5 * 4 * std::sqrt(2 / count));
  micro.block.step += 1;
  EXPECT_NE(draw(), first);
}

TEST(PluginTable, AShortOneTrainsAndPredicts) {
  Micro micro(fixture_file("short_table"), {}, {x_field}, 2);
  micro.model->shape_pass(2);
  micro.train();
  const auto x = micro.data[0].span<float>();
  const Range w = micro.parameter("w").range;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(micro.gradients[w.begin + i], (x[i] + x[i + 3]) / 2, 1e-6);
  micro.model->predict(micro.data, &micro.block, micro.stream);
  EXPECT_EQ(micro.model->value(micro.model->outputs()[0].value).span<float>()[0], 2 * x[0]);
  micro.model->reset();
}

TEST(PluginDescribe, IsADryCreate) {
  const auto library = Library::load(fixture_file("behaviour"), true);
  const Description d = describe(*library, {});
  EXPECT_EQ(d.name, "behaviour");
  EXPECT_EQ(d.version, "0.1");
  EXPECT_EQ(d.keys.size(), 5u);
  ASSERT_EQ(d.parameters.size(), 2u);
  EXPECT_EQ(d.parameters[0].name, "w");
  EXPECT_EQ(d.parameters[0].shape, Shape{3});
  EXPECT_EQ(d.buffers.size(), 2u);
  EXPECT_EQ(describe(*library, config("width", std::int64_t{5})).parameters[0].shape, Shape{5});
  const Description inputs = describe(*library, fault("input_any"));  // no field is missed
  ASSERT_EQ(inputs.inputs.size(), 1u);
  EXPECT_EQ(inputs.inputs[0].name, "x");
  EXPECT_EQ(error_of([&] { (void)describe(*library, config("wide", true)); }).code, ExitCode::usage);
}

TEST(PluginParameterAt, NamesThePadding) {
  Micro micro(fixture_file("behaviour"), {}, {x_field}, 2);
  const Range w = micro.parameter("w").range, b = micro.parameter("b").range;
  EXPECT_EQ(micro.model->parameter_at(w.begin).name, "w");
  EXPECT_EQ(micro.model->parameter_at(w.end).name, "w");
  EXPECT_EQ(micro.model->parameter_at(b.begin + 2).name, "b");
  EXPECT_EQ(b.begin, tile_elements);  // not decayed: behind the decayed group's tile
}

}  // namespace
}  // namespace trireme::plugin
