// The C header and the core's own types must agree: values of enumerations and the StepBlock's layout.
#include <cstddef>

#include "core/base/dtype.h"
#include "core/base/mode.h"
#include "core/base/shape.h"
#include "core/device/step_block.h"
#include "core/plugin/layout.h"
#include "trireme/abi.h"

namespace trireme::plugin {
namespace {

template <class Core>
constexpr bool agrees(Core core, int c) {
  return static_cast<int>(core) == c;
}

static_assert(agrees(Dtype::f64, TRIREME_F64) && agrees(Dtype::f32, TRIREME_F32) && agrees(Dtype::f16, TRIREME_F16) &&
              agrees(Dtype::bf16, TRIREME_BF16) && agrees(Dtype::i64, TRIREME_I64) && agrees(Dtype::i32, TRIREME_I32) &&
              agrees(Dtype::u8, TRIREME_U8) && agrees(Dtype::boolean, TRIREME_BOOL));
static_assert(agrees(Mode::train, TRIREME_TRAIN) && agrees(Mode::evaluate, TRIREME_EVALUATE) &&
              agrees(Mode::predict, TRIREME_PREDICT));
static_assert(agrees(device::Kind::cpu, TRIREME_CPU) && agrees(device::Kind::cuda, TRIREME_CUDA));
static_assert(agrees(Init::zeros, TRIREME_ZEROS) && agrees(Init::constant, TRIREME_CONSTANT) &&
              agrees(Init::uniform, TRIREME_UNIFORM) && agrees(Init::normal, TRIREME_NORMAL));
static_assert(agrees(Reduce::mean, TRIREME_MEAN) && agrees(Reduce::max, TRIREME_MAX));
static_assert(Shape::max_rank == TRIREME_MAX_RANK);

using Block = device::StepBlock;
static_assert(sizeof(Block) == sizeof(trireme_step_block) && alignof(Block) == alignof(trireme_step_block));
static_assert(offsetof(Block, step) == offsetof(trireme_step_block, step));
static_assert(offsetof(Block, seed) == offsetof(trireme_step_block, seed));
static_assert(offsetof(Block, micro_batch) == offsetof(trireme_step_block, micro_batch));
static_assert(offsetof(Block, phase) == offsetof(trireme_step_block, phase));
static_assert(offsetof(Block, updates) == offsetof(trireme_step_block, updates));
static_assert(offsetof(Block, skips) == offsetof(trireme_step_block, skips));
static_assert(offsetof(Block, beta1_product) == offsetof(trireme_step_block, beta1_product));
static_assert(offsetof(Block, beta2_product) == offsetof(trireme_step_block, beta2_product));
static_assert(offsetof(Block, loss_scale) == offsetof(trireme_step_block, loss_scale));
static_assert(offsetof(Block, good_steps) == offsetof(trireme_step_block, good_steps));
static_assert(offsetof(Block, halted) == offsetof(trireme_step_block, halted));
static_assert(offsetof(Block, reserved) == offsetof(trireme_step_block, reserved));

}  // namespace
}  // namespace trireme::plugin
