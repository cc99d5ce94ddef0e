// What a resume refuses, naming keys and both values; a damaged checkpoint is set aside and the one before it used.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>

#include "core/base/digest.h"
#include "tests/jobs/make_data.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// One bit in the middle of the file.
void flip(const fs::path& file) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto place = static_cast<std::streamoff>(fs::file_size(file) / 2);
  bytes.seekg(place);
  const char was = static_cast<char>(bytes.get());
  bytes.seekp(place);
  bytes.put(static_cast<char>(was ^ 0x10));
  ASSERT_TRUE(bytes.good()) << file;
}

std::vector<fs::path> checkpoints_of(const JobResult& result) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(result.run_directory / "checkpoints"))
    if (entry.path().filename().string().starts_with("step-")) found.push_back(entry.path());
  return found;
}

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
  // `trireme train`, for a run whose newest checkpoint cannot be inspected.
  [[nodiscard]] Finished start(const std::vector<std::string>& arguments) const {
    const TestJob job = small_job(folder_.path() / "job");
    std::vector<std::string> words{"train", (job.folder / "job.toml").string(), "--run-dir",
                                   (job.folder / "run").string()};
    for (const std::string& set : job.sets) words.insert(words.end(), {"--set", set});
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_trireme(words);
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
  flip(newest / "slice-00001-of-00002.h5");
  const JobResult result = run(4, {}, {"--resume", "must"});
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("set aside"), HasSubstr("slice-00001-of-00002.h5"), HasSubstr("resumed: ")));
  EXPECT_TRUE(fs::exists(newest.parent_path() / ("set-aside-" + whole.checkpoint) / "why.txt"));
  expect_same_end(result, whole);
}

TEST_F(Resume, ADamagedManifestIsSetAsideToo) {
  const JobResult whole = run(2, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const fs::path newest = whole.run_directory / "checkpoints" / whole.checkpoint;
  flip(newest / "manifest.json");
  // Evaluation passes it over and leaves it where it is.
  const Finished evaluated = run_trireme({"eval", (whole.run_directory / "job.toml").string()});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.output;
  EXPECT_THAT(evaluated.output, AllOf(HasSubstr("passed over"), HasSubstr(newest.filename().string())));
  EXPECT_TRUE(fs::exists(newest));
  // What was named is refused, not replaced by another.
  const Finished named = start({"--resume", newest.string()});
  EXPECT_EQ(named.exit_code, 65) << named.output;
  EXPECT_TRUE(fs::exists(newest));
  const JobResult result = run(1, {});
  EXPECT_THAT(result.output, AllOf(HasSubstr("set aside"), HasSubstr("manifest.json"), HasSubstr("resumed: ")));
  EXPECT_TRUE(fs::exists(newest.parent_path() / ("set-aside-" + whole.checkpoint) / "why.txt"));
  expect_same_end(result, whole);
}

// No run begins anew by itself, neither at once nor at the next start.
TEST_F(Resume, WithAllCheckpointsDamagedIsRefused) {
  const JobResult whole = run(1, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const std::string metrics = metrics_of(whole);
  const auto all = checkpoints_of(whole);
  ASSERT_GE(all.size(), 2u);
  for (std::size_t i = 0; i < all.size(); ++i)
    flip(all[i] / (i % 2 == 0 ? "slice-00000-of-00001.h5" : "manifest.json"));
  for (const char* how : {"auto", "auto", "must"}) {
    const JobResult result = run(2, {}, {"--resume", how});
    EXPECT_EQ(result.exit_code, 65) << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr("all " + std::to_string(all.size()) + " checkpoint(s)"),
                                     HasSubstr("set-aside-" + whole.checkpoint), HasSubstr("--run-dir")));
    EXPECT_EQ(metrics_of(result), metrics);
    EXPECT_EQ(result.state_sha256, "");
  }
  expect_same_end(run(2, {}, {"--resume", "never"}), whole);  // asked for
}

// The manifest of a later version, its checksum right.
TEST_F(Resume, AnotherFormatIsRefusedAndNotSetAside) {
  const JobResult whole = run(1, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const fs::path newest = whole.run_directory / "checkpoints" / whole.checkpoint;
  std::string text = read_text(newest / "manifest.json");
  const std::size_t sum = text.find(": \"") + 3, body = sum + 18, format = text.find("\"format\": 1");
  ASSERT_NE(format, std::string::npos);
  text[format + 10] = '2';
  const std::string rest = text.substr(body);
  text.replace(sum, 16, fmt::format("{:016x}", xxh3(std::as_bytes(std::span(rest)))));
  std::ofstream(newest / "manifest.json") << text;
  const Finished result = start({});
  EXPECT_EQ(result.exit_code, 64) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("format 2"), HasSubstr("reads format 1")));
  EXPECT_TRUE(fs::exists(newest / "manifest.json"));
}

