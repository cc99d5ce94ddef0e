// What a resume refuses, naming keys and both values; a damaged checkpoint is set aside and the one before it used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/jobs/make_data.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class Resume : public testing::Test {
 protected:
  [[nodiscard]] JobResult run(int ranks, std::vector<std::string> sets, std::vector<std::string> arguments = {}) const {
    return run_job(ranks, small_job(folder_.path() / "job", std::move(arguments), std::move(sets)));
  }
  // Refused with the key and both values, and the checkpoints stay as they are.
  void expect_refused(const std::vector<std::string>& sets, const std::string& key, const std::string& saved,
                      const std::string& here) const {
    const JobResult result = run(1, sets);
    EXPECT_EQ(result.exit_code, 64) << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr("is not of this job"), HasSubstr(key),
                                     HasSubstr(saved + " in the checkpoint"), HasSubstr(here + " here")));
    EXPECT_EQ(result.checkpoint, "step-000000000030");
  }
  TestFolder folder_{"resume"};
};

TEST_F(Resume, OfAnotherJobIsRefusedWithKeyAndBothValues) {
  const JobResult whole = run(1, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  expect_refused({"model.hidden=48"}, "fc1.weight", "(32, 784)", "(48, 784)");
  expect_refused({"model.dropout=0.25"}, "model.dropout: ", "0.5", "0.25");
  expect_refused({"optimizer.lr=2e-3"}, "optimizer.lr: ", "0.001", "0.002");
  expect_refused({"optimizer.kind=sgd"}, "optimizer.kind: ", "\"adamw\"", "\"sgd\"");
  make_data(folder_.path() / "other", "train", {.files = 1, .samples = 128});
  const std::string other = "data.train=[\"" + (folder_.path() / "other/train-0.h5").string() + "\"]";
  const JobResult result = run(1, {other});
  EXPECT_EQ(result.exit_code, 64) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("data.train: "), HasSubstr("228 samples"), HasSubstr("128 samples")));

  const JobResult never = run(1, {}, {"--resume", "never"});
  EXPECT_EQ(never.exit_code, 64) << never.output;
  EXPECT_THAT(never.output, HasSubstr("--resume never"));
  // Nothing left to do is no failure, and changes nothing.
  const JobResult again = run(2, {}, {"--resume", "must"});
  expect_same_end(again, whole);
}

TEST_F(Resume, MustNeedsACheckpoint) {
  const JobResult result = run(1, {}, {"--resume", "must"});
  EXPECT_EQ(result.exit_code, 64) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no checkpoint"));
}

TEST_F(Resume, ADamagedCheckpointIsSetAsideAndTheOneBeforeIsUsed) {
  const JobResult whole = run(2, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const fs::path newest = whole.run_directory / "checkpoints" / whole.checkpoint;
  const fs::path slice = newest / "slice-00001-of-00002.h5";
  {
    std::fstream bytes(slice, std::ios::in | std::ios::out | std::ios::binary);
    const auto place = static_cast<std::streamoff>(fs::file_size(slice) / 2);
    bytes.seekg(place);
    const char was = static_cast<char>(bytes.get());
    bytes.seekp(place);
    bytes.put(static_cast<char>(was ^ 0x10));
    ASSERT_TRUE(bytes.good());
  }
  const JobResult result = run(4, {}, {"--resume", "must"});
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("set aside"), HasSubstr("slice-00001-of-00002.h5"), HasSubstr("resumed: ")));
  EXPECT_TRUE(fs::exists(newest.parent_path() / ("set-aside-" + whole.checkpoint) / "why.txt"));
  expect_same_end(result, whole);
}

}  // namespace
}  // namespace trireme::tests
