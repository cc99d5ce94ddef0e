// Errors: codes, texts, and the nearest known name.
#include "core/base/error.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

namespace trireme {
namespace {

TEST(Error, CarriesCodeAndFormattedText) {
  try {
    fail(ExitCode::data, "{}: {} samples, fewer than a batch of {}", "a.h5", 7, 8);
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_STREQ(error.what(), "a.h5: 7 samples, fewer than a batch of 8");
  }
}

TEST(Error, SystemErrorsNameTheReason) {
  try {
    fail_errno(ENOSPC, "a.h5: cannot be written");
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_STREQ(error.what(), "a.h5: cannot be written: No space left on device");
  }
}

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("batch", "batch"), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("bacth", "batch"), 1u);  // a swap
  EXPECT_EQ(edit_distance("batc", "batch"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, FindsANearNameAndRefusesFarOnes) {
  const std::array<std::string, 3> names = {"batch", "epochs", "threads"};
  EXPECT_EQ(nearest("bacth", names), "batch");
  EXPECT_EQ(nearest("epoch", names), "epochs");
  EXPECT_EQ(nearest("optimizer", names), "");
}

}  // namespace
}  // namespace trireme
