// One kernel: barriers, warp collectives, shared memory, arguments, memory. Faults are caught under each seed.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/cuda_emulation/sample_kernels.h"
#include "tests/cuda_emulation/seeds.h"

namespace trireme::cuda_emulation {
namespace {

constexpr unsigned rows = 3, columns = 300;

std::vector<float> numbers() {
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 31);
  return values;
}

// Small whole numbers, so the sums are exact in any order; NaN is not equal.
template <class Kernel>
bool sums_rows(Kernel kernel) {
  SampleStream stream;
  const std::vector<float> host = numbers();
  OnDevice values(host.size()), sums(rows);
  cudaMemcpyAsync(values.data, host.data(), values.bytes, cudaMemcpyDefault, stream.stream);
  kernel(stream.stream, values.data, sums.data);
  std::vector<float> result(rows);
  cudaMemcpyAsync(result.data(), sums.data, sums.bytes, cudaMemcpyDefault, stream.stream);
  for (unsigned row = 0; row < rows; ++row) {
    float expected = 0;
    for (unsigned i = 0; i < columns; ++i) expected += host[row * columns + i];
    if (result[row] != expected) return false;
  }
  return true;
}

Caught caught_row_sums(bool barrier) {
  return catch_over_seeds([barrier] {
    return sums_rows([barrier](cudaStream_t stream, const float* values, float* sums) {
      row_sums(stream, values, sums, rows, columns, barrier);
    });
  });
}

// Whatever the kernel leaves: the emulation has to find it.
Caught caught_by_itself(Fault fault) {
  return catch_over_seeds([fault] {
    SampleStream stream;
    OnDevice values(64);
    plant(fault, stream.stream, values.data, 64);
    return cudaStreamSynchronize(stream.stream) == cudaSuccess;
  });
}

void expect_always(const Caught& caught, const char* words) {
  for (const Mode mode : modes) EXPECT_EQ(caught.in(mode), seeds);
  EXPECT_NE(caught.words.find(words), std::string::npos) << caught.words;
}

TEST(Kernel, RightOnesAreNeverCaught) {
  EXPECT_EQ(caught_row_sums(true).seeds_in_all, 0u);
  const Caught by_warps = catch_over_seeds([] {
    return sums_rows([](cudaStream_t stream, const float* values, float* sums) {
      row_sums_by_warps(stream, values, sums, rows, columns);
    });
  });
  EXPECT_EQ(by_warps.seeds_in_all, 0u) << by_warps.words;
}

TEST(Kernel, LastBlockIsTheOneThatEndsLast) {
  const Caught caught = catch_over_seeds([] {
    SampleStream stream;
    SampleMemory<unsigned, false> counters(2);
    cudaMemsetAsync(counters.data, 0, counters.bytes, stream.stream);
    for (int i = 0; i < 2; ++i) count_blocks(stream.stream, counters.data, counters.data + 1, 7);
    std::vector<unsigned> host(2);
    cudaMemcpyAsync(host.data(), counters.data, counters.bytes, cudaMemcpyDefault, stream.stream);
    return host == std::vector<unsigned>{0, 14};
  });
  EXPECT_EQ(caught.seeds_in_all, 0u) << caught.words;
}

TEST(Kernel, MissingBarrierIsCaught) {
  const Caught caught = caught_row_sums(false);
  for (const Mode mode : modes) EXPECT_GE(caught.in(mode), seeds * 9 / 10);
}

TEST(Kernel, DivergentBarrierIsCaught) {
  expect_always(caught_by_itself(Fault::divergent_barrier), "divergent barrier");
}
TEST(Kernel, LostThreadIsCaught) { expect_always(caught_by_itself(Fault::lost_thread), "wait for ever"); }
TEST(Kernel, DifferentCollectivesAreCaught) {
  expect_always(caught_by_itself(Fault::different_collectives), "sample_kernels.cu");
}
TEST(Kernel, TooMuchSharedMemoryIsCaught) { expect_always(caught_by_itself(Fault::much_shared), "48 KiB"); }

TEST(Kernel, UnwrittenSharedMemoryIsNan) {
  const Caught caught = catch_over_seeds([] {
    SampleStream stream;
    OnDevice values(32);
    plant(Fault::unwritten_shared, stream.stream, values.data, 32);
    std::vector<float> host(32);
    cudaMemcpyAsync(host.data(), values.data, values.bytes, cudaMemcpyDefault, stream.stream);
    EXPECT_EQ(host[30], 1.0f);
    return !std::isnan(host[31]);
  });
  for (const Mode mode : modes) EXPECT_EQ(caught.in(mode), seeds);
}

TEST(Kernel, ArgumentsThatTheDeviceCannotReachAreCaught) {
  begin(1, Mode::random);
  SampleStream stream;
  std::vector<float> pageable(64);
  fill(stream.stream, pageable.data(), 1, 64);
  EXPECT_NE(take_finding().find("argument 0"), std::string::npos);
  OnDevice values(64);
  float* freed = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&freed), 256);
  cudaFree(freed);
  add_one(stream.stream, values.data, freed, 64);
  const std::string words = take_finding();
  EXPECT_NE(words.find("argument 1"), std::string::npos) << words;
  EXPECT_NE(words.find("add one"), std::string::npos) << words;
}

TEST(Kernel, DefaultStreamIsCaught) {
  begin(1, Mode::random);
  OnDevice values(64);
  fill(nullptr, values.data, 1, 64);
  EXPECT_NE(take_finding().find("default stream"), std::string::npos);
}

TEST(Kernel, AfterAFindingEveryCallFails) {
  begin(1, Mode::random);
  SampleStream stream;
  OnDevice values(64);
  plant(Fault::divergent_barrier, stream.stream, values.data, 64);
  EXPECT_EQ(cudaStreamSynchronize(stream.stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);  // it stays
  EXPECT_NE(std::string(cudaGetErrorString(cudaErrorLaunchFailure)).find("divergent"), std::string::npos);
  EXPECT_FALSE(take_finding().empty());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Kernel, HostDoesNotReachDeviceMemory) {
  begin(1, Mode::random);
  SampleStream stream;
  OnDevice values(64);
  OnHost pinned(64);
  EXPECT_FALSE(host_can_read(values.data));
  EXPECT_TRUE(host_can_read(pinned.data));
  fill(stream.stream, values.data, 1, 64);
  cudaStreamSynchronize(stream.stream);
  EXPECT_FALSE(host_can_read(values.data));
}

TEST(KernelDeathTest, HostReadOfDeviceMemoryEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const OnDevice values(64);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile float*>(values.data)), "host code touched device memory");
}

#ifdef __SANITIZE_ADDRESS__
TEST(KernelDeathTest, StoreOutOfRangeEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SampleStream stream;
  const OnDevice values(64);
  EXPECT_DEATH(
      {
        plant(Fault::past_the_end, stream.stream, values.data, 64);
        cudaStreamSynchronize(stream.stream);
      },
      "AddressSanitizer");
}
#endif

}  // namespace
}  // namespace trireme::cuda_emulation
