// Help, mistakes and exit codes of every command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/jobs/run_job.h"

namespace trireme::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Usage, EveryCommandHasHelpWithExamples) {
  const std::vector<std::vector<std::string>> commands{
      {},          {"launch"}, {"train"},   {"eval"},           {"predict"},           {"pack"},
      {"inspect"}, {"plugin"}, {"version"}, {"plugin", "list"}, {"plugin", "describe"}};
  for (std::vector<std::string> words : commands) {
    std::string name;
    for (const std::string& word : words) name += (name.empty() ? "" : " ") + word;
    words.push_back("--help");
    const Finished finished = run_trireme(words);
    EXPECT_EQ(finished.exit_code, 0) << name;
    EXPECT_THAT(finished.output, AllOf(HasSubstr("Example"), HasSubstr("trireme " + name), HasSubstr("-h,--help")));
  }
}

struct Mistake {
  std::vector<std::string> words;
  const char* says;
};

TEST(Usage, MistakesEndWith64AndTheNearestWord) {
  const std::vector<Mistake> mistakes{
      {{}, "trireme --help"},
      {{"trian", "job.toml"}, "unknown command 'trian'; did you mean 'train'?"},
      {{"train", "job.toml", "--resmue", "must"}, "unknown option '--resmue'; did you mean '--resume'?"},
      {{"train"}, "no job file given"},
      {{"train", "nowhere.toml"}, "nowhere.toml"},
      {{"pack", "--field", "x=y"}, "--output"},
      {{"pack", "--field", "xy", "--output", "o"}, "NAME=FILE"},
      {{"pack", "--field", "x=a", "--field", "x=b", "--output", "o"}, "twice"},
      {{"pack", "--field", "x=y", "--output", "o", "--deflate", "12"}, "--deflate"},
      {{"plugin"}, "trireme plugin --help"},
      {{"plugin", "lst"}, "unknown command 'lst'; did you mean 'list'?"},
      {{"inspect"}, "path"},
      {{"launch"}, "launch what?"},
      {{"launch", "trian", "job.toml"}, "not 'trian'; did you mean 'train'?"},
      {{"launch", "-n", "0.5", "train", "job.toml"}, "--ranks"},
      {{"launch", "-n", "2", "train", "job.toml", "--rum-dir", "x"}, "did you mean '--run-dir'?"},
  };
  for (const Mistake& mistake : mistakes) {
    const Finished finished = run_trireme(mistake.words);
    std::string line;
    for (const std::string& word : mistake.words) line += word + " ";
    EXPECT_EQ(finished.exit_code, 64) << line << "\n" << finished.output;
    EXPECT_THAT(finished.output, HasSubstr(mistake.says)) << line;
  }
}

TEST(Usage, WrongResumeNamesTheNearest) {
  const TestFolder folder("usage-resume");
  std::ofstream(folder.path() / "job.toml") << "plugin = \"x\"\n[data]\nfields = { a = \"/a\" }\ntrain = [\"a.h5\"]\n"
                                               "[train]\nsteps = 1\n";
  const Finished finished = run_trireme({"train", "job.toml", "--resume", "mus"}, {}, folder.path().string());
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_THAT(finished.output, HasSubstr("did you mean 'must'?"));
}

TEST(Usage, OnlyRankZeroTellsAllOfAMistake) {
  const auto as = [](const char* rank) {
    return run_trireme({"train", "--bad"}, {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  };
  EXPECT_THAT(as("0").output, HasSubstr("[rank 0 "));
  EXPECT_THAT(as("1").output, HasSubstr("[rank 1 "));
}

TEST(Usage, HelpKeysListsTheJob) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "--help-keys"}, {"launch", "-n", "2", "train", "--help-keys"}}) {
    const Finished finished = run_trireme(words);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_THAT(finished.output, AllOf(HasSubstr("train.batch"), HasSubstr("optimizer.lr")));
  }
}

TEST(Usage, LaunchRefusesToBeARank) {
  const Finished finished =
      run_trireme({"launch", "train", "job.toml"}, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_THAT(finished.output, HasSubstr("launch starts ranks itself"));
}

TEST(Usage, BadFaultVariableIsRefused) {
  const Finished finished = run_trireme({"version"}, {{"TRIREME_FAULT", "evnt=forward"}});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_THAT(finished.output, HasSubstr("TRIREME_FAULT"));
}

TEST(Usage, DryRunPrintsTheCommand) {
  const TestFolder folder("usage-dry");
  std::ofstream(folder.path() / "job.toml") << "plugin = \"x\"\n[data]\nfields = { a = \"/a\" }\ntrain = [\"a.h5\"]\n"
                                               "[train]\nsteps = 1\n";
  const Finished finished = run_trireme({"launch", "-n", "3", "--dry-run", "train", "job.toml", "--set", "plugin=a b"},
                                        {}, folder.path().string());
  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_THAT(finished.output, AllOf(HasSubstr("mpirun -n 3"), HasSubstr("train job.toml --set 'plugin=a b'")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs"));
}

}  // namespace
}  // namespace trireme::tests
