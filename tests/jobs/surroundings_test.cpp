// What the machine around a run can do to it: odd paths, files that are none, a full disk, a clock set back, another
// locale.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "io/hdf5/hdf5.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Surroundings : public testing::Test {
 protected:
  [[nodiscard]] TestJob job(const std::string& name, std::vector<std::string> sets = {}) const {
    return small_job(at(name), {}, std::move(sets));
  }
  [[nodiscard]] fs::path at(const std::string& name) const { return folder_.path() / name; }
  [[nodiscard]] static Finished train(const TestJob& job) { return run_trireme(train_words(job)); }
  // bash SCRIPT PROGRAM WORDS… with the job's words.
  [[nodiscard]] static Finished by_bash(const std::vector<std::string>& bash, const std::string& script,
                                        const TestJob& job) {
    ProcessOptions options;
    options.command = bash;
    options.command.insert(options.command.end(), {"-c", script, "bash", program()});
    const std::vector<std::string> words = train_words(job);
    options.command.insert(options.command.end(), words.begin(), words.end());
    return run_process(options);
  }
  [[nodiscard]] static std::string data(const fs::path& file) { return "data.train=[\"" + file.string() + "\"]"; }

  TestFolder folder_{"surroundings"};
};

struct Wrong {
  const char* path;
  int as_job, as_data, as_plugin;
  const char *job_words, *data_words, *plugin_words;
};

// /proc/self/mem can be opened, but not read, by root too.
TEST_F(Surroundings, FilesThatAreNone) {
  std::ofstream(at("empty")).close();
  fs::create_directory(at("folder"));
  fs::create_symlink("loop", at("loop"));
  fs::create_symlink("nowhere", at("dangling"));
  const std::string unreadable = "/proc/self/mem";
  const Wrong all[] = {
      {"empty", 64, 65, 64, "plugin is missing", "is empty", "is no shared library"},
      {"folder", 64, 65, 64, "is a folder; a job file is wanted", "is a folder", "is a folder; the .so file"},
      {"loop", 74, 65, 74, "symbolic links", "symbolic links", "symbolic links"},
      {"dangling", 64, 65, 64, "there is no such job file", "no such file", "no such file"},
      {"/proc/self/mem", 74, 65, 64, "cannot be read: Input/output error", "is empty", "is no shared library"},
      {"/dev/zero", 64, 65, 64, "larger than 1 MiB, so not a job file", "is not a regular file", "is no regular file"},
  };
  for (const Wrong& wrong : all) {
    const std::string path = wrong.path[0] == '/' ? wrong.path : at(wrong.path).string();
    const Finished as_job = run_trireme({"train", path});
    EXPECT_EQ(as_job.exit_code, wrong.as_job) << path << "\n" << as_job.output;
    EXPECT_THAT(as_job.output, AllOf(HasSubstr(path), HasSubstr(wrong.job_words)));
    const Finished as_data = train(job("data", {data(path)}));
    EXPECT_EQ(as_data.exit_code, wrong.as_data) << path << "\n" << as_data.output;
    EXPECT_THAT(as_data.output, AllOf(HasSubstr(path), HasSubstr(wrong.data_words)));
    const Finished as_plugin = train(job("plugin", {"plugin=" + path}));
    EXPECT_EQ(as_plugin.exit_code, wrong.as_plugin) << path << "\n" << as_plugin.output;
    EXPECT_THAT(as_plugin.output, AllOf(HasSubstr(path), HasSubstr(wrong.plugin_words)));
  }
  for (const char* name : {"empty", "loop"}) {
    TestJob one = job("run-in-a-file");
    std::vector<std::string> words = train_words(one);
    words[3] = at(name).string();
    const Finished result = run_trireme(words);
    EXPECT_EQ(result.exit_code, 74) << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr(at(name).string()), HasSubstr("--run-dir")));
  }
}

// Spaces, a new line, quotes, braces, percents and letters beyond ASCII in every path; a run directory of 3,800 bytes.
TEST_F(Surroundings, OddPathsAreTakenAsTheyAre) {
  const JobResult plain = run_job(2, job("plain"));
  const TestJob odd = job("a b\nç \"q\" \\ %s {} é");
  const JobResult result = run_job(2, odd);
  expect_same_end(result, plain);
  const TestJob from_odd = small_job(at("from odd"), {}, {"data.train=[\"tr ain*.h5\"]", "train.steps=3"});
  fs::create_directories(from_odd.folder);
  for (const auto& entry : fs::directory_iterator(small_data()))
    if (entry.path().filename().string().starts_with("train"))
      fs::copy(entry.path(), from_odd.folder / ("tr ain \n{}" + entry.path().filename().string()));
  EXPECT_EQ(run_job(1, from_odd).exit_code, 0);

  std::string deep = "deep";
  while (at(deep).string().size() + 201 < 3800) deep += "/" + std::string(200, 'x');
  expect_same_end(run_job(2, job(deep)), plain);
  const Finished beyond = train(job("beyond", {"run.dir=" + at(deep).string() + "/" + std::string(300, 'y')}));
  EXPECT_EQ(beyond.exit_code, 0) << beyond.output;  // --run-dir comes before run.dir
  std::vector<std::string> words = train_words(job("beyond"));
  words[3] = at(deep).string() + "/" + std::string(300, 'y');
  const Finished too_long = run_trireme(words);
  EXPECT_EQ(too_long.exit_code, 74) << too_long.output;
  EXPECT_THAT(too_long.output, HasSubstr("File name too long"));
}

