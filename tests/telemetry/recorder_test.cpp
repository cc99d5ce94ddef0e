// metrics.jsonl and times.jsonl line by line, cutting back, totals, errors of the writing thread.
#include "io/telemetry/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "io/telemetry/lines.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

std::string content(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() : folder_(fs::path(testing::TempDir()) / ("trireme-recorder-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~RecorderTest() override { fs::remove_all(folder_); }

  [[nodiscard]] RecorderOptions options() const {
    RecorderOptions made;
    made.run_directory = folder_;
    made.metric_names = {"accuracy", "top 5 \"best\""};
    made.log_every_steps = 0;
    made.batch = 64;
    return made;
  }
  static void record(Recorder& recorder, std::uint64_t step, double seconds = 0.25) {
    const double at = static_cast<double>(step);
    const std::array metrics{at / 3, std::nan("")};
    StepRecord made;
    made.step = step;
    made.epoch = at / 10;
    made.loss = 1 / (at + 1);
    made.weight = 64;
    made.lr = 0.1;
    made.grad_norm = at == 2 ? INFINITY : 5e-324;
    made.skipped = step == 1;
    made.metrics = metrics;
    recorder.step(made, {seconds, 0.03125, 0.0625, 0.015625});
  }
  [[nodiscard]] std::vector<std::string> lines(const std::string& file) const {
    std::ifstream stream(folder_ / file);
    std::vector<std::string> all;
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }
  fs::path folder_;
};

TEST_F(RecorderTest, OneLineAStepWithTheShortestExactDecimals) {
  {
    Recorder recorder(options());
    for (std::uint64_t step = 0; step < 3; ++step) record(recorder, step);
  }
  EXPECT_EQ(
      lines("metrics.jsonl"),
      (std::vector<std::string>{
          R"({"step":0,"epoch":0,"loss":1,"weight":64,"lr":0.1,"grad_norm":5e-324,"skipped":false,"accuracy":0,"top 5 \"best\"":null})",
          R"({"step":1,"epoch":0.1,"loss":0.5,"weight":64,"lr":0.1,"grad_norm":5e-324,"skipped":true,"accuracy":0.3333333333333333,"top 5 \"best\"":null})",
          R"({"step":2,"epoch":0.2,"loss":0.3333333333333333,"weight":64,"lr":0.1,"grad_norm":null,"skipped":false,"accuracy":0.6666666666666666,"top 5 \"best\"":null})"}));
  EXPECT_EQ(lines("times.jsonl")[2],
            R"({"step":2,"seconds":0.25,"data_wait":0.03125,"comm_wait":0.0625,"save_stall":0.015625})");
}

TEST_F(RecorderTest, EveryLineIsJsonAndEveryNumberExact) {
  {
    Recorder recorder(options());
    for (std::uint64_t step = 0; step < 200; ++step) record(recorder, step);
  }
  const auto all = lines("metrics.jsonl");
  ASSERT_EQ(all.size(), 200u);
  for (std::uint64_t step = 0; step < 200; ++step) {
    const json line = json::parse(all[step]);
    EXPECT_EQ(line["step"].get<std::uint64_t>(), step);
    EXPECT_EQ(line["loss"].get<double>(), 1 / (static_cast<double>(step) + 1));
    EXPECT_EQ(line["accuracy"].get<double>(), static_cast<double>(step) / 3);
    EXPECT_TRUE(line["top 5 \"best\""].is_null());
  }
}

TEST_F(RecorderTest, TimesDoNotChangeTheMetrics) {
  std::string first;
  for (const double seconds : {0.25, 3.5}) {
    {
      Recorder recorder(options());
      recorder.cut_back(0);
      for (std::uint64_t step = 0; step < 5; ++step) record(recorder, step, seconds);
      recorder.evaluation(5, 0.5, std::array{0.9, 1.0}, 10000, seconds);
      recorder.checkpoint(5, seconds);
    }
    if (first.empty()) first = content(folder_ / "metrics.jsonl");
    EXPECT_EQ(content(folder_ / "metrics.jsonl"), first);
  }
  EXPECT_FALSE(first.empty());
}

TEST_F(RecorderTest, EvaluationsAndCheckpoints) {
  {
    Recorder recorder(options());
    recorder.evaluation(120, 0.25, std::array{0.9125, 0.5}, 10000, 1.5);
    recorder.checkpoint(120, 0.125);
  }
  EXPECT_EQ(content(folder_ / "metrics.jsonl"),
            "{\"step\":120,\"evaluation\":{\"loss\":0.25,\"accuracy\":0.9125,\"top 5 "
            "\\\"best\\\"\":0.5,\"samples\":10000}}\n");
  EXPECT_EQ(content(folder_ / "times.jsonl"),
            "{\"step\":120,\"evaluation_seconds\":1.5}\n{\"step\":120,\"checkpoint_stall\":0.125}\n");
}

