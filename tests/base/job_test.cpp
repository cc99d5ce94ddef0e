// Jobs: the table, parsing, --set, paths, and the texts made of a job. Refusals are in job_errors_test.cpp.
#include "core/base/job.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <locale>
#include <set>

#include "core/base/file.h"
#include "core/base/job_keys.h"
#include "tests/base/folder.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* complete = R"(# a job as users write it
plugin = "convnet"
device = "cpu"

[model]
dropout = 0.25
hidden = 128
fancy = true
name = "a \"quoted\" name"

[data]
fields = { image = "/image", label = "/label" }
train = ["fashion/train-*.h5", "/abs/more.h5"]
eval = ["fashion/test-*.h5"]
shuffle = "block"
transform = ["image: scale 1/255", "image: flip"]

[train]
batch = 64
micro_batches = 4
epochs = 3
seed = 9

[optimizer]
kind = "adamw"
lr = 1e-3
weight_decay = 1

[eval]
every = "500 steps"
best = "accuracy:max"

[checkpoint]
every_steps = 200
)";

constexpr const char* least = R"(
plugin = "p"
data.fields = { x = "/x" }
data.train = ["a.h5"]
train.steps = 5
)";

Job parsed(std::string_view text, const std::vector<std::string>& sets = {}) {
  return parse_job(text, "/jobs/deep/mnist.toml", sets);
}

TEST(ParseJob, ReadsEveryKindOfValue) {
  const Job job = parsed(complete);
  EXPECT_EQ(job.plugin, "convnet");
  EXPECT_EQ(job.device, "cpu");
  EXPECT_EQ(std::get<double>(job.model.at("dropout").value), 0.25);
  EXPECT_EQ(std::get<std::int64_t>(job.model.at("hidden").value), 128);
  EXPECT_EQ(std::get<bool>(job.model.at("fancy").value), true);
  EXPECT_EQ(std::get<std::string>(job.model.at("name").value), "a \"quoted\" name");
  EXPECT_EQ(job.model.at("hidden").place, "/jobs/deep/mnist.toml:7");
  EXPECT_EQ(job.data.fields, (std::map<std::string, std::string>{{"image", "/image"}, {"label", "/label"}}));
  EXPECT_THAT(job.data.train, ElementsAre("/jobs/deep/fashion/train-*.h5", "/abs/more.h5"));
  EXPECT_THAT(job.data.eval, ElementsAre("/jobs/deep/fashion/test-*.h5"));
  EXPECT_EQ(job.data.shuffle, "block");
  EXPECT_THAT(job.data.transform, ElementsAre("image: scale 1/255", "image: flip"));
  EXPECT_EQ(job.train.batch, 64);
  EXPECT_EQ(job.train.micro_batches, 4);
  EXPECT_EQ(job.train.epochs, 3);
  EXPECT_EQ(job.train.steps, 0);
  EXPECT_EQ(job.optimizer.kind, "adamw");
  EXPECT_EQ(job.optimizer.lr, 1e-3);
  EXPECT_EQ(job.optimizer.weight_decay, 1.0);  // an integer where a number is wanted
  EXPECT_EQ(job.eval.every_steps, 500);
  EXPECT_FALSE(job.eval.every_epoch);
  EXPECT_EQ(job.eval.best_metric, "accuracy");
  EXPECT_TRUE(job.eval.best_is_max);
  EXPECT_EQ(job.checkpoint.every_steps, 200);
  EXPECT_EQ(job.run.dir, "/jobs/deep/runs/mnist");
  EXPECT_EQ(job.file, "/jobs/deep/mnist.toml");
}

TEST(ParseJob, DefaultsAreThoseOfTheStruct) {
  const Job job = parsed(least), fallback;
  for (const auto& row : job_table::rows()) {
    const std::set<std::string> given = {"plugin", "data.fields", "data.train", "train.steps", "run.dir"};
    if (given.contains(row.key.name)) continue;
    EXPECT_EQ(job_table::text_of(row.get(job)), job_table::text_of(row.get(fallback))) << row.key.name;
    EXPECT_EQ(row.key.fallback, job_table::text_of(row.get(fallback))) << row.key.name;
  }
}

