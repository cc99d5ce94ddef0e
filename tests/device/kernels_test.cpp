// Tree add, tile squares, scale and fill against loops written out here; the same bits with one and two threads.
#include "core/device/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/threads.h"
#include "core/device/device.h"

namespace trireme::device {
namespace {

const std::size_t sizes[] = {1, 7, 8, 4095, 4096, 4097, 3 * 4096, 40 * 4096 + 123};

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  const RandomKey key = random_key(seed, Purpose::model, 0, 0, 0);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = to_uniform(random_bits(key, i)) - 0.5f;
  return values;
}

// The contract of kernels.h, element by element.
double tile_reference(const float* values, std::size_t count) {
  double p[8] = {};
  for (std::size_t i = 0; i < count; ++i) p[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

std::vector<double> squares_reference(const std::vector<float>& values) {
  std::vector<double> squares;
  for (std::size_t begin = 0; begin < values.size(); begin += tile_elements)
    squares.push_back(
        tile_reference(values.data() + begin, std::min<std::size_t>(tile_elements, values.size() - begin)));
  return squares;
}

class KernelsWithThreads : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_compute_threads(GetParam()); }
  void TearDown() override { set_compute_threads(1); }
  const std::shared_ptr<Device> device_ = make_cpu();
  const Kernels& kernels_ = device_->kernels();
  Stream stream_ = device_->compute_stream();
};
INSTANTIATE_TEST_SUITE_P(Threads, KernelsWithThreads, testing::Values(1, 2));

TEST_P(KernelsWithThreads, AddAndItsTileSquaresAreExact) {
  for (const std::size_t size : sizes) {
    const auto left = numbers(size, 1), right = numbers(size, 2);
    std::vector<float> expected(size);
    for (std::size_t i = 0; i < size; ++i) expected[i] = left[i] + right[i];
    std::vector<double> squares(tiles_of(size));
    std::vector<float> into = left;
    kernels_.add(into, into, right, squares, stream_);
    EXPECT_EQ(into, expected) << size;
    EXPECT_EQ(squares, squares_reference(expected)) << size;
    into = right;
    kernels_.add(into, left, into, {}, stream_);
    EXPECT_EQ(into, expected) << size;
  }
}

TEST_P(KernelsWithThreads, TileSquaresScaleAndFill) {
  for (const std::size_t size : sizes) {
    auto values = numbers(size, 3);
    std::vector<double> squares(tiles_of(size));
    kernels_.tile_squares(values, squares, stream_);
    EXPECT_EQ(squares, squares_reference(values)) << size;
    auto expected = values;
    for (float& value : expected) value *= 0.3f;
    kernels_.scale(values, 0.3f, stream_);
    EXPECT_EQ(values, expected) << size;
    kernels_.fill(values, -2.5f, stream_);
    EXPECT_EQ(values, std::vector<float>(size, -2.5f)) << size;
  }
}

TEST_P(KernelsWithThreads, RunsOnAThreadStreamToo) {
  Stream other = device_->make_stream("test");
  const auto left = numbers(20'000, 1), right = numbers(20'000, 2);
  std::vector<float> into(left.size()), expected(left.size());
  std::vector<double> squares(tiles_of(into.size()));
  for (std::size_t i = 0; i < left.size(); ++i) expected[i] = left[i] + right[i];
  kernels_.add(into, left, right, squares, other);
  other.synchronize();
  EXPECT_EQ(into, expected);
  EXPECT_EQ(squares, squares_reference(expected));
}

TEST(Kernels, AddF64) {
  const std::vector<double> left{1, 1e300, 0.1}, right{2, 1e300, 0.2};
  std::vector<double> into(3);
  Stream stream = make_cpu()->compute_stream();
  make_cpu()->kernels().add_f64(into, left, right, stream);
  EXPECT_EQ(into, (std::vector<double>{3, 2e300, 0.1 + 0.2}));
}

TEST(Kernels, SizesThatDisagreeAreRefused) {
  Stream stream = make_cpu()->compute_stream();
  std::vector<float> five(5), six(6);
  std::vector<double> two(2);
  EXPECT_THROW(make_cpu()->kernels().add(five, five, six, {}, stream), Error);
  EXPECT_THROW(make_cpu()->kernels().add(five, five, five, two, stream), Error);
  EXPECT_THROW(make_cpu()->kernels().tile_squares(five, two, stream), Error);
}

TEST(Kernels, NonFiniteValuesReachTheSquares) {
  std::vector<float> values(5000, 1.0f);
  values[4999] = std::numeric_limits<float>::quiet_NaN();
  std::vector<double> squares(2);
  Stream stream = make_cpu()->compute_stream();
  make_cpu()->kernels().tile_squares(values, squares, stream);
  EXPECT_EQ(squares[0], 4096.0);
  EXPECT_TRUE(std::isnan(squares[1]));
}

TEST(TreeSum, IsTheBinaryTreePaddedWithZeros) {
  for (std::size_t count = 0; count <= 70; ++count) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = 1.0 / static_cast<double>(3 * i + 1);
    std::vector<double> level = values;
    level.resize(128, 0.0);
    while (level.size() > 1) {
      for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = level[2 * i] + level[2 * i + 1];
      level.resize(level.size() / 2);
    }
    EXPECT_EQ(tree_sum(values), level[0]) << count;
  }
}

}  // namespace
}  // namespace trireme::device
