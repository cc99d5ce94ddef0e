// The jobs' files, and the questions.
#include "tests/jobs/small_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/jobs/make_data.h"

namespace trireme::tests {
namespace {

using testing::IsEmpty;

constexpr const char* conditional_net = R"(
plugin = "conditional-net"
device = "cpu"
[model]
hidden = 32
[data]
fields = { image = "/image", label = "/label" }
transform = ["image: scale 1/255"]
[train]
batch = 32
micro_batches = 4
steps = 30
threads = 1
bucket_kib = 32
[optimizer]
kind = "adamw"
lr = 1e-3
schedule = "cosine"
warmup_steps = 4
[eval]
every = "epoch"
best = "accuracy:max"
[checkpoint]
every_steps = 8
)";

constexpr const char* convnet = R"(
plugin = "convnet"
device = "cpu"
[model]
width1 = 8
width2 = 8
hidden = 32
dropout = 0.25
[data]
fields = { image = "/image", label = "/label" }
transform = ["image: scale 1/255", "image: flip"]
[train]
batch = 32
micro_batches = 4
steps = 60
threads = 1
bucket_kib = 16
[optimizer]
kind = "adamw"
lr = 2e-3
weight_decay = 0.01
schedule = "cosine"
warmup_steps = 10
clip_norm = 1.0
)";

TestJob on_small_data(const char* toml, const std::filesystem::path& folder, std::vector<std::string> sets) {
  TestJob job;
  job.toml = toml;
  job.folder = folder;
  job.sets = {"data.train=[\"" + (small_data() / "train-*.h5").string() + "\"]",
              "data.eval=[\"" + (small_data() / "test-*.h5").string() + "\"]"};
  job.sets.insert(job.sets.end(), sets.begin(), sets.end());
  return job;
}

}  // namespace

const std::filesystem::path& small_data() {
  static const TestFolder folder("small-data");
  static const bool made = [] {
    make_data(folder.path(), "train", {.files = 2, .samples = 128, .last_samples = 100});
    make_data(folder.path(), "test", {.files = 1, .samples = 100, .seed = 2});
    return true;
  }();
  (void)made;
  return folder.path();
}

TestJob small_job(const std::filesystem::path& folder, std::vector<std::string> arguments,
                  std::vector<std::string> sets) {
  TestJob job = on_small_data(conditional_net, folder, std::move(sets));
  job.arguments = std::move(arguments);
  return job;
}

TestJob small_convnet(const std::filesystem::path& folder, std::vector<std::string> sets) {
  return on_small_data(convnet, folder, std::move(sets));
}

std::vector<std::string> train_words(const TestJob& job) {
  std::filesystem::create_directories(job.folder);
  std::ofstream(job.folder / "job.toml") << job.toml;
  std::vector<std::string> words{"train", (job.folder / "job.toml").string(), "--run-dir",
                                 (job.folder / "run").string()};
  for (const std::string& set : job.sets) words.insert(words.end(), {"--set", set});
  words.insert(words.end(), job.arguments.begin(), job.arguments.end());
  return words;
}

std::string metrics_of(const JobResult& result) { return read_text(result.run_directory / "metrics.jsonl"); }

std::string summary_of(const JobResult& result, const std::string& key) {
  const auto json = nlohmann::json::parse(read_text(result.run_directory / "summary.json"), nullptr, false);
  if (!json.is_object() || !json.contains(key)) return "";
  return json[key].is_string() ? json[key].get<std::string>() : json[key].dump();
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void expect_same_end(const JobResult& result, const JobResult& undisturbed) {
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.state_sha256, undisturbed.state_sha256);
  EXPECT_EQ(result.checkpoint, undisturbed.checkpoint);
  EXPECT_EQ(metrics_of(result), metrics_of(undisturbed));
  EXPECT_EQ(undisturbed.state_sha256.size(), 64u);
  EXPECT_EQ(summary_of(result, "result"), "done");
  EXPECT_THAT(result.left_behind, IsEmpty());
}

void expect_gone(const JobResult& result, int code) {
  EXPECT_EQ(result.exit_code, code) << result.output;
  EXPECT_FALSE(result.timed_out);
  EXPECT_LT(result.gone_after_fault_s, 10) << result.output;
  EXPECT_THAT(result.left_behind, IsEmpty()) << result.output;
}

}  // namespace trireme::tests