TEST(ParseJob, EvaluationTimesAndBestMetric) {
  const auto eval = [](const std::string& every, const std::string& best) {
    return parsed(least, {"data.eval=e.h5", "eval.every=" + every, "eval.best=" + best}).eval;
  };
  EXPECT_TRUE(eval("epoch", "loss:min").every_epoch);
  EXPECT_FALSE(eval("epoch", "loss:min").best_is_max);
  EXPECT_EQ(eval("epoch", "a:b:max").best_metric, "a:b");
  EXPECT_EQ(eval("1 step", "").every_steps, 1);
  EXPECT_EQ(eval("7 steps", "").every_steps, 7);
  EXPECT_EQ(eval("never", "").every_steps, 0);
  EXPECT_EQ(eval("never", "").best_metric, "");
}

TEST(ParseJob, IgnoresTheLocale) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));  // owns it
  const Job job = parsed(least, {"optimizer.lr=0.125", "train.batch=4096"});
  const std::string text = to_toml(job);
  std::locale::global(before);
  EXPECT_EQ(job.optimizer.lr, 0.125);
  EXPECT_THAT(text, HasSubstr("lr = 0.125\n"));
  EXPECT_THAT(text, HasSubstr("batch = 4096\n"));
}

// For each key: a value that differs from the default, as written after --set, and as text_of shows it.
struct Sample {
  std::string written, shown;
};
Sample sample_of(const job_table::Row& row) {
  const JobKey& key = row.key;
  if (key.name == "plugin") return {"other", "\"other\""};
  if (key.name == "run.dir") return {"/runs/x", "\"/runs/x\""};
  if (key.name == "eval.every") return {"9 steps", "\"9 steps\""};
  if (key.name == "eval.best") return {"loss:min", "\"loss:min\""};
  if (key.name == "data.label") return {"y", "\"y\""};
  if (key.name == "data.transform") return {R"(["x: flip"])", R"(["x: flip"])"};
  if (key.name == "train.micro_batches") return {"2", "2"};
  if (key.type == "integer") return {"4", "4"};
  if (key.type == "number")
    return {key.name == "train.watchdog_s" ? "2.5" : "0.5", key.name == "train.watchdog_s" ? "2.5" : "0.5"};
  if (key.type == "boolean") {
    const bool flipped = !std::get<bool>(row.fallback);
    return {flipped ? "true" : "false", flipped ? "true" : "false"};
  }
  if (key.type == "text") {  // the last of "a | b | c"
    const std::string last = key.range.substr(key.range.rfind(' ') + 1);
    return {last, "\"" + last + "\""};
  }
  if (key.type == "texts") return {"/d/*.h5", "[\"/d/*.h5\"]"};
  if (key.type == "table of text") return {R"({ y = "/y" })", R"({ y = "/y" })"};
  return {"{ a = 1 }", "{ a = 1 }"};
}

TEST(Set, ReachesEveryKeyOfTheTable) {
  for (const auto& row : job_table::rows()) {
    const Sample sample = sample_of(row);
    std::vector<std::string> sets = {"data.eval=/e.h5", row.key.name + "=" + sample.written};
    const Job job = parsed(least, sets);
    EXPECT_EQ(job_table::text_of(row.get(job)), sample.shown) << row.key.name;
    EXPECT_NE(job_table::text_of(row.get(parsed(least))), sample.shown) << row.key.name;
  }
}

TEST(Set, LaterOnesWinAndBareWordsAreText) {
  const Job job = parsed(least, {"train.batch=8", "train.batch=16", "plugin=my#net", "run.dir=/2024", "data.label=1",
                                 "model.width=7", "model.kind=wide", "model.rate=1e-2", "model.on=true"});
  EXPECT_EQ(job.train.batch, 16);
  EXPECT_EQ(job.plugin, "my#net");
  EXPECT_EQ(job.data.label, "1");  // text needs no quotes, even where it looks like a number
  EXPECT_EQ(std::get<std::int64_t>(job.model.at("width").value), 7);
  EXPECT_EQ(std::get<std::string>(job.model.at("kind").value), "wide");
  EXPECT_EQ(std::get<double>(job.model.at("rate").value), 0.01);
  EXPECT_EQ(std::get<bool>(job.model.at("on").value), true);
  EXPECT_EQ(job.model.at("width").place, "--set model.width=7");
}

TEST(Set, TextOutsideOfAscii) {
  const Job job = parsed(least, {"model.a=é", "model.b=\"é\"", "data.train=/données/*.h5"});
  EXPECT_EQ(std::get<std::string>(job.model.at("a").value), "é");
  EXPECT_EQ(std::get<std::string>(job.model.at("b").value), "é");
  EXPECT_THAT(job.data.train, ElementsAre("/données/*.h5"));
}

