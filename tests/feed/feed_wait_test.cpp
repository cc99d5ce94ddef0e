// Time: waits are measured where data are late and nowhere else, a feed ends at once, next() and release() allocate
// nothing.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/feed/feeds.h"

namespace {

thread_local bool counting = false;
std::atomic<int> allocations = 0;

void* counted(std::size_t bytes) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Every allocation of this program is counted while a thread asks for it.
void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace trireme::io {
namespace {

using std::chrono::milliseconds;
using test::FeedSetup;
using test::sequence_of;
using test::SlowReader;
using Clock = std::chrono::steady_clock;

class FeedWait : public testing::Test {
 protected:
  FeedWait() {
    test::write_samples(folder_ / "a.h5", 0, 20000, {5000});  // blocks of 5,000 samples
    setup_.data = std::make_shared<Dataset>(test::open_samples({folder_ / "*.h5"}));
    setup_.options.max_rows = 5000;
    setup_.options.memory_bytes = 0;
    setup_.shuffle = Shuffle::none;
  }
  std::unique_ptr<Feed> slow_feed(milliseconds sleep, std::uint64_t steps) {
    return setup_.make(sequence_of(5000, 1, 0, 1, 0, steps),
                       std::make_unique<SlowReader>(make_hdf5_reader(*setup_.data), sleep));
  }

  Folder folder_;
  FeedSetup setup_;
  device::Stream stream_ = device::make_cpu()->compute_stream();
};

TEST_F(FeedWait, LateDataAreWaitedForAndTold) {
  const auto feed = slow_feed(milliseconds(200), 4);
  EXPECT_EQ(feed->waited(), 0);
  const auto start = Clock::now();
  test::take_all(*feed, stream_);
  const double all = std::chrono::duration<double>(Clock::now() - start).count();
  // The compute thread does nothing else: 4 reads of 200 ms, less what a busy machine let pass before next().
  EXPECT_GT(feed->waited(), 0.3);
  EXPECT_LE(feed->waited(), all);
}

TEST_F(FeedWait, DataThatAreThereCostNoWait) {
  const auto feed = slow_feed(milliseconds(20), 8);
  int free = 0;
  for (int k = 0; k < 8; ++k) {
    std::this_thread::sleep_for(milliseconds(100));  // a step longer than a read
    const double before = feed->waited();
    const auto batch = feed->next(stream_);
    ASSERT_TRUE(batch);
    feed->release(*batch, stream_);
    free += feed->waited() == before;
  }
  // Without prefetch each of them waits. Not all of 8: the machine may be busy.
  EXPECT_GE(free, 2);
}

TEST_F(FeedWait, AFeedEndsWhileItReadsAndWhileItWaits) {
  for (const int taken : {0, 1, 2}) {
    auto feed = slow_feed(milliseconds(100), 1000);
    std::optional<Batch> batch;
    for (int k = 0; k < taken; ++k) batch = feed->next(stream_);
    std::this_thread::sleep_for(milliseconds(taken == 1 ? 350 : 30));  // both slots full; in a read
    const auto start = Clock::now();
    feed.reset();
    // The read that is under way, not the 100 s of all.
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 10);
  }
}

TEST_F(FeedWait, NextAndReleaseAllocateNothing) {
  setup_.options.max_rows = 100;
  setup_.transforms = {"image: flip", "image: scale 1/255"};
  const auto feed = setup_.make(sequence_of(100, 1, 0, 1, 0, 60));
  int batches = 0;
  while (true) {
    counting = batches > 4;
    const auto batch = feed->next(stream_);
    if (batch) feed->release(*batch, stream_);
    counting = false;
    if (!batch) break;
    ++batches;
  }
  EXPECT_EQ(batches, 60);
  EXPECT_EQ(allocations, 0);
  counting = true;
  const auto one = std::make_unique<int>(1);
  counting = false;
  EXPECT_EQ(allocations, *one) << "allocations are not counted at all";
}

}  // namespace
}  // namespace trireme::io
