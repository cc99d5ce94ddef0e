// The arena: alignment, marks, growth, and that a steady step takes no new memory.
#include "core/tensor/arena.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/error.h"

namespace trireme::tensor {
namespace {

std::uintptr_t address(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

TEST(Arena, EveryAllocationIsAlignedAndApart) {
  Arena arena(device::make_cpu(), 4096);
  std::uintptr_t end = 0;
  for (const std::size_t bytes : {1u, 63u, 64u, 65u, 0u, 200u}) {
    void* memory = arena.allocate(bytes);
    ASSERT_NE(memory, nullptr) << bytes << " bytes";
    EXPECT_EQ(address(memory) % 64, 0u) << bytes << " bytes";
    EXPECT_GE(address(memory), end);
    end = address(memory) + bytes;
    std::memset(memory, 0xAB, bytes);
  }
}

TEST(Arena, TensorHasItsShapeAndMemory) {
  Arena arena(device::make_cpu());
  const Tensor tensor = arena.allocate(Shape{3, 5}, Dtype::i64);
  EXPECT_EQ(tensor.shape, (Shape{3, 5}));
  EXPECT_EQ(tensor.dtype, Dtype::i64);
  EXPECT_EQ(tensor.bytes(), 120u);
  EXPECT_EQ(tensor.span<std::int64_t>().size(), 15u);
  EXPECT_TRUE(tensor);
}

TEST(Arena, RewindGivesTheSameMemoryAgain) {
  Arena arena(device::make_cpu(), 1024);
  const void* kept = arena.allocate(100);
  const auto mark = arena.mark();
  const void* first = arena.allocate(300);
  (void)arena.allocate(5000);  // a second block
  arena.rewind(mark);
  EXPECT_EQ(arena.allocate(300), first);
  EXPECT_NE(first, kept);
}

TEST(Arena, RewindAheadIsRefused) {
  Arena arena(device::make_cpu(), 1024);
  (void)arena.allocate(100);
  const auto mark = arena.mark();
  arena.reset();
  EXPECT_THROW(arena.rewind(mark), Error);
}

TEST(Arena, ResetJoinsBlocksSoThatTheNextStepNeedsOne) {
  Arena arena(device::make_cpu(), 1024);
  const auto step = [&] {
    const void* first = arena.allocate(900);
    (void)arena.allocate(900);
    const void* last = arena.allocate(4000);
    return std::pair(first, last);
  };
  step();
  EXPECT_EQ(arena.mark().block, 2u);  // 900 | 900 | 4,000: three blocks
  arena.reset();
  const auto second = step();
  EXPECT_EQ(arena.mark().block, 0u);
  EXPECT_EQ(address(second.second) - address(second.first), 2u * 960u);
  arena.reset();
  EXPECT_EQ(step(), second);
}

TEST(Arena, PeakIsTheMostEverInUse) {
  Arena arena(device::make_cpu(), 4096);
  EXPECT_EQ(arena.peak_bytes(), 0u);
  const auto mark = arena.mark();
  (void)arena.allocate(1000);  // 1,024 with alignment
  arena.rewind(mark);
  (void)arena.allocate(64);
  EXPECT_EQ(arena.peak_bytes(), 1024u);
  (void)arena.allocate(100000);  // 100,032, in a block of its own behind one of 4,096
  EXPECT_EQ(arena.peak_bytes(), 4096u + 100032u);
}

}  // namespace
}  // namespace trireme::tensor