TEST(Set, OneFieldAmongOthers) {
  const Job job = parsed(least, {"data.fields.y=/other/y", "data.fields.x=/new"});
  EXPECT_EQ(job.data.fields, (std::map<std::string, std::string>{{"x", "/new"}, {"y", "/other/y"}}));
}

TEST(Set, StepsReplaceEpochsOfTheFile) {
  const Job steps = parsed(complete, {"train.steps=60"});
  EXPECT_EQ(steps.train.steps, 60);
  EXPECT_EQ(steps.train.epochs, 0);
  const Job epochs = parsed(least, {"train.epochs=2"});
  EXPECT_EQ(epochs.train.epochs, 2);
  EXPECT_EQ(epochs.train.steps, 0);
}

TEST(Paths, AreRelativeToTheJobFile) {
  const Job job = parsed(least, {"plugin=./build/net.so", "data.train=[\"../d/*.h5\", \"./e.h5\"]", "run.dir=out/a"});
  EXPECT_EQ(job.plugin, "/jobs/deep/build/net.so");
  EXPECT_THAT(job.data.train, ElementsAre("/jobs/deep/../d/*.h5", "/jobs/deep/e.h5"));  // .. may follow a link
  EXPECT_EQ(job.run.dir, "/jobs/deep/out/a");
}

TEST(Paths, VariablesAreExpanded) {
  ::setenv("TRIREME_TEST_ROOT", "/scratch/u", 1);
  const Job job = parsed(least, {"plugin=${TRIREME_TEST_ROOT}/net.so", "run.dir=$TRIREME_TEST_ROOT",
                                 "data.train=[\"$TRIREME_TEST_ROOT/a$$b.h5\"]", "data.eval=x-${TRIREME_TEST_ROOT}y"});
  EXPECT_EQ(job.plugin, "/scratch/u/net.so");
  EXPECT_EQ(job.run.dir, "/scratch/u");
  EXPECT_THAT(job.data.train, ElementsAre("/scratch/u/a$b.h5"));
  EXPECT_THAT(job.data.eval, ElementsAre("/jobs/deep/x-/scratch/uy"));
  ::unsetenv("TRIREME_TEST_ROOT");
}

void expect_same(const Job& a, const Job& b) {
  for (const auto& row : job_table::rows()) {
    EXPECT_EQ(job_table::text_of(row.get(a)), job_table::text_of(row.get(b))) << row.key.name;
  }
  EXPECT_EQ(a.data.train, b.data.train);
  EXPECT_EQ(a.optimizer.lr, b.optimizer.lr);
  ASSERT_EQ(a.model.size(), b.model.size());
  for (const auto& [key, value] : a.model) EXPECT_EQ(b.model.at(key).value, value.value) << key;
}

TEST(ToToml, ParsesBackToTheSameJob) {
  const std::vector<std::string> awkward = {"model.whole=2.0",
                                            "model.\"odd key\"=1",
                                            "model.tiny=1e-300",
                                            "model.third=0.3333333333333333",
                                            "model.text=\"a\\\\b\\n\\t\\u0001\\\"é\"",
                                            "model.low=-9223372036854775808",
                                            "train.seed=9223372036854775807",
                                            "data.train=[\"/a$$b/*.h5\", \"/c d/\\\"e\\\".h5\"]",
                                            "eval.best=loss:min"};
  for (const char* const text : {complete, least}) {
    const Job job = parsed(text, awkward);
    const std::string written = to_toml(job);
    const Job again = parse_job(written, "/elsewhere/run/job.toml", {});
    expect_same(job, again);
    EXPECT_EQ(to_toml(again), written);
  }
  const Job job = parsed(least, awkward);
  EXPECT_TRUE(std::holds_alternative<double>(parsed(to_toml(job)).model.at("whole").value));
  EXPECT_EQ(std::get<std::string>(job.model.at("text").value), "a\\b\n\t\x01\"é");
}

TEST(ToToml, HasEveryKey) {
  const std::string text = fmt::format("\n{}", to_toml(parsed(complete)));
  for (const JobKey& key : job_keys()) {
    const std::string leaf = key.name.substr(key.name.rfind('.') + 1);
    const std::string line = key.name == "model" ? "\n[model]\n" : fmt::format("\n{} = ", leaf);
    EXPECT_THAT(text, HasSubstr(line)) << key.name;
  }
}

