// Buckets of the buffers, and values of a checkpoint that are missing or no numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/comm/bootstrap.h"
#include "core/device/device.h"
#include "core/train/grad_sync.h"
#include "core/train/resume.h"

namespace trireme::train {
namespace {

// Buffers of three tiles in buckets of one: each travels by itself, and all have arrived when wait() says so.
TEST(GradSync, BuffersAreCutIntoBucketsToo) {
  plugin::Layout layout;
  layout.parameters = {{"w", Shape{10}, plugin::Init::zeros, 0, 0, true, {}}};
  layout.buffers = {{"seen", Shape{3 * static_cast<std::int64_t>(tile_elements)}, plugin::Reduce::mean, 0, {}}};
  layout.place();
  const auto cpu = device::make_cpu();
  device::Stream compute = cpu->compute_stream();
  Plan plan;
  plan.micro_batches = plan.locals = 2;
  GradSync sync(comm::connect({}), plan, layout, 0, tile_elements * sizeof(float), cpu);
  ASSERT_EQ(sync.buckets(), 4u);
  for (std::uint32_t local = 0; local < 2; ++local) {
    const auto to = sync.begin(local, compute);
    std::fill(to.gradients.begin(), to.gradients.end(), 0.0f);
    for (std::size_t i = 0; i < to.new_buffers.size(); ++i)
      to.new_buffers[i] = static_cast<float>(i) + static_cast<float>(local);
    sync.ready(layout.parameters[0].range);
    sync.end();
  }
  const optim::Reduced reduced = sync.wait(compute, 1);
  ASSERT_EQ(reduced.buffer_sums.size(), layout.buffer_elements);
  ASSERT_EQ(reduced.buffer_checks.size(), 3u);
  for (std::size_t i = 0; i < layout.buffer_elements; ++i)
    ASSERT_EQ(reduced.buffer_sums[i], 2 * static_cast<float>(i) + 1) << i;
  for (const double check : reduced.buffer_checks) EXPECT_GT(check, 0);
}

std::string error_of(const io::Manifest& manifest) {
  try {
    (void)get_block(manifest);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "";
}

TEST(Resume, ValuesThatAreMissingOrNoNumbersNameFolderAndKey) {
  device::StepBlock block;
  block.updates = 17;
  block.beta1_product = 0.1;
  io::Manifest manifest;
  manifest.folder = "checkpoints/step-000000000008";
  put_block(block, manifest.scalars.values);
  EXPECT_EQ(error_of(manifest), "");
  EXPECT_EQ(get_block(manifest).updates, 17u);
  EXPECT_EQ(get_block(manifest).beta1_product, 0.1);
  auto& values = manifest.scalars.values;
  values["beta2_product"] = "much";
  EXPECT_EQ(
      error_of(manifest),
      "checkpoints/step-000000000008: value 'beta2_product' = 'much' is no number; was it written by another program?");
  values["skips"] = "-1";
  EXPECT_EQ(error_of(manifest),
            "checkpoints/step-000000000008: value 'skips' = '-1' is no number; was it written by another program?");
  values.erase("updates");
  EXPECT_EQ(error_of(manifest),
            "checkpoints/step-000000000008: no value 'updates'; was it written by another program?");
}

}  // namespace
}  // namespace trireme::train
