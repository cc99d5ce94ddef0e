// Orders between streams, and between device and host: a fault in each is caught under most seeds, the program without
// it under none.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/cuda_emulation/sample_kernels.h"
#include "tests/cuda_emulation/seeds.h"

namespace trireme::cuda_emulation {
namespace {

constexpr std::size_t count = 256;
constexpr int steps = 4;

bool all_are(const float* values, float value) {
  return std::all_of(values, values + count, [value](float each) { return each == value; });
}

void copy(void* to, const void* from, cudaStream_t stream) {
  cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDefault, stream);
}

void after(cudaStream_t later, const SampleEvent& event, cudaStream_t earlier) {
  cudaEventRecord(event.event, earlier);
  cudaStreamWaitEvent(later, event.event, 0);
}

// What a step does: a kernel's result travels on another stream; the host reads it once that stream is done.
struct ResultProgram {
  bool wait_for_kernel = true, wait_for_copy = true, right_stream = true, host_waits = true;

  bool operator()() const {
    SampleStream compute, copies;
    SampleEvent written, copied;
    OnDevice values(count), next(count);
    OnHost result(count);
    std::fill_n(result.data, count, 0.0f);
    bool right = true;
    for (int step = 1; step <= steps; ++step) {
      const auto value = static_cast<float>(step);
      fill(compute.stream, values.data, value, count);
      add_one(right_stream ? compute.stream : copies.stream, values.data, next.data, count);
      if (wait_for_kernel) after(copies.stream, written, compute.stream);
      copy(result.data, next.data, copies.stream);
      if (wait_for_copy) after(compute.stream, copied, copies.stream);
      if (host_waits) cudaStreamSynchronize(copies.stream);
      right = right && all_are(result.data, value + 1);
    }
    cudaDeviceSynchronize();
    return right;
  }
};

// Batches come through two slots; the host fills pinned memory for the next ones meanwhile.
struct SlotProgram {
  bool wait_for_reader = true, host_waits_for_pinned = true;

  bool operator()() const {
    constexpr int batches = 8;
    SampleStream compute, copies;
    std::array<SampleEvent, 2> arrived, used;
    OnDevice slot_a(count), slot_b(count), results(batches * count);
    OnHost pinned_a(count), pinned_b(count);
    const std::array slots{slot_a.data, slot_b.data}, pinned{pinned_a.data, pinned_b.data};
    for (int batch = 0; batch < batches; ++batch) {
      const auto at = static_cast<std::size_t>(batch % 2);
      if (batch >= 2) {
        if (host_waits_for_pinned) cudaEventSynchronize(arrived[at].event);
        if (wait_for_reader) cudaStreamWaitEvent(copies.stream, used[at].event, 0);
      }
      std::fill_n(pinned[at], count, static_cast<float>(batch));
      copy(slots[at], pinned[at], copies.stream);
      after(compute.stream, arrived[at], copies.stream);
      add_one(compute.stream, slots[at], results.data + static_cast<std::size_t>(batch) * count, count);
      cudaEventRecord(used[at].event, compute.stream);
    }
    cudaDeviceSynchronize();
    std::vector<float> host(batches * count);
    cudaMemcpyAsync(host.data(), results.data, results.bytes, cudaMemcpyDefault, compute.stream);
    bool right = true;
    for (int batch = 0; batch < batches; ++batch)
      right = right && all_are(host.data() + static_cast<std::size_t>(batch) * count, static_cast<float>(batch + 1));
    return right;
  }
};

// What one stream frees, another still uses.
bool reuses_memory_too_early() {
  SampleStream compute, copies;
  OnHost result(count);
  float* values = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&values), count * sizeof(float));
  fill(compute.stream, values, 1, count);
  cudaFree(values);  // waits for the device, as CUDA's does
  copy(result.data, values, copies.stream);
  cudaDeviceSynchronize();
  return true;
}

// "In 9 of 10 seeds": where the four modes are tried on each seed.
constexpr unsigned most_seeds = seeds * 9 / 10;

TEST(Order, RightProgramsAreNeverCaught) {
  for (const Caught& caught : {catch_over_seeds(ResultProgram{}), catch_over_seeds(SlotProgram{})}) {
    EXPECT_EQ(caught.seeds_in_all, 0u) << caught.words;
  }
}

TEST(Order, MissingWaitForTheKernelIsCaught) {
  const Caught caught = catch_over_seeds(ResultProgram{.wait_for_kernel = false});
  EXPECT_EQ(caught.in(Mode::eager), 0u);
  EXPECT_EQ(caught.in(Mode::minimal), seeds);  // what the host waits for runs first
  EXPECT_GE(caught.in(Mode::random), seeds / 4);
  EXPECT_GE(caught.in(Mode::sparse), seeds / 4);
}

TEST(Order, MissingWaitForTheReaderIsCaught) {
  const Caught caught = catch_over_seeds(SlotProgram{.wait_for_reader = false});
  EXPECT_GE(caught.seeds_in_all, most_seeds);
}

TEST(Order, PinnedMemoryWrittenWhileItIsReadIsCaught) {
  const Caught caught = catch_over_seeds(SlotProgram{.host_waits_for_pinned = false});
  EXPECT_GE(caught.seeds_in_all, most_seeds);
  EXPECT_EQ(caught.in(Mode::minimal), seeds);
}

TEST(Order, KernelOnTheWrongStreamIsCaught) {
  const Caught caught = catch_over_seeds(ResultProgram{.right_stream = false});
  EXPECT_GE(caught.seeds_in_all, most_seeds);
}

TEST(Order, ResultReadBeforeItHasComeIsCaught) {
  const Caught caught = catch_over_seeds(ResultProgram{.host_waits = false});
  EXPECT_GE(caught.seeds_in_all, most_seeds);
  EXPECT_EQ(caught.in(Mode::minimal), seeds);
}

TEST(Order, CopyOfFreedMemoryIsCaught) {
  const Caught caught = catch_over_seeds(reuses_memory_too_early);
  for (const Mode mode : modes) EXPECT_EQ(caught.in(mode), seeds);
  EXPECT_NE(caught.words.find("cudaMemcpyAsync"), std::string::npos) << caught.words;
}

// The same seed, the same order: what a race leaves behind is the same each time, and not always the same over seeds.
TEST(Order, RepeatsWithItsSeed) {
  const auto race = [](std::uint64_t seed) {
    begin(seed, Mode::random);
    SampleStream a, b, c;
    OnDevice values(count);
    OnHost result(count);
    for (float round = 0; round < 5; ++round) {
      fill(a.stream, values.data, round, count);
      fill(b.stream, values.data, 10 + round, count);
      fill(c.stream, values.data, 20 + round, count);
    }
    cudaDeviceSynchronize();
    copy(result.data, values.data, a.stream);
    cudaDeviceSynchronize();
    return result.data[0];
  };
  std::vector<float> left;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    left.push_back(race(seed));
    EXPECT_EQ(race(seed), left.back()) << seed;
  }
  std::ranges::sort(left);
  EXPECT_GE(std::unique(left.begin(), left.end()) - left.begin(), 3);
}

}  // namespace
}  // namespace trireme::cuda_emulation
