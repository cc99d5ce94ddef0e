// What of mpirun's messages is passed on, and which line counts as the first cause.
#include "core/launch/console.h"

#include <gtest/gtest.h>

namespace trireme::launch {
namespace {

const std::string frame(74, '-');

std::string shown(Console& console, const std::vector<std::string>& lines) {
  testing::internal::CaptureStderr();
  for (const std::string& line : lines) console.line(line);
  console.end();
  return testing::internal::GetCapturedStderr();
}

TEST(Console, DropsWhatOnlyTellsTheCode) {
  Console console;
  EXPECT_EQ(
      shown(console, {"a", frame, "Primary job  terminated normally, but 1 process returned", "more", frame, frame,
                      "mpirun detected that one or more processes exited with non-zero status", frame, "b"}),
      "a\nb\n");
  EXPECT_EQ(console.first_cause(), "");
}

TEST(Console, PassesOtherMessagesOn) {
  Console console;
  const std::string noticed = "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).";
  EXPECT_EQ(shown(console, {frame, noticed, frame}), frame + "\n" + noticed + "\n" + frame + "\n");
  EXPECT_EQ(console.first_cause(), noticed);
}

TEST(Console, AFrameThatNeverClosesIsNotLost) {
  Console console;
  EXPECT_EQ(shown(console, {frame, "cut off"}), frame + "\ncut off\n");
}

TEST(Console, TheFirstErrorOfARankIsTheCause) {
  Console console;
  shown(console, {"mpirun noticed that process rank 0 exited", "warning: error: no", "[rank 2 n1] error: first",
                  "[rank 0 n0] error: second"});
  EXPECT_EQ(console.first_cause(), "[rank 2 n1] error: first");
}

}  // namespace
}  // namespace trireme::launch