TEST_F(RecorderTest, CutsBackToTheResumedStep) {
  {
    Recorder recorder(options());
    for (std::uint64_t step = 0; step < 8; ++step) {
      record(recorder, step);
      if (step % 2 == 1) recorder.evaluation(step + 1, 0.5, std::array{0.9, 1.0}, 100, 1);
    }
    recorder.sync();
    std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"step\":3,\"epo";  // torn by a crash
  }
  const auto steps = [&](const char* file) {
    std::string text;
    for (const std::string& line : lines(file)) {
      const json parsed = json::parse(line);
      text += (parsed.contains("evaluation") || parsed.contains("evaluation_seconds") ? "e" : " ") +
              std::to_string(parsed["step"].get<int>());
    }
    return text;
  };
  {
    Recorder recorder(options());
    recorder.cut_back(6, false);  // the evaluation after 6 updates was done before the save
    EXPECT_EQ(steps("metrics.jsonl"), " 0 1e2 2 3e4 4 5e6");
    EXPECT_EQ(steps("times.jsonl"), " 0 1e2 2 3e4 4 5e6");
    recorder.cut_back(6, true);  // it is due again
    EXPECT_EQ(steps("metrics.jsonl"), " 0 1e2 2 3e4 4 5");
    record(recorder, 6);  // and it goes on from there
    recorder.sync();
    EXPECT_EQ(steps("metrics.jsonl"), " 0 1e2 2 3e4 4 5 6");
    recorder.cut_back(4);
    record(recorder, 4);
  }
  EXPECT_EQ(steps("metrics.jsonl"), " 0 1e2 2 3 4");
  EXPECT_EQ(steps("times.jsonl"), " 0 1e2 2 3 4");
}

TEST_F(RecorderTest, ATornLastLineGoes) {
  {
    Recorder recorder(options());
    for (std::uint64_t step = 0; step < 3; ++step) record(recorder, step);
  }
  const std::string whole = content(folder_ / "metrics.jsonl");
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (const std::size_t left : {last + 1, whole.size() - 1}) {
    fs::resize_file(folder_ / "metrics.jsonl", left);
    Recorder(options()).cut_back(100);
    EXPECT_EQ(content(folder_ / "metrics.jsonl"), whole.substr(0, last));
    std::ofstream(folder_ / "metrics.jsonl") << whole;
  }
}

TEST_F(RecorderTest, IsOnDiskAfterASecondAndAfterSync) {
  Recorder recorder(options());
  record(recorder, 0);
  recorder.sync();
  EXPECT_EQ(lines("metrics.jsonl").size(), 1u);
  record(recorder, 1);
  std::this_thread::sleep_for(1500ms);  // a second, and one look of the thread
  EXPECT_EQ(lines("metrics.jsonl").size(), 2u);
}

TEST_F(RecorderTest, MoreStepsThanTheRingHolds) {
  {
    Recorder recorder(options());
    for (std::uint64_t step = 0; step < 20000; ++step) record(recorder, step);
    EXPECT_EQ(recorder.totals().steps, 20000u);
  }
  const auto all = lines("metrics.jsonl");
  ASSERT_EQ(all.size(), 20000u);
  EXPECT_EQ(json::parse(all.back())["step"].get<int>(), 19999);
  EXPECT_EQ(json::parse(all[12345])["accuracy"].get<double>(), 12345.0 / 3);
}

TEST_F(RecorderTest, TotalsAndTheMedianRate) {
  Recorder recorder(options());
  EXPECT_EQ(recorder.totals().samples_per_second, 0.0);
  // Windows of 1 s: a slow first one (2 steps of 0.5 s), then 4, 8 and 2 steps a second; the median is 4.
  std::uint64_t step = 0;
  for (const auto& [steps, seconds] : {std::pair{2, 0.5}, {4, 0.25}, {8, 0.125}, {2, 0.5}}) {
    for (int i = 0; i < steps; ++i) record(recorder, step++, seconds);
  }
  const Recorder::Totals totals = recorder.totals();
  EXPECT_EQ(totals.steps, 16u);
  EXPECT_DOUBLE_EQ(totals.seconds, 4.0);  // exact: powers of two
  EXPECT_DOUBLE_EQ(totals.data_wait, 16 * 0.03125);
  EXPECT_DOUBLE_EQ(totals.comm_wait, 16 * 0.0625);
  EXPECT_DOUBLE_EQ(totals.save_stall, 16 * 0.015625);
  EXPECT_DOUBLE_EQ(totals.samples_per_second, 4 * 64);
}

