// One training step. The page to read first: the picture of ARCHITECTURE.md in code.
#include "core/train/step.h"

#include "core/base/error.h"
#include "core/base/fault.h"

namespace trireme::train {

Step::Step(const Plan& plan, std::uint64_t seed, device::Stream compute, device::StepBlockRing& block,
           plugin::Model& model, GradSync& sync, optim::Optimizer& optimizer, Reports& reports,
           const comm::Group& group)
    : plan_(plan),
      seed_(seed),
      compute_(std::move(compute)),
      block_(block),
      model_(model),
      sync_(sync),
      optimizer_(optimizer),
      reports_(reports),
      group_(group),
      ready_([this](Range range) { sync_.ready(range); }) {}

void Step::enter(std::uint64_t step, const char* phase) {
  group_.progress(step, phase);
  if (on_phase) on_phase(phase);
}

void Step::run(std::uint64_t step, io::Feed& feed) {
  double n = 0;
  for (std::uint32_t i = 0; i < plan_.locals; ++i) {
    enter(step, "data");
    fault::point("next_batch");
    const auto batch = feed.next(compute_);  // waits for the copy's event
    if (!batch) fail(ExitCode::internal, "step {}: the feed ended before the run", step);
    view_fields(*batch, fields_);
    block_.stage(step, seed_, plan_.first + i, 0, compute_);  // what kernels read of this micro-batch
    const auto destination = sync_.begin(i, compute_);

    enter(step, "forward");
    fault::point("forward");
    const plugin::Loss loss = model_.run(Mode::train, fields_, block_.on_device(), compute_, destination);
    sync_.scalars(model_, loss);  // first bucket, before backward
    enter(step, "backward");
    fault::point("backward");
    model_.backward(loss, ready_);   // full buckets leave in the last micro-batch
    sync_.end();                     // untouched ranges are zero; buffers leave
    feed.release(*batch, compute_);  // the copy stream may overwrite the slot
    model_.reset();
    n = loss.n;
  }
  enter(step, "reduction");
  const optim::Reduced reduced = sync_.wait(compute_, n);  // tiles' squares came with the last add
  enter(step, "update");
  optimizer_.update(reduced, model_.parameters(), model_.buffers(), {0, model_.layout().decayed_elements},
                    block_.on_device(), reports_.norm(), compute_);  // one pass; skips itself on found-inf
  enter(step, "report");
  reports_.stage(step, sync_.scalar_sums(), block_.on_device(), compute_);
}

void view_fields(const io::Batch& batch, std::vector<tensor::Tensor>& fields) {
  fields.clear();
  for (const io::FieldView& field : batch.fields) fields.push_back({field.data, field.shape, field.dtype});
}

}  // namespace trireme::train
