// The same bits on every number of ranks: parameters, buffers, moments (state_sha256) and all of metrics.jsonl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/hdf5/hdf5.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

using testing::HasSubstr;

class Bits : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path at(const char* name) const { return folder_.path() / name; }
  TestFolder folder_{"bits"};
};

TEST_F(Bits, DropoutBatchNormAndAdamWOnOneTwoAndFourRanks) {
  const JobResult one = run_job(1, small_convnet(at("one")));
  ASSERT_EQ(one.exit_code, 0) << one.output;
  EXPECT_EQ(one.checkpoint, "step-000000000060");
  EXPECT_EQ(lines_of(metrics_of(one)), 61u);  // 60 steps and the evaluation
  EXPECT_THAT(metrics_of(one), HasSubstr("\"evaluation\""));
  EXPECT_EQ(summary_of(one, "reproducible"), "any-world");
  expect_same_end(run_job(2, small_convnet(at("two"))), one);
  expect_same_end(run_job(4, small_convnet(at("four"))), one);

  // What should change the bits does.
  const JobResult other = run_job(1, small_convnet(at("other"), {"train.seed=2"}));
  EXPECT_NE(other.state_sha256, one.state_sha256);
}

TEST_F(Bits, OneMicroBatchARankOnEight) {
  const std::vector<std::string> eight{"train.micro_batches=8", "train.steps=12"};
  const JobResult one = run_job(1, small_job(at("one"), {}, eight));
  ASSERT_EQ(one.exit_code, 0) << one.output;
  expect_same_end(run_job(8, small_job(at("eight"), {}, eight)), one);
}

// Random numbers drawn in evaluation and prediction go by the micro-batch's place, not by who computes it.
TEST_F(Bits, RandomNumbersInEvaluationAndPrediction) {
  const std::vector<std::string> noisy{"plugin=" TRIREME_TROUBLED, "model={ noisy = true }", "train.steps=12"};
  const JobResult one = run_job(1, small_job(at("one"), {}, noisy));
  ASSERT_EQ(one.exit_code, 0) << one.output;
  EXPECT_THAT(metrics_of(one), HasSubstr("\"evaluation\""));
  expect_same_end(run_job(2, small_job(at("two"), {}, noisy)), one);
  expect_same_end(run_job(4, small_job(at("four"), {}, noisy)), one);

  const auto predict = [&](int ranks, const std::string& model) {
    const std::filesystem::path file = at("one") / (std::to_string(ranks) + model + ".h5");
    TestJob job = small_job(at("one"), {"--output", file.string()}, noisy);
    job.sets.push_back("model={ " + model + " }");
    job.command = "predict";
    const JobResult result = run_job(ranks, job);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    std::vector<float> logits(1000);
    if (result.exit_code == 0)
      io::Hdf5File::open(file)->read("/logits", 0, 100, Dtype::f32, std::as_writable_bytes(std::span(logits)));
    return logits;
  };
  const auto first = predict(1, "noisy = true"), plain = predict(1, "noisy = false");
  EXPECT_EQ(predict(2, "noisy = true"), first);
  EXPECT_EQ(predict(4, "noisy = true"), first);
  int unlike = 0;  // the noise of the first batch of 32 and of the second, which are other numbers
  for (std::size_t i = 0; i < 320; ++i)
    unlike += std::abs((first[i] - plain[i]) - (first[320 + i] - plain[320 + i])) > 1e-3f;
  EXPECT_GT(unlike, 300);
}

// Ranks that are no power of two: the library's all-reduce, the same bits when the same run is repeated.
TEST_F(Bits, ThreeRanksRepeatTheirOwn) {
  const std::vector<std::string> six{"train.micro_batches=6", "train.batch=36", "train.steps=12"};
  const JobResult first = run_job(3, small_job(at("first"), {}, six));
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("reproducible: on 3 ranks only"));
  EXPECT_EQ(summary_of(first, "reproducible"), "same-world");
  expect_same_end(run_job(3, small_job(at("again"), {}, six)), first);
}

}  // namespace
}  // namespace trireme::tests
