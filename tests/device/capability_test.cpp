// Whether a build's code runs on a device, by NVIDIA's rules (CUDA C++ Programming Guide, "Application compatibility").
#include "core/device/cuda/capability.h"

#include <gtest/gtest.h>

namespace trireme::device::cuda {
namespace {

TEST(Capability, CodeOfOneMajorRunsOnItsLaterMinors) {
  EXPECT_EQ(code_for("80-real;90-real", 8, 0), Code::binary);
  EXPECT_EQ(code_for("80-real;90-real", 8, 9), Code::binary);
  EXPECT_EQ(code_for("86-real", 8, 0), Code::none);
  EXPECT_EQ(code_for("80-real;90-real", 10, 0), Code::none);
  EXPECT_EQ(code_for("80-real;90-real", 7, 5), Code::none);
  EXPECT_EQ(code_for("100-real", 10, 3), Code::binary);
  EXPECT_EQ(code_for("100-real", 12, 0), Code::none);
}

TEST(Capability, PtxRunsOnEverythingNewer) {
  EXPECT_EQ(code_for("80;90", 9, 0), Code::binary);
  EXPECT_EQ(code_for("80;90", 12, 0), Code::ptx);
  EXPECT_EQ(code_for("80,90", 12, 0), Code::ptx);
  EXPECT_EQ(code_for("80-virtual", 8, 0), Code::ptx);
  EXPECT_EQ(code_for("86", 8, 0), Code::none);
  EXPECT_EQ(code_for("90", 8, 9), Code::none);
}

TEST(Capability, SpecificCodeStaysWhereItBelongs) {
  EXPECT_EQ(code_for("90a", 9, 0), Code::binary);
  EXPECT_EQ(code_for("90a", 10, 0), Code::none);
  EXPECT_EQ(code_for("100a-real", 10, 3), Code::none);
  EXPECT_EQ(code_for("100f", 10, 3), Code::binary);
  EXPECT_EQ(code_for("100f", 12, 0), Code::none);
}

TEST(Capability, WordsAreTrustedAndNothingIsNothing) {
  EXPECT_EQ(code_for("native", 12, 1), Code::binary);
  EXPECT_EQ(code_for("", 9, 0), Code::none);
}

TEST(Capability, SaysWhatToSet) {
  EXPECT_EQ(with_device("80,90", 12, 0), "80;90;120");
  EXPECT_EQ(with_device("", 8, 9), "89");
}

}  // namespace
}  // namespace trireme::device::cuda
