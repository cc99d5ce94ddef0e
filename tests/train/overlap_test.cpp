// Communication overlaps backward: with one layer's backward held up, earlier buckets have left and come back before it
// ends.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/train/harness.h"

namespace trireme::train {
namespace {

// On two ranks: a rank alone has nobody to wait for, so there the sums are taken at once.
TEST(Overlap, ABucketIsReducedWhileBackwardStillRuns) {
  Harness harness("conditional-net", 32, 2, 10);
  ASSERT_EQ(harness.group.size(), 2);
  const std::uint32_t linear = ops::Registry::get().find("linear", 1);
  harness.step->run(0, *harness.feed);
  int layers = 0;
  double first_layer_began = 0;
  harness.model->tape().on_op = [&](const autograd::OpCall& call) {
    if (call.ended || !call.backward || call.op != linear || ++layers < 3) return;
    // Backward of fc1, the last of three: head and fc2 have announced their gradients.
    first_layer_began = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  };
  harness.step->run(1, *harness.feed);
  ASSERT_EQ(layers, 3);
  ASSERT_GE(harness.sync->buckets(), 3u);
  const double ended = first_layer_began + 1.0;
  EXPECT_LT(harness.sync->bucket_done(0).time(), ended);                            // the weights of head and fc2
  EXPECT_GT(harness.sync->bucket_done(harness.sync->buckets() - 1).time(), ended);  // fc1 is in the last ones
  EXPECT_TRUE(harness.group.finish());
}

}  // namespace
}  // namespace trireme::train

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ::alarm(100);
  return RUN_ALL_TESTS();
}
