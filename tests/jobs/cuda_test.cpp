// Whole runs on the CUDA path (TRIREME_CUDA_MODULE names the module): the same bits on every number of ranks, the CPU's losses,
// checkpoints that go from one device to the other, and what is said where the device does not do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/jobs/make_data.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Cuda : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path at(const char* name) const { return folder_.path() / name; }
  // TRIREME_CUDA_MODULE comes from this test's own environment.
  [[nodiscard]] static JobResult run(int ranks, const TestJob& job, const std::string& fault = "") {
    Faults with;
    with.inject = fault;
    with.timeout_s = 240;
    return run_job(ranks, job, with);
  }
  TestFolder folder_{"cuda"};
};

// conditional-net as in bits_test, on `device`; a constant rate, so that a run may go on for longer.
TestJob job_on(const std::string& device, const std::filesystem::path& folder, int steps,
               std::vector<std::string> more = {}) {
  std::vector<std::string> sets{"device=" + device, "train.steps=" + std::to_string(steps),
                                "optimizer.schedule=constant", "optimizer.warmup_steps=0", "checkpoint.every_steps=25"};
  sets.insert(sets.end(), more.begin(), more.end());
  return small_job(folder, {}, std::move(sets));
}

// The losses of training steps and of evaluations, in order.
std::vector<double> losses_of(const JobResult& result) {
  std::istringstream lines(metrics_of(result));
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("loss")) losses.push_back(json["loss"].get<double>());
  }
  return losses;
}

// Relative to the loss: the order of f32 additions in products and of exp's last digits differs between devices, 6e-8 each, and grows
// over the steps.
void expect_near(const JobResult& result, const JobResult& reference, std::size_t least) {
  const auto mine = losses_of(result), theirs = losses_of(reference);
  ASSERT_EQ(mine.size(), theirs.size());
  ASSERT_GE(mine.size(), least);
  for (std::size_t i = 0; i < mine.size(); ++i)
    EXPECT_TRUE(std::abs(mine[i] - theirs[i]) <= 1e-5 * std::abs(theirs[i]))
        << i << ": " << mine[i] << ", " << theirs[i];
}

TEST_F(Cuda, TheSameBitsOnOneTwoAndFourRanksAndTheLossesOfTheCpu) {
  const JobResult cpu = run(1, job_on("cpu", at("cpu"), 60));
  ASSERT_EQ(cpu.exit_code, 0) << cpu.output;
  const JobResult one = run(1, job_on("cuda", at("one"), 60));
  ASSERT_EQ(one.exit_code, 0) << one.output;
  EXPECT_THAT(one.output, AllOf(HasSubstr("device: "), HasSubstr("cuBLASLt")));
  expect_near(one, cpu, 60);
  EXPECT_NE(one.state_sha256, cpu.state_sha256);  // it was another device
  for (const int ranks : {2, 4}) {
    const JobResult several = run(ranks, job_on("cuda", at(ranks == 2 ? "two" : "four"), 60));
    EXPECT_THAT(several.output, HasSubstr("nccl: "));
    expect_same_end(several, one);
  }
}

TEST_F(Cuda, ThreeRanksRepeatTheirOwnByTheLibrarysSum) {
  const std::vector<std::string> six{"train.micro_batches=6", "train.batch=36", "device=cuda", "train.steps=8"};
  const JobResult first = run(3, small_job(at("first"), {}, six));
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_EQ(summary_of(first, "reproducible"), "same-world");
  expect_same_end(run(3, small_job(at("again"), {}, six)), first);
}

TEST_F(Cuda, ACheckpointGoesOnOnTheOtherDevice) {
  const JobResult cpu = run(1, job_on("cpu", at("cpu"), 60));
  ASSERT_EQ(cpu.exit_code, 0) << cpu.output;
  // There and back again, on two ranks in between.
  const JobResult begun = run(1, job_on("cpu", at("mixed"), 20));
  ASSERT_EQ(begun.exit_code, 0) << begun.output;
  const JobResult over = run(2, job_on("cuda", at("mixed"), 40));
  ASSERT_EQ(over.exit_code, 0) << over.output;
  EXPECT_THAT(over.output, AllOf(HasSubstr("resumed: "), HasSubstr("no longer promised: device")));
  const JobResult back = run(1, job_on("cpu", at("mixed"), 60));
  ASSERT_EQ(back.exit_code, 0) << back.output;
  // The shorter runs ended with an evaluation of their own.
  EXPECT_EQ(back.checkpoint, cpu.checkpoint);
  const auto mine = losses_of(back), theirs = losses_of(cpu);
  ASSERT_FALSE(mine.empty());
  EXPECT_TRUE(std::abs(mine.back() - theirs.back()) <= 1e-5 * std::abs(theirs.back()))
      << mine.back() << ", " << theirs.back();
  EXPECT_TRUE(std::abs(mine[mine.size() - 2] - theirs[theirs.size() - 2]) <=
              1e-5 * std::abs(theirs[theirs.size() - 2]));

  // Resumed on the device itself: the bits of a run that never stopped.
  const JobResult through = run(1, job_on("cuda", at("through"), 40));
  const JobResult part = run(2, job_on("cuda", at("parts"), 20));
  ASSERT_EQ(part.exit_code, 0) << part.output;
  const JobResult rest = run(1, job_on("cuda", at("parts"), 40));
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_EQ(rest.state_sha256, through.state_sha256);
}

