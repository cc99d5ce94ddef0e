// eval, predict and inspect on a trained run, on any number of ranks; and what the program is linked with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/base/digest.h"
#include "io/hdf5/hdf5.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Commands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TestFolder>("commands");
    // The last evaluation is the best, so eval takes the newest checkpoint.
    trained_ = run_job(2, small_job(folder_->path(), {}, {"checkpoint.keep_best=false", "train.steps=24"}));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  void SetUp() override { ASSERT_EQ(trained_.exit_code, 0) << trained_.output; }

  static JobResult run(int ranks, const char* command, std::vector<std::string> arguments) {
    TestJob job = small_job(folder_->path(), std::move(arguments), {"checkpoint.keep_best=false", "train.steps=24"});
    job.command = command;
    return run_job(ranks, job);
  }
  [[nodiscard]] static std::string newest() {
    return (trained_.run_directory / "checkpoints" / trained_.checkpoint).string();
  }
  static inline std::unique_ptr<TestFolder> folder_;
  static inline JobResult trained_;
};

// The number behind "NAME": in the last line that has it.
std::string last_number(const std::string& text, const std::string& name) {
  const std::size_t at = text.rfind("\"" + name + "\":");
  if (at == std::string::npos) return "none";
  std::istringstream rest(text.substr(at + name.size() + 3));
  std::string number;
  rest >> number;
  return number.substr(0, number.find_first_of(",}"));
}

