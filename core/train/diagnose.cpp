// Which micro-batch, which parameter.
#include "core/train/diagnose.h"

#include <cmath>

#include "core/base/error.h"
#include "core/train/session.h"
#include "core/train/step.h"

namespace trireme::train {

namespace {

// "fc1.weight, first at element 17 (nan)", or empty where all values are finite.
template <class Named>
std::string first_bad(const std::vector<Named>& ranges, std::span<const float> arena, const char* what) {
  for (const Named& named : ranges)
    for (std::uint64_t i = named.range.begin; i < named.range.end; ++i)
      if (!std::isfinite(arena[i]))
        return fmt::format("{} {}, first at element {} of {} ({})", what, named.name, i - named.range.begin,
                           named.shape.text(), arena[i]);
  return {};
}

}  // namespace

std::string diagnose(comm::Group& group, const Job& job, const Plan& plan, std::uint64_t step,
                     std::shared_ptr<const io::Dataset> data, plugin::Model& model, device::StepBlockRing& block,
                     std::shared_ptr<device::Device> device) {
  const plugin::Layout& layout = model.layout();
  const auto feed = open_feed(job, std::move(data), {true, plan.rows}, plan.training(step), device);
  const device::Buffer memory(device, (layout.parameter_elements + layout.buffer_elements) * sizeof(float));
  device::PinnedBuffer host(device, memory.bytes());
  const auto gradients = memory.span<float>().first(layout.parameter_elements);
  const auto new_buffers = memory.span<float>().subspan(layout.parameter_elements);
  device::Stream compute = device->compute_stream();
  std::vector<tensor::Tensor> fields;
  std::string culprit;
  for (std::uint32_t i = 0; i < plan.locals && culprit.empty(); ++i) {
    const auto batch = feed->next(compute);
    if (!batch) break;
    view_fields(*batch, fields);
    device->kernels().fill(memory.span<float>(), 0.0f, compute);
    block.stage(step, static_cast<std::uint64_t>(job.train.seed), plan.first + i, 0, compute);
    const plugin::Loss loss = model.run(Mode::train, fields, block.on_device(), compute, {gradients, new_buffers});
    double sum = 0;
    compute.copy(std::as_writable_bytes(std::span(&sum, 1)), std::as_bytes(model.value(loss.sum).span<double>()));
    model.backward(loss, [](Range) {});
    compute.copy(host.span<std::byte>(), memory.span<std::byte>());
    compute.synchronize();
    device->throw_fault();
    const auto values = std::span<const float>(host.span<float>());
    if (!std::isfinite(sum)) culprit = fmt::format("loss sum ({})", sum);
    if (culprit.empty()) culprit = first_bad(layout.parameters, values.first(layout.parameter_elements), "gradient of");
    if (culprit.empty())
      culprit = first_bad(layout.buffers, values.subspan(layout.parameter_elements), "new value of buffer");
    if (!culprit.empty())
      culprit = fmt::format("step {}, micro-batch {} (samples {} to {} of the run), {}", step, plan.first + i,
                            batch->at.first, batch->at.first + static_cast<std::uint64_t>(batch->at.rows) - 1, culprit);
    feed->release(*batch, compute);
    model.reset();
  }
  for (const std::string& text : group.all_gather_now(culprit))
    if (!text.empty()) return text;
  return fmt::format("step {}: each micro-batch is finite, their sum is not", step);
}

}  // namespace trireme::train
