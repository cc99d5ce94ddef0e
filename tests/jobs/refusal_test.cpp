// What is refused, with the code that says who has to act and the words that name the culprit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Refusal : public testing::Test {
 protected:
  [[nodiscard]] TestJob job(std::vector<std::string> sets = {}) const {
    return small_job(at("job"), {}, std::move(sets));
  }
  [[nodiscard]] fs::path at(const std::string& name) const { return folder_.path() / name; }
  // The code, and that no step was done.
  static void expect_refused(const JobResult& result, int code) {
    EXPECT_EQ(result.exit_code, code) << result.output;
    EXPECT_EQ(result.state_sha256, "");
    EXPECT_EQ(metrics_of(result), "");
    EXPECT_THAT(result.left_behind, IsEmpty());
  }
  static fs::path plugin(const std::string& name) {
    return fs::path(program()).parent_path().parent_path() / "plugins" / (name + ".so");
  }
  TestFolder folder_{"refusal"};
};

TEST_F(Refusal, RanksWithDifferentJobs) {
  Faults two;
  two.by_mpirun = true;
  two.each = {{{"--set", "train.seed=11"}, {}}, {{"--set", "train.seed=12"}, {}}};
  const JobResult result = run_job(2, job(), two);
  expect_refused(result, 64);
  EXPECT_THAT(result.output, AllOf(HasSubstr("ranks differ in job"), HasSubstr("rank 0 has"), HasSubstr("seed = 11"),
                                   HasSubstr("rank 1 has"), HasSubstr("seed = 12")));
}

TEST_F(Refusal, RanksWithOtherPluginBytes) {
  const fs::path copy = at("plugins");
  fs::create_directories(copy);
  fs::permissions(copy, fs::perms::owner_all);
  fs::copy_file(plugin("conditional-net"), copy / "conditional-net.so");
  std::ofstream(copy / "conditional-net.so", std::ios::app) << '\n';  // behind all that the loader reads
  Faults two;
  two.by_mpirun = true;
  two.each = {{{}, {}}, {{}, {"TRIREME_PLUGIN_PATH=" + copy.string()}}};
  const JobResult result = run_job(2, job(), two);
  expect_refused(result, 64);
  EXPECT_THAT(result.output, AllOf(HasSubstr("ranks differ in plugin.bytes"), HasSubstr("rank 1 has")));
}

TEST_F(Refusal, UnknownKeysWithTheNearest) {
  const JobResult job_key = run_job(1, job({"optimizer.learning_rate=1"}));
  expect_refused(job_key, 64);
  EXPECT_THAT(job_key.output, HasSubstr("unknown key 'optimizer.learning_rate'"));
  const JobResult model_key = run_job(2, job({"model.hiden=3"}));
  expect_refused(model_key, 64);
  EXPECT_THAT(model_key.output, HasSubstr("unknown key 'model.hiden': did you mean 'model.hidden'?"));
}

TEST_F(Refusal, BestByAMetricThatTheModelDoesNotReport) {
  const JobResult result = run_job(2, job({"eval.best=acuracy:max"}));
  expect_refused(result, 64);
  EXPECT_THAT(result.output, HasSubstr("eval.best = \"acuracy\": this model reports 'accuracy', 'loss'; did you mean "
                                       "'accuracy'?"));
}

TEST_F(Refusal, StrictOnUnlikeProcessors) {
  Faults two;
  two.by_mpirun = true;
  two.each = {{{}, {}}, {{}, {"ONEDNN_MAX_CPU_ISA=SSE41"}}};
  const JobResult strict = run_job(2, job({"reproducible=strict"}), two);
  expect_refused(strict, 64);
  EXPECT_THAT(strict.output,
              AllOf(HasSubstr("refuses ranks on different devices: rank 0 computes on"), HasSubstr("SSE4.1")));
  const JobResult warned = run_job(2, job({"train.steps=2"}), two);
  EXPECT_EQ(warned.exit_code, 0) << warned.output;
  EXPECT_THAT(warned.output, HasSubstr("bits are promised for these hosts alone: rank 0 computes on"));
}

// Two tensors of one shape that changed places: their bytes would fit into each other's place.
TEST_F(Refusal, EvaluationByAModelWithAnotherOrder) {
  TestJob trained = job({"plugin=" TRIREME_TROUBLED, "model={}", "train.steps=8"});
  const JobResult done = run_job(1, trained);
  ASSERT_EQ(done.exit_code, 0) << done.output;
  trained.command = "eval";
  EXPECT_EQ(run_job(1, trained).exit_code, 0);
  trained.sets.emplace_back("model={ swapped = true }");
  const JobResult result = run_job(2, trained);
  EXPECT_EQ(result.exit_code, 64) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("is not of this model"), HasSubstr("another order of tensors")));
}