TEST_F(RecorderTest, AShortRunsRateIsThatOfAllSteps) {
  Recorder recorder(options());
  for (std::uint64_t step = 0; step < 3; ++step) record(recorder, step, 0.25);
  EXPECT_DOUBLE_EQ(recorder.totals().samples_per_second, 256);
}

TEST_F(RecorderTest, OtherRanksCountButWriteNothing) {
  RecorderOptions silent = options();
  silent.writes = false;
  {
    Recorder recorder(silent);
    record(recorder, 0);
    recorder.cut_back(0);
    recorder.sync();
    EXPECT_EQ(recorder.totals().steps, 1u);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RecorderTest, RefusesNamesAndNumbersThatDoNotFit) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"loss"}, {"a", "a"}}) {
    RecorderOptions wrong = options();
    wrong.metric_names = names;
    EXPECT_THROW(Recorder{wrong}, Error);
  }
  Recorder recorder(options());
  StepRecord one;
  const std::array<double, 1> metrics{0};
  one.metrics = metrics;
  EXPECT_THROW(recorder.step(one, {}), Error);
}

TEST_F(RecorderTest, AFullDiskIsReportedByALaterCall) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  fs::create_symlink("/dev/full", folder_ / "metrics.jsonl");
  Recorder recorder(options());
  record(recorder, 0);
  try {
    recorder.sync();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_THAT(error.what(), testing::HasSubstr("metrics.jsonl"));
  }
}

// A run that lost its directory adds no line to its successor's.
TEST_F(RecorderTest, WritesOnlyWhatItIsAllowedTo) {
  RecorderOptions mine = options();
  bool owner = true;
  mine.check = [&owner] {
    if (!owner) fail(ExitCode::io, "this run no longer owns its directory");
  };
  Recorder recorder(mine);
  record(recorder, 0);
  recorder.sync();
  const std::string before = content(folder_ / "metrics.jsonl");
  EXPECT_NE(before, "");
  owner = false;
  record(recorder, 1);
  EXPECT_THROW(recorder.sync(), Error);
  EXPECT_EQ(content(folder_ / "metrics.jsonl"), before);
}

TEST(ConsoleLine, SaysWhereTheRunIsAndHowLongItTakes) {
  RecorderOptions options;
  options.metric_names = {"accuracy"};
  options.total_steps = 1407;
  options.batch = 128;
  const std::array metrics{0.81234};
  StepRecord record;
  record.step = 149;
  record.epoch = 0.3198;
  record.loss = 0.531249;
  record.metrics = metrics;
  Interval interval;
  interval.steps = 50;
  interval.times = {2.5, 0.025, 0.1, 0};
  EXPECT_EQ(
      console_line(record, interval, options),
      "step 150/1407  epoch 0.32  loss 0.5312  accuracy 0.8123  2,560 samples/s  1 min 03 s left  waits: data 1.0 %, "
      "comm 4.0 %");
  record.step = 1406;
  interval.times.seconds = 0;  // no rate without time
  EXPECT_EQ(console_line(record, interval, options), "step 1407/1407  epoch 0.32  loss 0.5312  accuracy 0.8123");
}

TEST(ConsoleLine, Durations) {
  EXPECT_EQ(text_of_seconds(0.4), "0 s");
  EXPECT_EQ(text_of_seconds(59.4), "59 s");
  EXPECT_EQ(text_of_seconds(59.6), "1 min 00 s");
  EXPECT_EQ(text_of_seconds(3600 + 7 * 60), "1 h 07 min");
}

TEST_F(RecorderTest, PrintsEachNthStepAndTheLast) {
  RecorderOptions talking = options();
  talking.metric_names = {};
  talking.log_every_steps = 3;
  talking.total_steps = 7;
  testing::internal::CaptureStdout();
  {
    Recorder recorder(talking);
    for (std::uint64_t step = 0; step < 7; ++step) {
      StepRecord record;
      record.step = step;
      record.loss = 0.5;
      recorder.step(record, {0.5, 0, 0.25, 0});
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "step 3/7  epoch 0.00  loss 0.5  128 samples/s  2 s left  waits: data 0.0 %, comm 50.0 %\n"
            "step 6/7  epoch 0.00  loss 0.5  128 samples/s  1 s left  waits: data 0.0 %, comm 50.0 %\n"
            "step 7/7  epoch 0.00  loss 0.5  128 samples/s  waits: data 0.0 %, comm 50.0 %\n");
}

}  // namespace
}  // namespace trireme::io
