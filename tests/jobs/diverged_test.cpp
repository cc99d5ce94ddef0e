// A run that diverges ends with 72, names step, micro-batch and parameter, and writes nothing of what came of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/digest.h"
#include "io/hdf5/hdf5.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The step named by "diverged: step N".
int diverged_step(const std::string& text) {
  const std::string words = "diverged: step ";
  const std::size_t at = text.find(words);
  return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + words.size());
}

// Code and summary, all steps before the bad one in metrics.jsonl, nothing of it or after it anywhere.
void expect_diverged(const JobResult& result, int step) {
  EXPECT_EQ(result.exit_code, 72) << result.output;
  EXPECT_EQ(summary_of(result, "result"), "diverged");
  EXPECT_EQ(summary_of(result, "exit_code"), "72");
  EXPECT_EQ(diverged_step(summary_of(result, "first_cause")), step);
  EXPECT_EQ(lines_of(metrics_of(result)), static_cast<std::size_t>(step));
  EXPECT_THAT(metrics_of(result), Not(HasSubstr("null")));
  EXPECT_THAT(result.left_behind, IsEmpty());
}

// Weight decay that is far too strong turns the sign of all weights and makes them 999 times as large, step by step.
TEST(Diverged, NothingIsWrittenOfTheStepThatWasNotFinite) {
  const TestFolder folder("diverged");
  const JobResult result =
      run_job(2, small_job(folder.path(), {},
                           {"optimizer.kind=sgd", "optimizer.lr=1000", "optimizer.weight_decay=1", "eval.every=never",
                            "optimizer.schedule=constant", "optimizer.warmup_steps=0", "checkpoint.every_steps=1"}));
  const int step = diverged_step(result.output);
  ASSERT_GT(step, 2) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("micro-batch "), HasSubstr("samples ")));
  expect_diverged(result, step);
  // The newest checkpoint is one of before (a save waits for the one before it); run_job has verified it.
  // Where the disk is slower than the steps, none was committed yet.
  if (!result.checkpoint.empty()) {
    EXPECT_LE(std::atoi(result.checkpoint.c_str() + 5), step);
    EXPECT_GE(std::atoi(result.checkpoint.c_str() + 5), 1);
  }
}

// Values that f32 can hold, and a model whose gradients it cannot.
TEST(Diverged, TheParameterIsNamed) {
  const TestFolder folder("parameter");
  const fs::path path = folder.path() / "large.h5";
  const auto file = io::Hdf5File::create(path);
  std::vector<float> images(64 * 784, 0.0f);
  for (std::size_t i = 0; i < 64; ++i) images[i * 784] = 3e38f;
  file->create_dataset("/image", Shape{64, 28, 28}, Dtype::f32, {});
  file->create_dataset("/label", Shape{64}, Dtype::i64, {});
  file->write("/image", 0, 64, Dtype::f32, bytes_of(images));
  file->write("/label", 0, 64, Dtype::i64, bytes_of(std::vector<std::int64_t>(64, 3)));
  file->close();
  const JobResult result =
      run_job(2, small_job(folder.path() / "job", {},
                           {"plugin=" TRIREME_TROUBLED, "model={ amplify = true }", "eval.every=never",
                            "data.train=[\"" + path.string() + "\"]", "data.transform=[]", "data.eval=[]"}));
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("diverged: step 0, micro-batch 0 "), HasSubstr("gradient of head.weight")));
  expect_diverged(result, 0);
  EXPECT_EQ(result.checkpoint, "");
}

}  // namespace
}  // namespace trireme::tests