TEST_F(Refusal, PluginThatIsNotThere) {
  const JobResult result = run_job(2, job({"plugin=convnett"}));
  expect_refused(result, 64);
  EXPECT_THAT(result.output, AllOf(HasSubstr("plugin 'convnett'"), HasSubstr("did you mean 'convnet'?")));
}

TEST_F(Refusal, PluginThatThrows) {
  const JobResult at_once = run_job(2, job({"plugin=" TRIREME_TROUBLED, "model={ throws_at = 0 }"}));
  expect_refused(at_once, 70);
  EXPECT_THAT(at_once.output, AllOf(HasSubstr("troubled"), HasSubstr("no weights in the cupboard")));
  const JobResult later = run_job(2, job({"plugin=" TRIREME_TROUBLED, "model={ throws_at = 9 }"}));
  EXPECT_EQ(later.exit_code, 70) << later.output;
  EXPECT_THAT(later.output, AllOf(HasSubstr("troubled"), HasSubstr("the index 17 is out of range"),
                                  AnyOf(HasSubstr("rank 0"), HasSubstr("rank 1"))));
  EXPECT_EQ(summary_of(later, "result"), "failed");
  EXPECT_EQ(summary_of(later, "exit_code"), "70");
  EXPECT_THAT(summary_of(later, "first_cause"), HasSubstr("the index 17 is out of range"));
  EXPECT_THAT(later.left_behind, IsEmpty());
}

TEST_F(Refusal, RanksThatDoNotDivideTheMicroBatches) {
  const JobResult result = run_job(3, job());
  expect_refused(result, 64);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("3 ranks do not divide train.micro_batches = 4"), HasSubstr("start 1, 2, 4 ranks")));
}

// In a container /sys is mounted read-only, elsewhere the kernel lets nobody make a folder there.
TEST_F(Refusal, RunDirectoryThatCannotBeWritten) {
  const Finished result = [&] {
    TestJob one = job();
    (void)run_job(1, job({"train.bacth=1"}));  // writes job.toml, and is refused
    std::vector<std::string> words{"train", (one.folder / "job.toml").string(), "--run-dir", "/sys/trireme-run"};
    for (const std::string& set : one.sets) words.insert(words.end(), {"--set", set});
    return run_trireme(words);
  }();
  EXPECT_EQ(result.exit_code, 74) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("/sys/trireme-run"), HasSubstr("--run-dir")));
}

// The second start of a run that lives; the first goes on.
TEST_F(Refusal, RunDirectoryOfALiveRun) {
  ASSERT_EQ(run_job(1, job({"train.steps=2"})).exit_code, 0);
  TestJob longer = job({"train.steps=2", "run.log_every_steps=1"});
  fs::remove_all(longer.folder / "run");
  ProcessOptions first;
  first.command = {program(), "train", (longer.folder / "job.toml").string(), "--run-dir",
                   (longer.folder / "run").string()};
  for (const std::string& set : longer.sets) first.command.insert(first.command.end(), {"--set", set});
  first.environment = {{"TRIREME_FAULT", "event=forward,count=2,action=delay,ms=60000"}};
  JobResult second;
  std::string summary_beside;
  first.on_line = [&](const std::string& line, pid_t pid) {
    if (line.find("fault: rank 0 reached forward 2") != 0) return;
    second = run_job(1, longer);
    summary_beside = summary_of(second, "result");
    ::kill(pid, SIGKILL);
  };
  const Finished killed = run_process(first);
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  EXPECT_EQ(second.exit_code, 64) << second.output;
  EXPECT_THAT(second.output, AllOf(HasSubstr("another run works here"), HasSubstr("pid "), HasSubstr("--run-dir")));
  EXPECT_EQ(summary_beside, "running");  // the first one's: it lives
  // Dead by now: taken over at once.
  const JobResult third = run_job(1, longer);
  EXPECT_EQ(third.exit_code, 0) << third.output;
  EXPECT_LT(third.seconds, 25) << third.output;
}

TEST_F(Refusal, CudaWithoutCuda) {
  const JobResult result = run_job(1, job({"device=cuda"}));
  expect_refused(result, 64);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("cuda"), AnyOf(HasSubstr("module"), HasSubstr("driver"), HasSubstr("device"))));
  const JobResult automatic = run_job(1, job({"device=auto", "train.steps=1"}));
  EXPECT_EQ(automatic.exit_code, 0) << automatic.output;
}

TEST_F(Refusal, WordsThatAreNoCommand) {
  const Finished near = run_trireme({"trian", "job.toml"});
  EXPECT_EQ(near.exit_code, 64) << near.output;
  EXPECT_THAT(near.output, HasSubstr("train"));
  const Finished missing = run_trireme({"train", at("nothing.toml").string()});
  EXPECT_THAT(missing.exit_code, AnyOf(64, 74)) << missing.output;
  EXPECT_THAT(missing.output, HasSubstr("nothing.toml"));
}

}  // namespace
}  // namespace trireme::tests
