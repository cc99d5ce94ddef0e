// A step's record costs the compute thread no allocation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "io/telemetry/recorder.h"

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace trireme::io {
namespace {

TEST(Recorder, AStepAllocatesNothingOnTheCallingThread) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("trireme-allocation-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  {
    RecorderOptions options;
    options.run_directory = folder;
    options.metric_names = {"accuracy", "recall"};
    Recorder recorder(options);
    const std::array metrics{0.5, 0.25};
    StepRecord record;
    record.metrics = metrics;
    const std::size_t before = allocations;
    for (record.step = 0; record.step < 1000; ++record.step) recorder.step(record, {});
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(recorder.totals().steps, 1000u);
    const std::size_t after = allocations;
    ::operator delete(::operator new(16));
    EXPECT_EQ(allocations, after + 1);  // the counter counts
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trireme::io
