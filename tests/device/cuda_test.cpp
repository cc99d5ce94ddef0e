// The CUDA device of the module that TRIREME_CUDA_MODULE names: memory, streams, events, the step block, and each kernel of its
// table against the CPU's on the same values. The same arithmetic stands behind both; where a compiler may contract a multiplication
// and an addition, results agree to a few roundings of f32, all else bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "core/device/step_block.h"

namespace trireme::device {
namespace {

// Values in memory of the device.
template <class T>
class Array {
 public:
  explicit Array(const std::shared_ptr<Device>& device, const std::vector<T>& values, std::size_t skip = 0)
      : device_(device), memory_(device, (values.size() + skip) * sizeof(T)), skip_(skip) {
    Stream stream = device->compute_stream();
    stream.copy(std::as_writable_bytes(span()), std::as_bytes(std::span(values)));
    stream.synchronize();
  }
  [[nodiscard]] std::span<T> span() const { return memory_.span<T>().subspan(skip_); }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> all(span().size());
    Stream stream = device_->compute_stream();
    stream.copy(std::as_writable_bytes(std::span(all)), std::as_bytes(span()));
    stream.synchronize();
    return all;
  }

 private:
  std::shared_ptr<Device> device_;
  Buffer memory_;
  std::size_t skip_;  // elements before the first: another alignment
};

std::vector<float> numbers(std::size_t count, std::uint64_t seed, float width = 1) {
  const RandomKey key = random_key(seed, Purpose::model, 0, 0, 0);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = (to_uniform(random_bits(key, i)) - 0.5f) * width;
  return values;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Written so that NaN fails. `roundings` of f32 at the size of the largest value: small ones are differences of larger ones.
void expect_near(const std::vector<float>& a, const std::vector<float>& b, double roundings) {
  ASSERT_EQ(a.size(), b.size());
  float largest = 0;
  for (const float value : b) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(std::abs(a[i] - b[i]) <= roundings * 6e-8 * largest) << i << ": " << a[i] << ", " << b[i];
}

class CudaDevice : public testing::Test {
 protected:
  const std::shared_ptr<Device> device_ = make_cuda(0), cpu_ = make_cpu();
  Stream stream_ = device_->compute_stream(), cpu_stream_ = cpu_->compute_stream();
  const Kernels &kernels_ = device_->kernels(), &expected_ = cpu_->kernels();
  const std::vector<std::size_t> sizes_{1, 7, 8, 4095, 4096, 4097, 3 * 4096, 20 * 4096 + 123};
};

TEST_F(CudaDevice, IsOneAProcessAndItsMemoryIsZeroed) {
  EXPECT_EQ(device_->kind(), Kind::cuda);
  EXPECT_EQ(make_cuda(0), device_);
  const Array<float> first(device_, std::vector<float>(1000, 1.0f));
  const Buffer buffer(device_, 4000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
  std::vector<float> values(1000, 1.0f);
  stream_.copy(std::as_writable_bytes(std::span(values)), buffer.span<const std::byte>());
  stream_.synchronize();
  EXPECT_EQ(values, std::vector<float>(1000));
  EXPECT_NO_THROW(device_->throw_fault());
}

TEST_F(CudaDevice, TooMuchMemoryIsAnErrorWithSizes) {
  try {
    const Buffer buffer(device_, std::size_t{1} << 45);
    FAIL() << "32 TiB allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find("32768.0 GiB"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(stream_.synchronize());  // not sticky
}

TEST_F(CudaDevice, EventsOrderStreamsAndTellTime) {
  Stream other = device_->make_stream("test");
  const Array<float> memory(device_, std::vector<float>(1 << 16, 0.0f));
  PinnedBuffer host(device_, memory.span().size_bytes());
  const Event before = stream_.record();
  for (int round = 1; round <= 20; ++round) {
    kernels_.fill(memory.span(), static_cast<float>(round), stream_);
    other.wait(stream_.record());  // the copy reads what the kernel writes
    other.copy(host.span<std::byte>(), std::as_bytes(memory.span()));
    const Event copied = other.record();
    stream_.wait(copied);  // the next round overwrites it
    copied.synchronize();
    EXPECT_TRUE(copied.done());
    for (const float value : host.span<float>()) ASSERT_EQ(value, static_cast<float>(round));
  }
  const Event after = stream_.record();
  EXPECT_GE(after.time(), before.time());
  EXPECT_EQ(after.synchronize(), 0.0);
}

TEST_F(CudaDevice, HostTasksRunInOrderAndTheirErrorsComeBack) {
  Stream other = device_->make_stream("test");
  int seen = 0;
  for (int i = 0; i < 5000; ++i) other.run([&seen, i] { seen = seen == i ? i + 1 : -1; });  // more than are kept
  other.synchronize();
  EXPECT_EQ(seen, 5000);
  other.run([] { fail(ExitCode::data, "a task that fails"); });
  EXPECT_THROW(other.synchronize(), Error);
}

TEST_F(CudaDevice, ManyMoreRecordsThanAreKeptAreStillWaitedFor) {
  const Array<float> memory(device_, std::vector<float>(1 << 16, 0.0f));
  PinnedBuffer host(device_, memory.span().size_bytes());
  kernels_.fill(memory.span(), 3.0f, stream_);
  stream_.copy(host.span<std::byte>(), std::as_bytes(memory.span()));
  const Event copied = stream_.record();
  for (int i = 0; i < 5000; ++i) [[maybe_unused]] const Event later = stream_.record();
  copied.synchronize();
  for (const float value : host.span<float>()) ASSERT_EQ(value, 3.0f);
}

TEST_F(CudaDevice, StepBlockHalvesStayApart) {
  StepBlockRing ring(device_);
  StepBlock kept;
  kept.updates = 12;
  kept.beta1_product = 0.5;
  ring.write(kept, stream_);
  for (std::uint32_t i = 0; i < 200; ++i) ring.stage(1000 + i, 7, i, i % 2, stream_);  // around the ring
  const StepBlock block = ring.read(stream_);
  EXPECT_EQ(block.step, 1199u);
  EXPECT_EQ(block.micro_batch, 199u);
  EXPECT_EQ(block.updates, 12u);
  EXPECT_EQ(block.beta1_product, 0.5);
  EXPECT_EQ(block.loss_scale, 1.0f);
}

TEST_F(CudaDevice, AddAndItsTileSquaresHaveTheBitsOfTheCpu) {
  for (const std::size_t size : sizes_) {
    for (const std::size_t skip : {std::size_t{0}, std::size_t{1}}) {  // 16-byte accesses, and single ones
      const auto left = numbers(size, 1), right = numbers(size, 2);
      std::vector<float> sum(size);
      std::vector<double> squares(tiles_of(size));
      expected_.add(sum, left, right, squares, cpu_stream_);
      const Array<float> a(device_, left, skip), b(device_, right, skip);
      const Array<double> tiles(device_, std::vector<double>(squares.size(), -1.0));
      kernels_.tile_squares(a.span(), tiles.span(), stream_);
      std::vector<double> of_left(squares.size());
      expected_.tile_squares(left, of_left, cpu_stream_);
      EXPECT_TRUE(same_bits(tiles.values(), of_left)) << size;
      kernels_.add(a.span(), a.span(), b.span(), tiles.span(), stream_);  // in place
      EXPECT_TRUE(same_bits(a.values(), sum)) << size;
      EXPECT_TRUE(same_bits(tiles.values(), squares)) << size;
      kernels_.add(b.span(), b.span(), b.span(), {}, stream_);
      expected_.add(sum, right, right, {}, cpu_stream_);
      EXPECT_TRUE(same_bits(b.values(), sum)) << size;
    }
  }
}

TEST_F(CudaDevice, ScaleFillAddF64AndSeed) {
  for (const std::size_t size : sizes_) {
    for (const std::size_t skip : {std::size_t{0}, std::size_t{3}}) {
      auto values = numbers(size, 3);
      const Array<float> on_device(device_, values, skip);
      expected_.scale(values, 0.3f, cpu_stream_);
      kernels_.scale(on_device.span(), 0.3f, stream_);
      EXPECT_TRUE(same_bits(on_device.values(), values)) << size;
      kernels_.fill(on_device.span(), -2.5f, stream_);
      EXPECT_EQ(on_device.values(), std::vector<float>(size, -2.5f)) << size;
    }
  }
  const Array<double> left(device_, {1, 1e300, 0.1}), right(device_, {2, 1e300, 0.2});
  kernels_.add_f64(left.span(), left.span(), right.span(), stream_);
  EXPECT_EQ(left.values(), (std::vector<double>{3, 2e300, 0.1 + 0.2}));
  StepBlock block;
  block.loss_scale = 8;
  const Array<StepBlock> scaled(device_, {block});
  kernels_.seed(left.span().data(), Dtype::f64, scaled.span().data(), 32, stream_);
  EXPECT_EQ(left.values()[0], 0.25);
  const Array<float> single(device_, {7.0f});
  kernels_.seed(single.span().data(), Dtype::f32, nullptr, 4, stream_);
  EXPECT_EQ(single.values()[0], 0.25f);
}

TEST_F(CudaDevice, SizesThatDisagreeAreRefused) {
  const Array<float> five(device_, std::vector<float>(5)), six(device_, std::vector<float>(6));
  const Array<double> two(device_, std::vector<double>(2));
  EXPECT_THROW(kernels_.add(five.span(), five.span(), six.span(), {}, stream_), Error);
  EXPECT_THROW(kernels_.add(five.span(), five.span(), five.span(), two.span(), stream_), Error);
  EXPECT_THROW(kernels_.tile_squares(five.span(), two.span(), stream_), Error);
}

TEST_F(CudaDevice, RandomNumbersAreThoseOfTheCpu) {
  StepBlock block;
  block.step = 5, block.seed = 77, block.micro_batch = 3;
  const Array<StepBlock> on_device(device_, {block});
  const std::size_t count = 1001;
  for (const Distribution distribution : {Distribution::bits, Distribution::uniform, Distribution::normal}) {
    std::vector<float> expected(count);
    const Array<float> made(device_, std::vector<float>(count));
    const Dtype dtype = distribution == Distribution::bits ? Dtype::i32 : Dtype::f32;
    expected_.random({expected.data(), count, dtype, distribution, -1, 3, &block, 9}, cpu_stream_);
    kernels_.random({made.span().data(), count, dtype, distribution, -1, 3, on_device.span().data(), 9}, stream_);
    if (distribution == Distribution::normal) {  // f64 logarithm and cosine, rounded to f32
      expect_near(made.values(), expected, 2);
    } else {
      EXPECT_TRUE(same_bits(made.values(), expected));
    }
  }
}

// One model's state on both devices.
struct Training {
  UpdateRule rule;
  std::size_t size = 5 * 4096 + 77, decayed = 4096 + 2;  // not at a tile: groups of four are cut
  std::vector<float> parameters = numbers(size, 1, 2), first = std::vector<float>(size), second = first;
  std::vector<float> buffers = numbers(100, 4);
  StepBlock block;
  double norm = -1, weight = 96, loss = 12;
};

class CudaUpdate : public CudaDevice, public testing::WithParamInterface<UpdateRule> {};

TEST_P(CudaUpdate, FollowsTheCpuAndSkipsAsItDoes) {
  Training cpu;
  cpu.rule = GetParam();
  const Array<float> parameters(device_, cpu.parameters), first(device_, cpu.first), second(device_, cpu.second),
      buffers(device_, cpu.buffers);
  const Array<StepBlock> block(device_, {cpu.block});
  const Array<double> norm(device_, {-1.0}), weight(device_, {cpu.weight}), loss(device_, {cpu.loss});
  const bool adamw = cpu.rule.kind == UpdateRule::Kind::adamw;
  const auto step = [&](const std::vector<float>& gradients) {
    std::vector<double> squares(tiles_of(cpu.size));
    expected_.tile_squares(gradients, squares, cpu_stream_);
    const std::vector<float> sums = numbers(100, 5);
    const std::vector<double> checks{0.0, 2.0};
    UpdateArguments a;
    a.rule = cpu.rule;
    a.decayed = {0, cpu.decayed};
    a.buffer_factor = 0.25f;
    a.n = 32;
    UpdateArguments b = a;
    a.parameters = cpu.parameters, a.gradients = gradients, a.moment1 = cpu.first;
    a.moment2 = adamw ? std::span<float>(cpu.second) : std::span<float>();
    a.tile_squares = squares, a.buffer_checks = checks, a.buffers = cpu.buffers, a.buffer_sums = sums;
    a.total_weight = &cpu.weight, a.total_loss = &cpu.loss, a.block = &cpu.block, a.norm = &cpu.norm;
    expected_.update(a, cpu_stream_);
    const Array<float> g(device_, gradients), s(device_, sums);
    const Array<double> t(device_, squares), c(device_, checks);
    b.parameters = parameters.span(), b.gradients = g.span(), b.moment1 = first.span();
    b.moment2 = adamw ? second.span() : std::span<float>();
    b.tile_squares = t.span(), b.buffer_checks = c.span(), b.buffers = buffers.span(), b.buffer_sums = s.span();
    b.total_weight = weight.span().data(), b.total_loss = loss.span().data(), b.block = block.span().data();
    b.norm = norm.span().data();
    kernels_.update(b, stream_);
    stream_.synchronize();
  };
  const auto compare = [&] {
    expect_near(parameters.values(), cpu.parameters, 16);
    expect_near(first.values(), cpu.first, 16);
    expect_near(second.values(), cpu.second, 16);
    EXPECT_TRUE(same_bits(buffers.values(), cpu.buffers));
    const StepBlock here = block.values()[0];
    EXPECT_EQ(here.updates, cpu.block.updates);
    EXPECT_EQ(here.skips, cpu.block.skips);
    EXPECT_EQ(here.halted, cpu.block.halted);
    EXPECT_NEAR(here.beta1_product, cpu.block.beta1_product, 1e-15);
    EXPECT_NEAR(here.beta2_product, cpu.block.beta2_product, 1e-15);
    EXPECT_TRUE(std::abs(norm.values()[0] - cpu.norm) <= 1e-14 * cpu.norm || std::isnan(cpu.norm));
  };
  for (std::uint64_t i = 0; i < 5; ++i) step(numbers(cpu.size, 10 + i));
  EXPECT_EQ(cpu.block.updates, 5u);
  compare();
  auto bad = numbers(cpu.size, 20);
  bad[cpu.size - 1] = std::numeric_limits<float>::quiet_NaN();
  step(bad);
  step(numbers(cpu.size, 21));  // halted: skips as well
  EXPECT_EQ(cpu.block.updates, 5u);
  EXPECT_EQ(cpu.block.skips, 2u);
  compare();
}

UpdateRule sgd(double momentum, bool nesterov) {
  UpdateRule rule;
  rule.schedule.lr = 0.1;
  rule.momentum = momentum;
  rule.nesterov = nesterov;
  rule.weight_decay = 0.01;
  rule.clip_norm = 1;
  return rule;
}
UpdateRule adamw() {
  UpdateRule rule = sgd(0, false);
  rule.kind = UpdateRule::Kind::adamw;
  rule.schedule = {.lr = 1e-2, .lr_end = 1e-4, .warmup = 2, .total = 10};
  rule.beta1 = 0.9, rule.beta2 = 0.999, rule.epsilon = 1e-8;
  return rule;
}
INSTANTIATE_TEST_SUITE_P(Rules, CudaUpdate, testing::Values(sgd(0, false), sgd(0.9, false), sgd(0.9, true), adamw()));

// The norm is one binary tree over the tiles, also where the deciding block goes several rounds.
TEST_F(CudaDevice, TheNormOfManyTilesIsTheTreesBitByBit) {
  const std::size_t tiles = 3 * 8192 + 1234;
  std::vector<double> squares(tiles);
  for (std::size_t i = 0; i < tiles; ++i) squares[i] = 1.0 / static_cast<double>(3 * i + 1);
  const Array<double> on_device(device_, squares), weight(device_, {1.0}), norm(device_, {-1.0});
  const Array<StepBlock> block(device_, {StepBlock{}});
  const Buffer memory(device_, tiles * tile_elements * sizeof(float));
  UpdateArguments a;
  a.rule = sgd(0, false);
  a.parameters = memory.span<float>();
  a.gradients = memory.span<float>();
  a.tile_squares = on_device.span();
  a.total_weight = weight.span().data();
  a.block = block.span().data();
  a.norm = norm.span().data();
  kernels_.update(a, stream_);
  EXPECT_EQ(norm.values()[0], std::sqrt(tree_sum(squares)));
}

}  // namespace
}  // namespace trireme::device
