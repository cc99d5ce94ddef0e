// The group over a CUDA device (TRIREME_CUDA_MODULE names the module): its sums are those of the MPI group bit by bit,
// and what is for the host stays with that.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/philox.h"
#include "core/comm/nccl/make_group.h"
#include "core/device/module.h"
#include "tests/comm/ranks.h"

namespace trireme::comm {
namespace {

const std::size_t sizes[] = {0, 1, 5, 4095, 4096, 4097, 2 * 4096 + 1, 5 * 4096 + 17, 64 * 4096};

std::vector<float> of_rank(int rank, std::size_t size) {
  const RandomKey key = random_key(5, Purpose::model, static_cast<std::uint64_t>(rank), 0, 0);
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t bits = random_bits(key, i);
    values[i] = std::ldexp(to_uniform(bits) - 0.5f, static_cast<int>(bits % 12));
  }
  return values;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The one group over the device in this process.
Group& cuda_world() {
  static Group group = [] {
    const auto make = reinterpret_cast<MakeGroup>(device::cuda_symbol(make_group_symbol));
    return Group(make(world().impl(), device::make_cuda(world().local_rank())));
  }();
  return group;
}

class CudaGroup : public testing::Test {
 protected:
  // device_ before group_: making it registers the module.
  const std::shared_ptr<device::Device> device_ = device::make_cuda(world().local_rank());
  Group& group_ = cuda_world();
  device::Stream stream_ = device_->compute_stream();

  template <class T>
  [[nodiscard]] device::Buffer place(const std::vector<T>& values) {
    device::Buffer buffer(device_, values.size() * sizeof(T));
    stream_.copy(buffer.span<std::byte>(), std::as_bytes(std::span(values)));
    stream_.synchronize();
    return buffer;
  }
  template <class T>
  [[nodiscard]] std::vector<T> fetch(const device::Buffer& buffer) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    stream_.copy(std::as_writable_bytes(std::span(values)), buffer.span<const std::byte>());
    stream_.synchronize();
    return values;
  }
};

TEST_F(CudaGroup, TreeReduceHasTheBitsOfMpi) {
  if (!std::has_single_bit(static_cast<unsigned>(world().size()))) return;
  for (const std::size_t size : sizes) {
    std::vector<float> expected = of_rank(world().rank(), size);
    std::vector<double> squares(tiles_of(size), -1.0);
    const device::Buffer data = place(expected), tiles = place(squares);
    world().tree_reduce(expected, squares).synchronize();
    stream_.wait(group_.tree_reduce(data.span<float>(), tiles.span<double>()));
    EXPECT_TRUE(same_bits(fetch<float>(data), expected)) << size;
    EXPECT_TRUE(same_bits(fetch<double>(tiles), squares)) << size;
  }
  std::vector<double> scalars{1.0 + world().rank(), 1e-17 * world().rank(), 3.0};
  const device::Buffer on_device = place(scalars);
  world().tree_reduce(scalars).synchronize();
  stream_.wait(group_.tree_reduce(on_device.span<double>()));
  EXPECT_TRUE(same_bits(fetch<double>(on_device), scalars));
}

TEST_F(CudaGroup, AllReduceSumsOnAnyNumberOfRanks) {
  const std::vector<float> mine = of_rank(world().rank(), 5000);
  const device::Buffer data = place(mine), weights = place(std::vector<double>{1.0, 0.5});
  stream_.wait(group_.all_reduce(data.span<float>()));
  stream_.wait(group_.all_reduce(weights.span<double>()));
  const auto sums = fetch<float>(data);
  std::vector<double> exact(mine.size());
  for (int rank = 0; rank < world().size(); ++rank) {
    const auto theirs = of_rank(rank, mine.size());
    for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += theirs[i];
  }
  // Four f32 additions of values up to 2^11.
  for (std::size_t i = 0; i < exact.size(); ++i) ASSERT_TRUE(std::abs(sums[i] - exact[i]) <= 1e-3) << i;
  EXPECT_EQ(fetch<double>(weights), (std::vector<double>{1.0 * world().size(), 0.5 * world().size()}));
}

TEST_F(CudaGroup, WhatIsForTheHostStaysThere) {
  EXPECT_EQ(group_.rank(), world().rank());
  EXPECT_EQ(group_.size(), world().size());
  Words words;
  words.max[0] = static_cast<std::uint64_t>(world().rank());
  words.min[0] = static_cast<std::uint64_t>(world().rank()) + 5;
  group_.agree(words).synchronize();
  EXPECT_EQ(words.max[0], static_cast<std::uint64_t>(world().size() - 1));
  EXPECT_EQ(words.min[0], 5u);
  std::string text = world().rank() == 0 ? "from rank 0" : "";
  group_.broadcast_now(text, 0);
  EXPECT_EQ(text, "from rank 0");
  EXPECT_EQ(group_.all_gather_now(std::to_string(world().rank())).back(), std::to_string(world().size() - 1));
  group_.barrier_now();
}

}  // namespace
}  // namespace trireme::comm
