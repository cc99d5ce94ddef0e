// main of tests that run under mpirun: every rank runs the same tests in the same order. A rank that fails a test
// goes on with the next, so that collectives stay paired; a rank that waits for ever is ended by the alarm.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "tests/comm/ranks.h"

namespace trireme::comm {

namespace {

std::optional<Group> the_world;

// Rank 0 tells what runs; the others speak of failures alone.
class FailuresOnly final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", world().rank(), result.file_name(), result.line_number(),
                 result.summary());
  }
};

}  // namespace

Group& world() { return *the_world; }

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  alarm(100);
  the_world = connect({});
  if (world().rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(std::make_unique<FailuresOnly>().release());
  }
  const int result = RUN_ALL_TESTS();
  EXPECT_TRUE(world().finish());
  the_world.reset();
  return result;
}

}  // namespace trireme::comm

int main(int argc, char** argv) { return trireme::comm::run(argc, argv); }
