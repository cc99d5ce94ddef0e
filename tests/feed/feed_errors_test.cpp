// Bad data reach the compute thread as errors with file, dataset and sample, at the batch that holds them.
#include <limits>

#include "tests/feed/feeds.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::FeedSetup;
using test::sequence_of;
using test::SlowReader;

class FeedErrors : public testing::Test {
 protected:
  FeedErrors() { setup_.shuffle = Shuffle::none; }

  void open(const std::map<std::string, std::string>& fields) {
    const std::vector<std::filesystem::path> files = {folder_ / "*.h5"};
    setup_.data = std::make_shared<Dataset>(Dataset::open(files, fields));
    setup_.options.max_rows = 4;
  }

  // Rows of /x (3 floats) and /label in two files: 6 and 10 samples.
  void write(const char* name, const std::vector<float>& x, const std::vector<std::int32_t>& labels) {
    const auto file = Hdf5File::create(folder_ / name);
    const auto rows = static_cast<std::int64_t>(labels.size());
    file->create_dataset("/x", Shape({rows, 3}), Dtype::f32, {});
    file->create_dataset("/label", Shape({rows}), Dtype::i32, {});
    file->write("/x", 0, rows, Dtype::f32, std::as_bytes(std::span(x)));
    file->write("/label", 0, rows, Dtype::i32, std::as_bytes(std::span(labels)));
    file->close();
  }

  // Takes batches until one fails; returns how many came whole.
  int good_batches(Feed& feed, ExitCode code, const std::vector<std::string>& parts) {
    int good = 0;
    expect_error(code, parts, [&] {
      while (const auto batch = feed.next(stream_)) {
        ++good;
        feed.release(*batch, stream_);
      }
    });
    // It stays so.
    expect_error(code, parts, [&] { static_cast<void>(feed.next(stream_)); });
    return good;
  }

  Folder folder_;
  FeedSetup setup_;
  device::Stream stream_ = device::make_cpu()->compute_stream();
};

TEST_F(FeedErrors, NanAndInfNameTheirPlace) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(30, 1.0f);
    x[3 * 7 + 2] = bad;  // row 7 of b.h5: sample 13
    write("a.h5", std::vector<float>(18, 0.5f), std::vector<std::int32_t>(6, 0));
    write("b.h5", x, std::vector<std::int32_t>(10, 1));
    open({{"x", "/x"}, {"label", "/label"}});
    const auto feed = setup_.make(sequence_of(4, 1, 0, 1, 0, 4));
    EXPECT_EQ(good_batches(*feed, ExitCode::data, {"b.h5:/x", "row 7", "sample 13", "NaN or Inf", "at (2)"}), 3);
  }
}

TEST_F(FeedErrors, LabelsOutsideTheirClassesNameThemselves) {
  setup_.options.classes = 10;
  for (const std::int32_t bad : {10, -1}) {
    std::vector<std::int32_t> labels(10, 9);
    labels[2] = bad;
    write("a.h5", std::vector<float>(18, 0.5f), std::vector<std::int32_t>(6, 0));
    write("b.h5", std::vector<float>(30, 0.5f), labels);
    open({{"x", "/x"}, {"label", "/label"}});
    const auto feed = setup_.make(sequence_of(4, 1, 0, 1, 0, 4));
    EXPECT_EQ(good_batches(*feed, ExitCode::data,
                           {"b.h5:/label", "row 2", "sample 8", fmt::format("label {}", bad), "0 to 9"}),
              2);
  }
  setup_.options.classes = 0;  // unchecked
  const auto feed = setup_.make(sequence_of(4, 1, 0, 1, 0, 4));
  EXPECT_EQ(test::take_all(*feed, stream_).size(), 4u);
}

TEST_F(FeedErrors, TheLabelFieldMustBeThereAndWhole) {
  write("a.h5", std::vector<float>(18, 0.5f), std::vector<std::int32_t>(6, 0));
  setup_.options.classes = 10;
  setup_.options.label = "target";
  open({{"x", "/x"}, {"label", "/label"}});
  expect_error(ExitCode::usage, {"'target'", "data.label"},
               [&] { static_cast<void>(setup_.make(sequence_of(4, 1, 0, 1, 0, 1))); });
  setup_.options.label = "x";
  expect_error(ExitCode::usage, {"integer labels", "'x'", "f32"},
               [&] { static_cast<void>(setup_.make(sequence_of(4, 1, 0, 1, 0, 1))); });
}

TEST_F(FeedErrors, ReadersErrorsKeepTheirWordsAndCode) {
  write("a.h5", std::vector<float>(18, 0.5f), std::vector<std::int32_t>(6, 0));
  open({{"x", "/x"}});
  auto reader = std::make_unique<SlowReader>(make_hdf5_reader(*setup_.data), std::chrono::milliseconds(0), 3);
  const auto feed = setup_.make(sequence_of(4, 1, 0, 1, 0, 4), std::move(reader));
  EXPECT_EQ(good_batches(*feed, ExitCode::io, {"the disk of row 3 is gone"}), 0);
}

TEST_F(FeedErrors, FilesThatChangeMeanwhileAreRefused) {
  write("a.h5", std::vector<float>(18, 0.5f), std::vector<std::int32_t>(6, 0));
  open({{"x", "/x"}});
  std::filesystem::resize_file(folder_ / "a.h5", 100);
  const auto feed = setup_.make(sequence_of(4, 1, 0, 1, 0, 4));
  EXPECT_EQ(good_batches(*feed, ExitCode::data, {"a.h5", "100 bytes now", "must not change"}), 0);
}

TEST_F(FeedErrors, ThrowingSequencesAndWrongRowsArrive) {
  write("a.h5", std::vector<float>(18, 0.5f), std::vector<std::int32_t>(6, 0));
  open({{"x", "/x"}});
  const auto feed = setup_.make([](std::uint64_t k) -> std::optional<MicroBatch> {
    return MicroBatch{0, k == 2 ? 5 : 4};
  });
  EXPECT_EQ(good_batches(*feed, ExitCode::internal, {"micro-batch of 5 rows", "slots have 4"}), 2);
}

}  // namespace
}  // namespace trireme::io
