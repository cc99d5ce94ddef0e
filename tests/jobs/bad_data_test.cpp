// Data that cannot be trained on: 65, with file, dataset and place, before step 1 where it can be known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/digest.h"
#include "io/hdf5/hdf5.h"
#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class BadData : public testing::Test {
 protected:
  // f32 images of `height` × 28 and as many labels, in a file of its own.
  [[nodiscard]] std::shared_ptr<io::Hdf5File> file(std::int64_t samples, std::int64_t height,
                                                   std::int64_t labels) const {
    auto made = io::Hdf5File::create(path_);
    made->create_dataset("/image", Shape{samples, height, 28}, Dtype::f32, {});
    made->create_dataset("/label", Shape{labels}, Dtype::i64, {});
    made->write("/image", 0, samples, Dtype::f32,
                bytes_of(std::vector<float>(static_cast<std::size_t>(samples * height * 28), 0.5f)));
    made->write("/label", 0, labels, Dtype::i64,
                bytes_of(std::vector<std::int64_t>(static_cast<std::size_t>(labels), 3)));
    return made;
  }
  [[nodiscard]] JobResult run(int ranks, std::vector<std::string> sets = {}) const {
    const std::string own = "[\"" + path_.string() + "\"]";
    sets.insert(sets.begin(), {"data.train=" + own, "data.eval=" + own, "data.transform=[]"});
    return run_job(ranks, small_job(folder_.path() / "job", {}, std::move(sets)));
  }
  void expect_refused(const JobResult& result) const {
    EXPECT_EQ(result.exit_code, 65) << result.output;
    EXPECT_THAT(result.output, HasSubstr(path_.string()));
    EXPECT_EQ(metrics_of(result), "");
    EXPECT_EQ(result.state_sha256, "");
    EXPECT_THAT(result.left_behind, IsEmpty());
    EXPECT_EQ(summary_of(result, "result"), "failed");
    EXPECT_EQ(summary_of(result, "exit_code"), "65");
  }
  TestFolder folder_{"bad-data"};
  fs::path path_ = folder_.path() / "samples.h5";
};

TEST_F(BadData, Missing) {
  const JobResult result = run(2);
  expect_refused(result);
  EXPECT_THAT(result.output, HasSubstr("no such file"));
}

TEST_F(BadData, Truncated) {
  file(200, 28, 200)->close();
  fs::resize_file(path_, fs::file_size(path_) / 2);
  const JobResult result = run(2);
  expect_refused(result);
  EXPECT_THAT(result.output, HasSubstr("truncated"));
}

TEST_F(BadData, FieldThatIsNotThere) {
  file(200, 28, 200)->close();
  const JobResult result = run(1, {"data.fields={ image = \"/image\", label = \"/labels\" }"});
  expect_refused(result);
  EXPECT_THAT(result.output, AllOf(HasSubstr("/labels"), HasSubstr("/label")));
}

TEST_F(BadData, UnequalFields) {
  file(200, 28, 190)->close();
  const JobResult result = run(1);
  expect_refused(result);
  EXPECT_THAT(result.output, AllOf(HasSubstr("200"), HasSubstr("190"), HasSubstr("/image"), HasSubstr("/label")));
}

TEST_F(BadData, FewerSamplesThanABatch) {
  file(31, 28, 31)->close();
  const JobResult result = run(2);
  EXPECT_EQ(result.exit_code, 65) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("31 samples"), HasSubstr("train.batch = 32")));
  EXPECT_EQ(metrics_of(result), "");
}

TEST_F(BadData, EvaluationThatIsOfAnotherKind) {
  file(64, 28, 64)->close();
  const JobResult result = run(2, {"data.eval=[\"" + (small_data() / "test-0.h5").string() + "\"]"});
  EXPECT_EQ(result.exit_code, 65) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("field 'image'"), HasSubstr("f32 (28, 28) in [data] train"),
                                   HasSubstr("u8 (28, 28) in [data] eval")));
}

// The plugin says what it wants of its input.
TEST_F(BadData, ShapeThatTheModelCannotTake) {
  file(64, 20, 64)->close();
  const JobResult result = run(2);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("560"), HasSubstr("784")));  // 20 × 28 and 28 × 28
  EXPECT_EQ(metrics_of(result), "");
  EXPECT_EQ(result.state_sha256, "");
}

TEST_F(BadData, NotANumber) {
  const auto bad = file(64, 28, 64);
  std::vector<float> row(28 * 28, 0.25f);
  row[5 * 28 + 6] = std::numeric_limits<float>::quiet_NaN();
  bad->write("/image", 41, 1, Dtype::f32, bytes_of(row));
  bad->close();
  const JobResult result = run(2);
  EXPECT_EQ(result.exit_code, 65) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr(path_.string() + ":/image"), HasSubstr("row 41"), HasSubstr("NaN"), HasSubstr("5, 6")));
  EXPECT_THAT(result.left_behind, IsEmpty());
}

TEST_F(BadData, LabelOutOfRange) {
  const auto bad = file(64, 28, 64);
  bad->write("/label", 17, 1, Dtype::i64, bytes_of(std::vector<std::int64_t>{10}));
  bad->close();
  const JobResult result = run(2, {"data.classes=10"});
  EXPECT_EQ(result.exit_code, 65) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr(path_.string() + ":/label"), HasSubstr("row 17"), HasSubstr("label 10"),
                                   HasSubstr("0 to 9")));
  EXPECT_THAT(result.left_behind, IsEmpty());
}

}  // namespace
}  // namespace trireme::tests
