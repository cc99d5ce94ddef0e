// Streams and events: order, waiting between streams, time stamps, failure, and a queue that is full.
#include "core/device/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/device/device.h"
#include "core/device/doorbell.h"
#include "core/device/thread_stream.h"

namespace trireme::device {
namespace {

using namespace std::chrono_literals;

Stream thread_stream(ThreadStream::Hooks hooks = {}) {
  return Stream(std::make_shared<ThreadStream>("test", std::move(hooks)));
}

TEST(ThreadStream, RunsInOrderOverMoreTasksThanTheQueueHolds) {
  Stream stream = thread_stream();
  struct Seen {
    std::uint64_t next = 0, wrong = 0;
  } seen;
  constexpr std::uint64_t tasks = 20'000;
  for (std::uint64_t i = 0; i < tasks; ++i) stream.run([i, &seen] { seen.wrong += seen.next++ == i ? 0u : 1u; });
  stream.synchronize();
  EXPECT_EQ(seen.next, tasks);
  EXPECT_EQ(seen.wrong, 0u);
}

TEST(ThreadStream, AFullQueueMakesTheCallerWait) {
  Stream stream = thread_stream();
  std::atomic<bool> open{false};
  std::atomic<int> ran{0};
  stream.run([&open] {
    while (!open.load()) std::this_thread::sleep_for(1ms);
  });
  std::thread opener([&open] {
    std::this_thread::sleep_for(50ms);
    open.store(true);
  });
  for (int i = 0; i < 5000; ++i) stream.run([&ran] { ran.fetch_add(1); });
  EXPECT_TRUE(open.load());  // 5,000 do not fit into 4,096
  stream.synchronize();
  EXPECT_EQ(ran.load(), 5000);
  opener.join();
}

TEST(ThreadStream, AnEventIsDoneAfterItsWorkAndTellsItsTime) {
  Stream stream = thread_stream();
  const double before = seconds_now();
  stream.run([] { std::this_thread::sleep_for(30ms); });
  const Event first = stream.record();
  EXPECT_FALSE(first.done());
  const double waited = first.synchronize();
  EXPECT_TRUE(first.done());
  EXPECT_GT(waited, 0.0);
  stream.run([] { std::this_thread::sleep_for(20ms); });
  const Event second = stream.record();
  EXPECT_GE(first.time() - before, 0.030);
  EXPECT_GE(second.time() - first.time(), 0.020);
  EXPECT_EQ(second.synchronize(), 0.0);
}

TEST(ThreadStream, AForgottenEventIsDone) {
  Stream stream = thread_stream();
  const Event old = stream.record();
  for (int i = 0; i < 5000; ++i) [[maybe_unused]] const Event event = stream.record();
  stream.synchronize();
  EXPECT_TRUE(old.done());
  EXPECT_EQ(old.synchronize(), 0.0);
  EXPECT_EQ(old.time(), 0.0);
}

TEST(ThreadStream, WaitsForAnotherStream) {
  Stream slow = thread_stream(), fast = thread_stream();
  int value = 0, seen = -1;
  for (int round = 1; round <= 50; ++round) {
    slow.run([&value, round] {
      std::this_thread::sleep_for(200us);
      value = round;
    });
    fast.wait(slow.record());
    fast.run([&] { seen = value; });
    slow.wait(fast.record());
  }
  fast.synchronize();
  slow.synchronize();  // it waits for events of `fast`, which must live as long
  EXPECT_EQ(seen, 50);
}

TEST(ThreadStream, IdleGoesOnWhileItWaitsForAnotherStream) {
  std::atomic<int> beats{0};
  Stream beating = thread_stream({{}, {}, [&beats] {
                                    beats.fetch_add(1);
                                    return std::chrono::microseconds(1000);
                                  }});
  Stream slow = thread_stream();
  slow.run([] { std::this_thread::sleep_for(100ms); });
  beating.wait(slow.record());
  const Event done = beating.record();
  std::this_thread::sleep_for(20ms);
  const int early = beats.load();
  done.synchronize();
  EXPECT_GT(early, 1);
  EXPECT_GT(beats.load(), early);
}

TEST(ThreadStream, HooksRunOnTheThreadFirstAndLast) {
  std::vector<int> order;
  std::thread::id begin_thread, task_thread;
  {
    Stream stream = thread_stream(
        {[&] { order.push_back(1), begin_thread = std::this_thread::get_id(); }, [&] { order.push_back(3); }, {}});
    stream.run([&] { order.push_back(2), task_thread = std::this_thread::get_id(); });
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(begin_thread, task_thread);
  EXPECT_NE(begin_thread, std::this_thread::get_id());
}

TEST(ThreadStream, AFailureIsKeptAndNothingRunsAfterIt) {
  Stream stream = thread_stream();
  bool ran = false;
  const Event before = stream.record();
  before.synchronize();
  stream.run([] { fail(ExitCode::data, "sample {} is bad", 7); });
  stream.run([&ran] { ran = true; });
  const Event after = stream.record();
  for (int i = 0; i < 2; ++i) {
    try {
      after.synchronize();
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_STREQ(error.what(), "sample 7 is bad");
    }
  }
  EXPECT_FALSE(ran);
  EXPECT_TRUE(after.done());
}

TEST(ThreadStream, CopiesBytesInOrder) {
  Stream stream = thread_stream();
  std::vector<int> from(1000, 5), to(1000, 0);
  stream.copy(std::as_writable_bytes(std::span(to)), std::as_bytes(std::span(from)));
  stream.synchronize();
  EXPECT_EQ(to, from);
  EXPECT_THROW(stream.copy(std::as_writable_bytes(std::span(to)), std::as_bytes(std::span(from)).first(8)), Error);
}

TEST(Doorbell, NoRingIsLostBetweenManyThreads) {
  Doorbell bell;
  std::atomic<std::uint64_t> given{0};
  constexpr std::uint64_t rounds = 3000;
  std::vector<std::thread> waiters;
  for (int t = 0; t < 3; ++t)
    waiters.emplace_back([&] {
      for (std::uint64_t want = 1; want <= rounds; ++want)
        bell.wait([&] { return given.load(std::memory_order_acquire) >= want; }, 0);
    });
  std::vector<std::thread> ringers;
  for (int t = 0; t < 2; ++t)
    ringers.emplace_back([&] {
      for (std::uint64_t i = 0; i < rounds / 2; ++i) {
        given.fetch_add(1, std::memory_order_release);
        bell.ring();
        if (i % 64 == 0) std::this_thread::yield();
      }
    });
  for (auto& thread : ringers) thread.join();
  for (auto& thread : waiters) thread.join();  // a lost ring hangs here
  EXPECT_EQ(given.load(), rounds);
}

TEST(Doorbell, GivesUpAtItsLimit) {
  Doorbell bell;
  const double start = seconds_now();
  EXPECT_FALSE(bell.wait([] { return false; }, 10, 20ms));
  EXPECT_GE(seconds_now() - start, 0.020);
}

TEST(InlineStream, RunsAtOnceAndTellsTheTime) {
  Stream stream = make_cpu()->compute_stream();
  int value = 0;
  const double before = seconds_now();
  stream.run([&value] { value = 3; });
  EXPECT_EQ(value, 3);
  const Event event = stream.record();
  EXPECT_TRUE(event.done());
  EXPECT_GE(event.time(), before);
  EXPECT_LE(event.time(), seconds_now());
  Stream other = thread_stream();
  other.run([&value] {
    std::this_thread::sleep_for(10ms);
    value = 4;
  });
  stream.wait(other.record());
  EXPECT_EQ(value, 4);
}

TEST(Event, DefaultMadeIsDone) {
  const Event event;
  EXPECT_TRUE(event.done());
  EXPECT_EQ(event.synchronize(), 0.0);
  EXPECT_EQ(event.time(), 0.0);
}

}  // namespace
}  // namespace trireme::device