// Its own saves would be older than what lies there, and the next start would go on from that.
TEST_F(Resume, FromAPathBelowNewerCheckpointsIsRefused) {
  const JobResult whole = run(1, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  // The one before the newest; which step that is depends on how fast the disk commits.
  std::vector<std::string> checkpoints;
  for (const auto& entry : fs::directory_iterator(whole.run_directory / "checkpoints"))
    if (entry.path().filename().string().starts_with("step-")) checkpoints.push_back(entry.path().string());
  std::sort(checkpoints.begin(), checkpoints.end());
  ASSERT_GE(checkpoints.size(), 2u);
  const std::string older = checkpoints[checkpoints.size() - 2];
  const JobResult refused = run(1, {}, {"--resume", older});
  EXPECT_EQ(refused.exit_code, 64) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("newer checkpoints: step-000000000030"), HasSubstr("--resume auto"),
                                    HasSubstr("--run-dir")));
  EXPECT_EQ(refused.state_sha256, whole.state_sha256);
  const JobResult elsewhere = run_job(2, small_job(folder_.path() / "other", {"--resume", older}));
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere.output;
  EXPECT_EQ(elsewhere.state_sha256, whole.state_sha256);
  const std::string newest = (whole.run_directory / "checkpoints" / whole.checkpoint).string();
  EXPECT_EQ(run(1, {}, {"--resume", newest}).exit_code, 0);
}

TEST_F(Resume, ARefusedOrIdleStartLeavesJobAndSummaryOfTheRun) {
  const JobResult whole = run(1, {});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const std::string job = read_text(whole.run_directory / "job.toml");
  const std::string summary = read_text(whole.run_directory / "summary.json");
  const auto expect_unchanged = [&](const JobResult& result, int code) {
    EXPECT_EQ(result.exit_code, code) << result.output;
    EXPECT_EQ(read_text(whole.run_directory / "job.toml"), job);
    EXPECT_EQ(read_text(whole.run_directory / "summary.json"), summary);
  };
  expect_unchanged(run(2, {"model.hidden=48"}), 64);                         // another model
  expect_unchanged(run(1, {"plugin=convnett"}), 64);                         // no model
  expect_unchanged(run(1, {"train.threads=2", "reproducible=strict"}), 64);  // other bits
  expect_unchanged(run(2, {}, {"--resume", "never"}), 64);
  expect_unchanged(run(2, {}), 0);  // nothing to do
  // A first start that is refused says so where nothing was.
  const JobResult first = run_job(2, small_job(folder_.path() / "first", {}, {"plugin=convnett"}));
  EXPECT_EQ(first.exit_code, 64);
  EXPECT_EQ(summary_of(first, "result"), "failed");
}

// The lease goes to another after all slices are written, before the commit.
TEST_F(Resume, ARunThatLostItsDirectoryWritesNothingMoreThere) {
  const TestJob job = small_job(folder_.path() / "job");
  const fs::path directory = job.folder / "run";
  fs::create_directories(job.folder);
  std::ofstream(job.folder / "job.toml") << job.toml;
  ProcessOptions options;
  options.command = {program(), "train", (job.folder / "job.toml").string(), "--run-dir", directory.string()};
  for (const std::string& set : job.sets) options.command.insert(options.command.end(), {"--set", set});
  // Longer than a renewal, which finds it out; the steps wait as well.
  options.environment = {{"TRIREME_FAULT", "event=before_manifest,action=delay,ms=7000"}};
  std::string metrics;
  options.on_line = [&](const std::string& line, pid_t) {
    if (line.find("fault: rank 0 reached before_manifest 1") != 0) return;
    std::string lease = read_text(directory / "lease.json");
    const std::size_t nonce = lease.find("\"nonce\": \"");
    ASSERT_NE(nonce, std::string::npos) << lease;
    lease.insert(nonce + 10, "another-");
    std::ofstream(directory / "lease.json") << lease;
    std::ofstream(directory / "summary.json") << "{\"result\": \"running\", \"attempt\": \"another\"}";
  };
  const Finished finished = run_process(options);
  EXPECT_EQ(finished.exit_code, 74) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("no longer owns its directory"));
  EXPECT_EQ(read_text(directory / "summary.json"), "{\"result\": \"running\", \"attempt\": \"another\"}");
  for (const auto& entry : fs::directory_iterator(directory / "checkpoints"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("step-")) << entry.path();
  EXPECT_THAT(read_text(directory / "lease.json"), HasSubstr("another-"));  // not taken away from it
}

}  // namespace
}  // namespace trireme::tests
