// summary.json: order, exact values, what is read back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "io/telemetry/recorder.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;

class SummaryTest : public testing::Test {
 protected:
  SummaryTest() : folder_(fs::path(testing::TempDir()) / ("trireme-summary-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~SummaryTest() override { fs::remove_all(folder_); }
  [[nodiscard]] fs::path file() const { return folder_ / "summary.json"; }
  fs::path folder_;
};

TEST_F(SummaryTest, KeysStayInTheOrderOfTheirFirstSetting) {
  Summary summary(file());
  summary.set("result", "running");
  summary.set("steps", std::int64_t{-9007199254740993});  // beyond what a double holds
  summary.set("rate", 0.1);
  summary.set("loss", std::nan(""));
  summary.set("resumed", false);
  summary.set("words \"ü\"", std::string("two\nlines"));
  summary.set_json("split", R"({"data": 0.5})");
  summary.set("result", "done");
  summary.write();
  std::ostringstream text;
  text << std::ifstream(file()).rdbuf();
  EXPECT_EQ(text.str(),
            "{\n"
            "  \"result\": \"done\",\n"
            "  \"steps\": -9007199254740993,\n"
            "  \"rate\": 0.1,\n"
            "  \"loss\": null,\n"
            "  \"resumed\": false,\n"
            "  \"words \\\"ü\\\"\": \"two\\nlines\",\n"
            "  \"split\": {\"data\": 0.5}\n"
            "}\n");
  const auto values = Summary::read(file());
  EXPECT_EQ(values, (std::map<std::string, std::string>{{"result", "done"},
                                                        {"steps", "-9007199254740993"},
                                                        {"rate", "0.1"},
                                                        {"loss", "null"},
                                                        {"resumed", "false"},
                                                        {"words \"ü\"", "two\nlines"},
                                                        {"split", "{\"data\":0.5}"}}));
}

TEST_F(SummaryTest, WritesAgainAndAgain) {
  Summary summary(file());
  for (const std::int64_t steps : {1, 2}) {
    summary.set("steps", steps);
    summary.write();
    EXPECT_EQ(Summary::read(file()).at("steps"), std::to_string(steps));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);  // no temporary file is left
}

TEST_F(SummaryTest, RefusesWhatIsNotJson) {
  Summary summary(file());
  EXPECT_THROW(summary.set_json("split", "{"), Error);
  std::ofstream(file()) << "[1]";
  EXPECT_THROW((void)Summary::read(file()), Error);
  EXPECT_THROW((void)Summary::read(folder_ / "none.json"), Error);
}

}  // namespace
}  // namespace trireme::io