// Steps taken apart: the same ops as the model applies, each with a floor, and no trace left behind.
TEST_F(Commands, BenchStepTakesTheStepsOfTheJobApart) {
  const std::string job = (trained_.run_directory / "job.toml").string();
  const std::string unused = (folder_->path() / "bench").string();
  for (const char* ranks : {"1", "2"}) {
    const Finished result = run_trireme(
        {"launch", "-n", ranks, "bench", "step", job, "--run-dir", unused, "--steps", "4", "--warm-up", "2", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const std::string text = result.output.substr(result.output.find('{')),
                      parts = text.substr(0, text.find("\"ops\""));
    EXPECT_EQ(last_number(parts, "ranks"), ranks);
    EXPECT_EQ(last_number(parts, "steps"), "4");
    EXPECT_EQ(last_number(parts, "batch"), "32");
    for (const char* part :
         {"step", "forward", "backward", "update", "forward_floor", "backward_floor", "update_floor"})
      EXPECT_GT(std::atof(last_number(parts, part).c_str()), 0) << part << "\n" << text;
    const double step = std::atof(last_number(parts, "step").c_str()),
                 floor = std::atof(last_number(parts, "floor").c_str());
    EXPECT_NEAR(std::atof(last_number(parts, "of_floor").c_str()), floor / step, 1e-9);
    std::size_t linears = 0;
    for (std::size_t at = 0; (at = text.find("\"op\": \"linear\"", at + 1)) != std::string::npos;) ++linears;
    EXPECT_EQ(linears, 3u) << text;  // three layers of three shapes
    EXPECT_FALSE(fs::exists(unused));
  }
  const Finished table = run_trireme({"bench", "step", job, "--steps", "3", "--warm-up", "1"});
  EXPECT_EQ(table.exit_code, 0) << table.output;
  EXPECT_THAT(table.output, HasSubstr("softmax_cross_entropy"));
  EXPECT_THAT(table.output, HasSubstr("of the floor"));
}

TEST_F(Commands, EvalGivesTheLastEvaluationOnAnyNumberOfRanks) {
  const std::string metrics = metrics_of(trained_);
  const std::string last = metrics.substr(metrics.rfind("\"evaluation\""));
  const std::string accuracy = last_number(last, "accuracy"), loss = last_number(last, "loss");
  ASSERT_GT(std::atof(accuracy.c_str()), 0.2) << metrics;  // ten classes: it has learned
  for (const int ranks : {1, 2, 4}) {
    const JobResult result = run(ranks, "eval", {"--json", "--checkpoint", newest()});
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(last_number(result.output, "accuracy"), accuracy) << result.output;
    EXPECT_EQ(last_number(result.output, "loss"), loss);
    EXPECT_EQ(last_number(result.output, "samples"), "100");
  }
}

TEST_F(Commands, PredictWritesTheSameOnAnyNumberOfRanks) {
  std::string first;
  for (const int ranks : {1, 2, 4}) {
    const fs::path output = folder_->path() / ("predictions-" + std::to_string(ranks) + ".h5");
    const JobResult result = run(ranks, "predict", {"--output", output.string(), "--checkpoint", newest()});
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const auto file = io::Hdf5File::open(output);
    EXPECT_THAT(file->datasets(), testing::ElementsAre("/logits"));
    EXPECT_EQ(file->info("/logits").shape, (Shape{100, 10}));
    std::vector<float> logits(1000);
    file->read("/logits", 0, 100, Dtype::f32, std::as_writable_bytes(std::span(logits)));
    const std::string bytes(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << ranks << " ranks";
    if (ranks > 1) continue;

    std::vector<std::int64_t> labels(100);
    io::Hdf5File::open(small_data() / "test-0.h5")
        ->read("/label", 0, 100, Dtype::i64, std::as_writable_bytes(std::span(labels)));
    int right = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = std::span(logits).subspan(10 * i, 10);
      right += std::max_element(row.begin(), row.end()) - row.begin() == labels[i];
    }
    const std::string metrics = metrics_of(trained_);
    const std::string last = metrics.substr(metrics.rfind("\"evaluation\""));
    EXPECT_NEAR(right / 100.0, std::atof(last_number(last, "accuracy").c_str()), 1e-12);
  }
  const JobResult again = run(1, "predict", {"--output", (folder_->path() / "predictions-1.h5").string()});
  EXPECT_EQ(again.exit_code, 64) << again.output;
}

// Three batches on four ranks: one rank has nothing to write, and it is not the one that makes the datasets.
TEST_F(Commands, PredictWithFewerBatchesThanRanks) {
  std::vector<std::vector<float>> logits;
  for (const int ranks : {1, 4}) {
    const fs::path output = folder_->path() / ("few-" + std::to_string(ranks) + ".h5");
    const JobResult result =
        run(ranks, "predict", {"--output", output.string(), "--checkpoint", newest(), "--set", "train.batch=40"});
    ASSERT_EQ(result.exit_code, 0) << result.output;
    logits.emplace_back(1000);
    io::Hdf5File::open(output)->read("/logits", 0, 100, Dtype::f32, std::as_writable_bytes(std::span(logits.back())));
    EXPECT_FALSE(fs::exists(output.string() + ".part"));
  }
  EXPECT_TRUE(logits[0] == logits[1]);
  const JobResult nowhere = run(2, "predict", {"--output", (folder_->path() / "no/folder.h5").string()});
  EXPECT_EQ(nowhere.exit_code, 64) << nowhere.output;
  EXPECT_THAT(nowhere.output, HasSubstr("its folder is not there"));
}

TEST_F(Commands, InspectShowsAndVerifies) {
  const Finished text = run_trireme({"inspect", newest()});
  EXPECT_EQ(text.exit_code, 0) << text.output;
  EXPECT_THAT(text.output, HasSubstr(trained_.state_sha256));
  EXPECT_THAT(text.output, HasSubstr("fc1.weight"));
}

TEST_F(Commands, EvalNeedsATrainedRun) {
  TestJob job = small_job(folder_->path() / "untrained");
  job.command = "eval";
  const JobResult result = run_job(2, job);
  EXPECT_EQ(result.exit_code, 64) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no checkpoint in"));
}

// So it starts where there is neither toolkit nor driver.
TEST(Linkage, NoCudaLibraryIsNeeded) {
  const fs::path root = fs::path(program()).parent_path().parent_path();
  for (const fs::path& file : {fs::path(program()), root / "lib" / "libtrireme.so"}) {
    ProcessOptions readelf;
    readelf.command = {"readelf", "-d", "-W", file.string()};
    const Finished dynamic = run_process(readelf);
    ASSERT_EQ(dynamic.exit_code, 0) << dynamic.output;
    std::istringstream lines(dynamic.output);
    int needed = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("(NEEDED)") == std::string::npos) continue;
      ++needed;
      for (const char* const cuda : {"libcu", "libnv", "libnccl"}) EXPECT_THAT(line, Not(HasSubstr(cuda))) << file;
    }
    EXPECT_GT(needed, 1) << dynamic.output;
  }
}

}  // namespace
}  // namespace trireme::tests
