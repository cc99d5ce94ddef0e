// The first moments of a run and its surroundings: signals before it listens, a reader of its output that goes, the memory it
// plans.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "io/hdf5/hdf5.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The words of `trireme train` on a small job; its job file is not yet written.
std::vector<std::string> words_for(const TestJob& job) {
  std::vector<std::string> words{program(), "train", (job.folder / "job.toml").string(), "--run-dir",
                                 (job.folder / "run").string()};
  for (const std::string& set : job.sets) words.insert(words.end(), {"--set", set});
  return words;
}

// The job comes by a pipe: the rank waits in its first step, the reading of the job, until the signal has been sent.
TEST(Start, ASignalBeforeTheRunListensStopsItInOrder) {
  for (const int number : {SIGTERM, SIGUSR1, SIGINT}) {
    const TestFolder folder("early-signal");
    const TestJob job = small_job(folder.path());
    const std::string pipe = (folder.path() / "job.toml").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    ProcessOptions options;
    options.command = {"bash", "-c", "exec \"$@\"", "bash"};
    const std::vector<std::string> words = words_for(job);
    options.command.insert(options.command.end(), words.begin(), words.end());
    const pid_t sender = ::fork();
    ASSERT_GE(sender, 0);
    if (sender == 0) {
      ::alarm(60);                                     // a rank that never starts is waited for no longer
      const int end = ::open(pipe.c_str(), O_WRONLY);  // returns once the rank has opened it for reading
      for (const pid_t pid : processes_with("TRIREME_EARLY", pipe)) ::kill(pid, number);
      ::usleep(200000);
      const bool written = ::write(end, job.toml.data(), job.toml.size()) == static_cast<ssize_t>(job.toml.size());
      ::_exit(written ? 0 : 1);
    }
    options.environment = {{"TRIREME_EARLY", pipe}};
    const Finished finished = run_process(options);
    int status = -1;
    ::waitpid(sender, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(finished.exit_code, 75) << "signal " << number << "\n" << finished.output;
  }
}

// Commands that do not stop in order end at once, as ever.
TEST(Start, PredictEndsByTerm) {
  const TestFolder folder("early-predict");
  const std::string pipe = (folder.path() / "job.toml").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ProcessOptions options;
  options.command = {program(), "predict", pipe};
  options.environment = {{"TRIREME_EARLY", pipe}};
  options.timeout_s = 30;
  const pid_t sender = ::fork();
  ASSERT_GE(sender, 0);
  if (sender == 0) {
    ::alarm(60);
    const int end = ::open(pipe.c_str(), O_WRONLY);
    for (const pid_t pid : processes_with("TRIREME_EARLY", pipe)) ::kill(pid, SIGTERM);
    ::usleep(2000000);  // with the pipe open
    ::close(end);
    ::_exit(0);
  }
  const Finished finished = run_process(options);
  ::waitpid(sender, nullptr, 0);
  EXPECT_EQ(finished.exit_code, 128 + SIGTERM) << finished.output;
}

// `trireme train job.toml | head -n 1`: lines are lost, none of 400 steps and the evaluation at the end is.
TEST(Start, TheReaderOfItsOutputMayGo) {
  for (const std::string ranks : {"", "1", "2"}) {
    const TestFolder folder("head");
    const TestJob job =
        small_job(folder.path(), {},
                  {"run.log_every_steps=1", "train.steps=400", "eval.every=never", "checkpoint.every_steps=0"});
    std::ofstream(folder.path() / "job.toml") << job.toml;
    std::vector<std::string> words = words_for(job);
    if (!ranks.empty()) words.insert(words.begin() + 1, {"launch", "-n", ranks});
    ProcessOptions options;
    options.command = {"bash", "-c", "\"$@\" | head -n 1; exit ${PIPESTATUS[0]}", "bash"};
    options.command.insert(options.command.end(), words.begin(), words.end());
    options.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},       {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                           {"OMPI_MCA_btl", "self,vader,tcp"},    {"OMPI_MCA_btl_tcp_if_include", "lo"},
                           {"OMPI_MCA_oob_tcp_if_include", "lo"}, {"OMPI_MCA_plm", "isolated"}};
    const Finished finished = run_process(options);
    EXPECT_EQ(finished.exit_code, 0) << ranks << " ranks\n" << finished.output;
    EXPECT_EQ(lines_of(read_text(folder.path() / "run" / "metrics.jsonl")), 401u) << finished.output;
  }
}

// 140,000 samples in a random order: two permutations of 4 bytes each are more than 1 MiB.
TEST(Start, SaysThatTheOrderOfSamplesIsLargerThanTheMemoryAllowed) {
  const TestFolder folder("order");
  const std::filesystem::path path = folder.path() / "many.h5";
  const auto file = io::Hdf5File::create(path);
  file->create_dataset("/image", Shape{140000, 28, 28}, Dtype::u8, {256});  // no chunk is ever written: zeros
  file->create_dataset("/label", Shape{140000}, Dtype::u8, {256});
  file->close();
  const auto run = [&](const char* shuffle) {
    return run_job(1, small_job(folder.path() / shuffle, {},
                                {"data.train=[\"" + path.string() + "\"]", "data.eval=[]", "data.memory_mib=1",
                                 "train.steps=1", "eval.every=never", std::string("data.shuffle=") + shuffle}));
  };
  const JobResult global = run("global");
  EXPECT_EQ(global.exit_code, 0) << global.output;
  EXPECT_THAT(global.output, AllOf(HasSubstr("order of 140000 samples"), HasSubstr("data.memory_mib = 1")));
  const JobResult block = run("block");
  EXPECT_EQ(block.exit_code, 0) << block.output;
  EXPECT_THAT(block.output, Not(HasSubstr("order of")));
}

// A wide layer (6.4 million parameters, 73 MiB to save) and more data than it keeps: without these the plan would be off by more
// than a tenth.
TEST(Start, PlansTheMemoryThatItThenUses) {
  const TestFolder folder("memory");
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  for (const auto& [name, samples] : {std::pair("train.h5", 120000), std::pair("eval.h5", 4000)}) {
    const auto file = io::Hdf5File::create(path(name));
    file->create_dataset("/image", Shape{samples, 28, 28}, Dtype::u8, {256});
    file->create_dataset("/label", Shape{samples}, Dtype::u8, {256});
    file->close();
  }
  const JobResult result =
      run_job(1, small_job(folder.path(), {},
                           {"data.train=[\"" + path("train.h5") + "\"]", "data.eval=[\"" + path("eval.h5") + "\"]",
                            "data.memory_mib=64", "model.hidden=7500", "train.batch=512", "train.micro_batches=1",
                            "train.steps=3", "checkpoint.every_steps=1", "eval.every=3 steps", "data.shuffle=global"}));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const double planned = std::stod(summary_of(result, "memory_planned_mib")),
               peak = std::stod(summary_of(result, "memory_peak_mib"));
  EXPECT_GT(planned, 0.9 * peak) << result.output;
  EXPECT_LT(planned, 1.1 * peak);
  EXPECT_THAT(result.output, HasSubstr("memory: about "));
}

}  // namespace
}  // namespace trireme::tests