TEST_F(Cuda, PredictAndEvalReadTheDevice) {
  const JobResult trained = run(1, job_on("cuda", at("run"), 20));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  TestJob eval = job_on("cuda", at("run"), 20);
  eval.command = "eval";
  const JobResult on_cuda = run(2, eval);
  EXPECT_EQ(on_cuda.exit_code, 0) << on_cuda.output;
  EXPECT_THAT(on_cuda.output, AllOf(HasSubstr("accuracy"), HasSubstr("samples     100")));
  TestJob predict = job_on("cuda", at("run"), 20);
  predict.command = "predict";
  predict.arguments = {"--output", (at("run") / "out.h5").string()};
  const JobResult predicted = run(1, predict);
  EXPECT_EQ(predicted.exit_code, 0) << predicted.output;
  EXPECT_TRUE(std::filesystem::exists(at("run") / "out.h5"));
}

TEST_F(Cuda, Tf32IsOfCudaAlone) {
  const JobResult f32 = run(1, job_on("cuda", at("f32"), 10));
  const JobResult tf32 = run(1, job_on("cuda", at("tf32"), 10, {"precision=tf32"}));
  ASSERT_EQ(tf32.exit_code, 0) << tf32.output;
  EXPECT_NE(tf32.state_sha256, f32.state_sha256);
  const auto mine = losses_of(tf32), exact = losses_of(f32);
  ASSERT_EQ(mine.size(), exact.size());
  // 10 bits of mantissa: 5e-4 an operand, averaged over the terms of a product. Later steps start from parameters that AdamW moved by
  // the signs of small gradients.
  for (std::size_t i = 0; i < mine.size(); ++i)
    EXPECT_TRUE(std::abs(mine[i] - exact[i]) <= (i == 0 ? 1e-3 : 3e-2) * exact[i])
        << i << ": " << mine[i] << ", " << exact[i];
  const JobResult refused = run(1, job_on("cpu", at("cpu"), 10, {"precision=tf32"}));
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.output, HasSubstr("precision = \"tf32\""));
}

TEST_F(Cuda, AModelWithAnOpThatTheModuleLacksTakesTheCpu) {
  const JobResult chosen = run(1, small_convnet(at("auto"), {"device=auto", "train.steps=2"}));
  EXPECT_EQ(chosen.exit_code, 0) << chosen.output;
  EXPECT_THAT(chosen.output, AllOf(HasSubstr("lacks op 'conv2d'"), HasSubstr("training on the CPU")));
  const JobResult forced = run(2, small_convnet(at("cuda"), {"device=cuda", "train.steps=2"}));
  EXPECT_EQ(forced.exit_code, 64) << forced.output;
  EXPECT_THAT(forced.output, HasSubstr("lacks op 'conv2d'"));
  const JobResult automatic = run(1, job_on("auto", at("net"), 4));
  EXPECT_EQ(automatic.exit_code, 0) << automatic.output;
  EXPECT_THAT(automatic.output, HasSubstr("cuBLASLt"));
}

// As in diverged_test: weight decay that is far too strong.
TEST_F(Cuda, ADivergedRunNamesItsStepAndMicroBatch) {
  const JobResult diverged = run(2, job_on("cuda", at("run"), 60,
                                           {"optimizer.kind=sgd", "optimizer.lr=1000", "optimizer.weight_decay=1",
                                            "eval.every=never", "checkpoint.every_steps=1"}));
  EXPECT_EQ(diverged.exit_code, 72) << diverged.output;
  EXPECT_THAT(diverged.output, AllOf(HasSubstr("diverged: step "), HasSubstr("micro-batch "), HasSubstr("samples ")));
  EXPECT_EQ(summary_of(diverged, "result"), "diverged");
}

// A kernel cannot throw: it is told a step late, in the words that the CPU has for it.
TEST_F(Cuda, ALabelOutOfRangeIsNamed) {
  make_data(folder_.path(), "twelve", {.files = 1, .samples = 228, .classes = 12});
  const std::string twelve = "data.train=[\"" + at("twelve-*.h5").string() + "\"]";
  std::string words[2];
  for (const char* device : {"cpu", "cuda"}) {
    const JobResult refused = run(1, job_on(device, at(device), 10, {twelve}));
    EXPECT_EQ(refused.exit_code, 65) << refused.output;
    const std::size_t from = refused.output.find("accuracy: row "), to = refused.output.find('\n', from);
    ASSERT_NE(from, std::string::npos) << refused.output;
    words[device == std::string("cuda") ? 1 : 0] = refused.output.substr(from, to - from);
  }
  EXPECT_EQ(words[0], words[1]);
}

// The others' streams wait inside NCCL for the rank that is gone; its communicator is aborted and all leave.
TEST_F(Cuda, ARankThatDiesBetweenBucketsEndsTheOthersAndTheNextStartGoesOn) {
  const JobResult undisturbed = run(1, job_on("cuda", at("undisturbed"), 60));
  ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.output;
  const JobResult killed = run(4, job_on("cuda", at("killed"), 60), "rank=1,event=between_buckets,count=80");
  EXPECT_THAT(killed.output, HasSubstr("fault: rank "));
  expect_gone(killed, 71);
  expect_same_end(run(2, job_on("cuda", at("killed"), 60)), undisturbed);
}

TEST_F(Cuda, ARankThatHangsIsNamedByTheWatchdog) {
  const JobResult hung = run(2, job_on("cuda", at("run"), 60, {"train.watchdog_s=2"}),
                             "rank=1,event=backward,count=20,action=delay,ms=60000");
  EXPECT_EQ(hung.exit_code, 71) << hung.output;
  EXPECT_THAT(hung.output, AllOf(HasSubstr(") hangs: no progress"), HasSubstr("error: rank 1 (")));
  EXPECT_FALSE(hung.timed_out);
  EXPECT_TRUE(hung.left_behind.empty());
}

}  // namespace
}  // namespace trireme::tests
