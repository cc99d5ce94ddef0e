// run_job on the smallest true run: trains, dies where it is told, stops when asked, and goes on to the same bits.
#include "tests/jobs/run_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/jobs/make_data.h"

namespace trireme::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* job_file = R"(
plugin = "conditional-net"
device = "cpu"
[model]
hidden = 32
[data]
fields = { image = "/image", label = "/label" }
train = ["data/train-*.h5"]
transform = ["image: scale 1/255"]
[train]
batch = 32
micro_batches = 4
steps = 40
threads = 1
[optimizer]
kind = "adamw"
lr = 1e-3
[checkpoint]
every_steps = 10
)";

class RunJob : public testing::Test {
 protected:
  void SetUp() override {
    make_data(folder_.path() / "data", "train", {.files = 2, .samples = 128, .last_samples = 100});
  }
  [[nodiscard]] TestJob job(const std::string& name, std::vector<std::string> arguments = {}) const {
    TestJob job;
    job.toml = job_file;
    job.folder = folder_.path() / name;
    job.sets = {"data.train=[\"" + (folder_.path() / "data/train-*.h5").string() + "\"]"};
    job.arguments = std::move(arguments);
    return job;
  }
  TestFolder folder_{"run-job"};
};

TEST_F(RunJob, KilledOrStoppedRunsEndInTheSameBits) {
  const JobResult whole = run_job(2, job("whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  EXPECT_EQ(whole.checkpoint, "step-000000000040");
  EXPECT_EQ(whole.state_sha256.size(), 64u);
  EXPECT_THAT(whole.left_behind, IsEmpty());

  Faults kill;
  kill.inject = "rank=1,event=forward,count=50";
  const JobResult killed = run_job(2, job("killed"), kill);
  EXPECT_EQ(killed.exit_code, 71) << killed.output;
  EXPECT_THAT(killed.output, HasSubstr("fault: rank 1 reached forward 50"));
  EXPECT_LT(killed.gone_after_fault_s, 10);
  EXPECT_THAT(killed.left_behind, IsEmpty());
  // auto: a save takes its time behind the steps, so none may be committed yet.
  const JobResult resumed = run_job(2, job("killed", {"--resume", "auto"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(resumed.state_sha256, whole.state_sha256);

  Faults stop;
  stop.inject = "rank=0,event=forward,count=30,action=announce;rank=0,event=forward,count=31,action=delay,ms=20";
  stop.signals = {{"fault: rank 0 reached forward 30", SIGTERM}};
  const JobResult stopped = run_job(2, job("stopped"), stop);
  EXPECT_EQ(stopped.exit_code, 75) << stopped.output;
  EXPECT_THAT(stopped.left_behind, IsEmpty());
  const JobResult finished = run_job(1, job("stopped", {"--resume", "must"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_EQ(finished.state_sha256, whole.state_sha256);
}

TEST_F(RunJob, MpirunItselfServesAsWell) {
  Faults direct;
  direct.by_mpirun = true;
  const JobResult result = run_job(2, job("direct"), direct);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.state_sha256.size(), 64u);
}

TEST_F(RunJob, MistakesInTheJobAreToldOnce) {
  TestJob wrong = job("wrong");
  wrong.sets.push_back("train.bacth=3");
  const JobResult result = run_job(2, wrong);
  EXPECT_EQ(result.exit_code, 64);
  EXPECT_THAT(result.output, HasSubstr("bacth"));
  EXPECT_EQ(result.output.find("unknown key"), result.output.rfind("unknown key")) << result.output;
  EXPECT_EQ(result.state_sha256, "");
}

}  // namespace
}  // namespace trireme::tests