// On a tmpfs that fills up while a checkpoint is written; then there is room again.
TEST_F(Surroundings, AFullDiskEndsWith74AndLosesNothing) {
  ProcessOptions may;
  may.command = {"unshare", "-rm", "true"};
  if (run_process(may).exit_code != 0) GTEST_SKIP() << "needs user namespaces";
  const TestJob undisturbed = job("undisturbed");
  const JobResult whole = run_job(1, undisturbed);
  const TestJob full = job("full");
  fs::create_directories(full.folder / "run");
  const Finished result =
      by_bash({"unshare", "-rm", "bash"},
              "mount -t tmpfs -o size=800k none \"$5\" || exit 99\n\"$@\"; echo first=$?\n"
              "mount -o remount,size=40m \"$5\"\n\"$@\"; echo second=$?\n\"$1\" inspect --json \"$5\"",
              full);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("first=74"), HasSubstr("No space left on device"), HasSubstr("checkpoint of step"),
                    HasSubstr("resumed: "), HasSubstr("second=0"), HasSubstr(whole.state_sha256)));
  EXPECT_EQ(whole.state_sha256.size(), 64u);
}

TEST_F(Surroundings, AFileSizeLimitEndsWith74AndLosesNothing) {
  const JobResult whole = run_job(1, job("undisturbed"));
  const TestJob limited = job("limited");
  const Finished result = by_bash({"bash"}, "ulimit -f 64; exec \"$@\"", limited);
  EXPECT_EQ(result.exit_code, 74) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("checkpoint of step 8"), HasSubstr("slice-00000-of-00001.h5"),
                                   HasSubstr("File too large"), Not(HasSubstr("errno"))));
  expect_same_end(run_job(1, limited), whole);
}

// Five thousand million samples of holes: counted, refused where their order alone would not fit, else trained on.
TEST_F(Surroundings, SizesBeyond32Bits) {
  const auto file = io::Hdf5File::create(at("sparse.h5"));
  file->create_dataset("/image", Shape{5'000'000'000, 28, 28}, Dtype::u8, {256});
  file->create_dataset("/label", Shape{5'000'000'000}, Dtype::u8, {1 << 16});
  file->close();
  const std::vector<std::string> sets{data(at("sparse.h5")), "data.eval=[]", "eval.every=never", "train.steps=3",
                                      "data.memory_mib=64"};
  const auto with = [&](const char* shuffle) {
    std::vector<std::string> all = sets;
    all.push_back(std::string("data.shuffle=") + shuffle);
    return run_job(2, job(shuffle, all));
  };
  const JobResult none = with("none");
  EXPECT_EQ(none.exit_code, 0) << none.output;
  EXPECT_THAT(none.output, HasSubstr("5000000000 training samples"));
  const JobResult global = with("global");
  if (static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE)) < 80e9) {
    EXPECT_EQ(global.exit_code, 64) << global.output;
    EXPECT_THAT(global.output, AllOf(HasSubstr("order of 5000000000 samples"), HasSubstr("data.shuffle = \"block\"")));
    EXPECT_EQ(metrics_of(global), "");
  }
}

// In the middle of a run, and between a death and the next start.
TEST_F(Surroundings, AClockSetBack) {
  const JobResult whole = run_job(1, job("undisturbed"));
  const std::vector<std::pair<std::string, std::string>> back = {{"LD_PRELOAD", TRIREME_CLOCK_BACK},
                                                                 {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  ProcessOptions options;
  options.command = {program()};
  const TestJob in_the_middle = job("in-the-middle");
  const std::vector<std::string> words = train_words(in_the_middle);
  options.command.insert(options.command.end(), words.begin(), words.end());
  options.environment = back;
  options.environment.insert(
      options.environment.end(),
      {{"TRIREME_CLOCK_BACK_AFTER", "0.5"}, {"TRIREME_FAULT", "event=forward,count=40,action=delay,ms=20"}});
  const Finished result = run_process(options);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(state_of(in_the_middle.folder / "run"), whole.state_sha256);

  const TestJob between = job("between");
  Faults death;
  death.inject = "event=after_rename,count=2";
  EXPECT_EQ(run_job(1, between, death).exit_code, 71);
  const Finished again = run_trireme(train_words(between), back);
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resumed: "));
  EXPECT_LT(again.seconds, 20);
  EXPECT_EQ(state_of(between.folder / "run"), whole.state_sha256);
}

// A plugin that changes how the process writes numbers; the run reads and writes its files as ever.
TEST_F(Surroundings, DecimalCommas) {
  const auto with = [&](const char* name, const char* comma) {
    return run_job(1, job(name, {"plugin=" TRIREME_TROUBLED, std::string("model={ comma = ") + comma + " }",
                                 "optimizer.lr=1.5e-3", "train.steps=20"}));
  };
  const JobResult points = with("points", "false"), commas = with("commas", "true");
  EXPECT_EQ(commas.exit_code, 0) << commas.output;
  EXPECT_EQ(metrics_of(commas), metrics_of(points));
  EXPECT_EQ(commas.state_sha256, points.state_sha256);
  EXPECT_EQ(summary_of(commas, "epochs"), summary_of(points, "epochs"));
  const JobResult further = run_job(
      1, small_job(at("commas"), {},
                   {"plugin=" TRIREME_TROUBLED, "model={ comma = true }", "optimizer.lr=1.5e-3", "train.steps=20"}));
  EXPECT_EQ(further.exit_code, 0) << further.output;  // reads what was written
  EXPECT_THAT(further.output, HasSubstr("nothing to do"));
}

}  // namespace
}  // namespace trireme::tests
