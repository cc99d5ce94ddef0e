// Memory of the CPU device, the StepBlock's ring, and what a machine without the CUDA module says.
#include "core/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/base/error.h"
#include "core/device/step_block.h"

namespace trireme::device {
namespace {

using testing::HasSubstr;

TEST(CpuDevice, MemoryIsAlignedAndZeroed) {
  const auto device = make_cpu();
  EXPECT_EQ(device->kind(), Kind::cpu);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{9} << 20}) {
    {
      const Buffer dirty(device, bytes);  // so that the next one may get used memory
      std::ranges::fill(dirty.span<unsigned char>(), std::uint8_t{0xff});
    }
    const Buffer buffer(device, bytes);
    const PinnedBuffer pinned(device, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pinned.data()) % 64, 0u);
    EXPECT_TRUE(std::ranges::all_of(buffer.span<unsigned char>(), [](unsigned char c) { return c == 0; }));
    EXPECT_TRUE(std::ranges::all_of(pinned.span<unsigned char>(), [](unsigned char c) { return c == 0; }));
  }
}

TEST(CpuDevice, MoreThanTheHostHasIsAnErrorWithSizes) {
  try {
    const Buffer buffer(make_cpu(), std::size_t{1} << 45);
    FAIL() << "32 TiB allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_THAT(error.what(), HasSubstr("32768.0 GiB"));
    EXPECT_THAT(error.what(), HasSubstr("this host has"));
  }
}

TEST(Buffer, MovesAndIsEmptyAfterwards) {
  Buffer a(make_cpu(), 64);
  void* const memory = a.data();
  Buffer b(std::move(a));
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(a.bytes(), 0u);
  Buffer c(make_cpu(), 128);
  c = std::move(b);
  EXPECT_EQ(c.data(), memory);
  EXPECT_EQ(c.bytes(), 64u);
  EXPECT_EQ(c.span<float>().size(), 16u);
  const Buffer empty(make_cpu(), 0);
  EXPECT_EQ(empty.data(), nullptr);
}

TEST(StepBlockRing, HostHalfComesInOrderAndLeavesTheDeviceHalf) {
  const auto device = make_cpu();
  Stream stream = device->compute_stream();
  StepBlockRing ring(device);
  StepBlock fresh = ring.read(stream);
  EXPECT_EQ(fresh.beta1_product, 1.0);
  EXPECT_EQ(fresh.loss_scale, 1.0f);
  EXPECT_EQ(fresh.updates, 0u);
  StepBlock kept;
  kept.step = 99;  // not of the device half
  kept.updates = 12;
  kept.skips = 3;
  kept.beta1_product = 0.5;
  kept.beta2_product = 0.25;
  kept.loss_scale = 8;
  kept.good_steps = 4;
  kept.halted = 1;
  ring.write(kept, stream);
  EXPECT_EQ(ring.read(stream).step, 0u);
  for (std::uint32_t i = 0; i < 200; ++i) {  // around the ring's 64 slots
    ring.stage(1000 + i, 7, i, i % 2, stream);
    EXPECT_EQ(ring.on_device()->step, 1000 + i);
  }
  const StepBlock block = ring.read(stream);
  EXPECT_EQ(block.step, 1199u);
  EXPECT_EQ(block.seed, 7u);
  EXPECT_EQ(block.micro_batch, 199u);
  EXPECT_EQ(block.phase, 1u);
  EXPECT_EQ(block.updates, 12u);
  EXPECT_EQ(block.skips, 3u);
  EXPECT_EQ(block.beta1_product, 0.5);
  EXPECT_EQ(block.beta2_product, 0.25);
  EXPECT_EQ(block.loss_scale, 8.0f);
  EXPECT_EQ(block.good_steps, 4u);
  EXPECT_EQ(block.halted, 1u);
}

TEST(MakeCuda, NamesTheMissingModule) {
  try {
    const auto device = make_cuda(0);
    FAIL() << "a CUDA module lies beside this test";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("libtrireme_cuda.so"));
    EXPECT_THAT(error.what(), HasSubstr("device = \"cpu\""));
  }
}

}  // namespace
}  // namespace trireme::device