TEST(Identity, HoldsWhatChangesBitsAndNothingElse) {
  const auto base = identity(parsed(complete));
  EXPECT_EQ(base.at("plugin"), "\"convnet\"");
  EXPECT_EQ(base.at("train.batch"), "64");
  EXPECT_EQ(base.at("optimizer.lr"), "0.001");
  EXPECT_EQ(base.at("model.dropout"), "0.25");
  EXPECT_EQ(base.at("data.fields.image"), "\"/image\"");
  EXPECT_EQ(base.at("data.transform"), "[\"image: scale 1/255\", \"image: flip\"]");

  const std::vector<std::string> same = {"device=auto",
                                         "plugin_trust=true",
                                         "data.train=/other/*.h5",
                                         "data.eval=/e.h5",
                                         "data.memory_mib=7",
                                         "data.classes=10",
                                         "data.label=y",
                                         "train.threads=3",
                                         "train.watchdog_s=9",
                                         "train.bucket_kib=64",
                                         "eval.every=epoch",
                                         "eval.batch=9",
                                         "eval.best=loss:min",
                                         "checkpoint.every_steps=1",
                                         "checkpoint.keep_last=9",
                                         "checkpoint.keep_best=false",
                                         "run.dir=/x",
                                         "run.log_every_steps=3",
                                         "plugin=/some/where/convnet.so"};
  for (const auto& one : same) EXPECT_EQ(identity(parsed(complete, {one})), base) << one;

  const std::vector<std::string> other = {"plugin=mlp",
                                          "precision=tf32",
                                          "reproducible=same-world",
                                          "model.dropout=0.5",
                                          "model.new=1",
                                          "data.fields.image=/img",
                                          "data.shuffle=none",
                                          "data.window=3",
                                          "data.transform=[]",
                                          "train.batch=128",
                                          "train.micro_batches=2",
                                          "train.epochs=4",
                                          "train.steps=9",
                                          "train.seed=2",
                                          "optimizer.kind=sgd",
                                          "optimizer.lr=1",
                                          "optimizer.momentum=0",
                                          "optimizer.nesterov=true",
                                          "optimizer.beta1=0",
                                          "optimizer.beta2=0",
                                          "optimizer.epsilon=1",
                                          "optimizer.weight_decay=0",
                                          "optimizer.schedule=cosine",
                                          "optimizer.warmup_steps=1",
                                          "optimizer.lr_end=1",
                                          "optimizer.clip_norm=1"};
  for (const auto& one : other) EXPECT_NE(identity(parsed(complete, {one})), base) << one;

  std::set<std::string> covered = {"model", "data.fields"};  // by their parts
  for (const auto& list : {same, other}) {
    for (const auto& one : list) covered.insert(one.substr(0, one.find('=')));
  }
  for (const JobKey& key : job_keys()) EXPECT_TRUE(covered.contains(key.name)) << key.name;
}

TEST(Help, ShowsEveryKeyWithItsDefaultRangeAndMeaning) {
  const std::string help = help_keys(), page = reference_page();
  std::set<std::string> names;
  for (const JobKey& key : job_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name << " stands twice";
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_EQ(key.help.find('\n'), std::string::npos) << key.name;
    EXPECT_THAT(help, HasSubstr("\n" + key.name + " ")) << key.name;
    EXPECT_THAT(help, HasSubstr(key.range));
    EXPECT_THAT(help, HasSubstr(key.help));
    EXPECT_THAT(page, HasSubstr("| `" + key.name + "` | " + key.type + " |")) << key.name;
  }
  EXPECT_THAT(help, HasSubstr("integer, samples, 1 … 2^31; default 128\n"));
  EXPECT_THAT(page, HasSubstr("| `train.batch` | integer | samples | `128` | 1 … 2^31 | global batch"));
  EXPECT_THAT(page, HasSubstr("auto \\| cpu \\| cuda"));
}

TEST(ReadJob, ReadsAFile) {
  const Folder folder;
  replace_file(folder / "net.toml", least);
  const Job job = read_job(folder / "net.toml", {});
  EXPECT_THAT(job.data.train, ElementsAre(folder / "a.h5"));
  EXPECT_EQ(job.run.dir.filename(), "net");
}

}  // namespace
}  // namespace trireme
