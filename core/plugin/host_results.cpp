// How a plugin gives its results: outputs, metrics, loss, gradients of raw plugins, errors.
#include "core/plugin/host.h"

namespace trireme::plugin {

trireme_status host_fail(trireme_core* core, trireme_string message) noexcept;
trireme_string host_last_error(trireme_core* core) noexcept;

namespace {

// Sums and weights travel as f64, added along the tree.
void check_number(Host& h, trireme_tensor tensor, const char* what, std::string_view name) {
  const auto entry = h.tape->signature(tensor);
  if (entry.dtype == Dtype::f64 && entry.shape.elements() == 1) return;
  fail(ExitCode::internal,
       "{}: its {} must be one f64, it is {} {}; the ops sum, mean, accuracy and softmax_cross_entropy give that", name,
       what, name_of(entry.dtype), entry.shape.text());
}

trireme_status output(trireme_core* core, trireme_string name, trireme_tensor tensor) {
  return core->host->guarded("output", forward | predict | step, [&](Host& h) {
    (void)h.tape->signature(tensor);
    (h.mode == Mode::predict ? h.predictions : h.outputs).next(view(name)).value = tensor;
    h.output_handles.push_back(tensor);
  });
}

trireme_status report(trireme_core* core, trireme_string name, trireme_tensor sum, trireme_tensor weight) {
  return core->host->guarded("report", forward | loss | step, [&](Host& h) {
    if (h.has_loss) {
      fail(ExitCode::internal, "report '{}': comes after loss; metrics travel with it, so they come before",
           view(name));
    }
    check_number(h, sum, "sum", view(name));
    check_number(h, weight, "weight", view(name));
    Weighted& metric = h.metrics.next(view(name));
    metric.sum = sum;
    metric.weight = weight;
  });
}

trireme_status give_loss(trireme_core* core, trireme_tensor sum, trireme_tensor weight, uint64_t n) {
  return core->host->guarded("loss", loss | step, [&](Host& h) {
    if (h.has_loss) fail(ExitCode::internal, "loss: given twice; add the terms up");
    check_number(h, sum, "sum", "loss");
    check_number(h, weight, "weight", "loss");
    if (n == 0) fail(ExitCode::internal, "loss: n is 0; it is the weight of a full micro-batch with nothing ignored");
    h.loss_given = {sum, weight, static_cast<double>(n)};
    h.has_loss = true;
  });
}

trireme_status gradient_ready(trireme_core* core, trireme_span span) {
  return core->host->guarded("gradient_ready", step, [&](Host& h) {
    if (h.mode != Mode::train) fail(ExitCode::internal, "gradient_ready: there are gradients in training alone");
    if (span.begin >= span.end || span.end > h.layout.parameter_elements) {
      fail(ExitCode::internal, "gradient_ready: [{}, {}) is no range of the {} elements", span.begin, span.end,
           h.layout.parameter_elements);
    }
    for (const Range& other : h.announced) {
      if (span.begin < other.end && other.begin < span.end) {
        fail(ExitCode::internal, "gradient_ready: [{}, {}) overlaps [{}, {}), which is announced already", span.begin,
             span.end, other.begin, other.end);
      }
    }
    h.announced.push_back({span.begin, span.end});
  });
}

}  // namespace

void set_result_functions(trireme_host& table) {
  table.output = output;
  table.report = report;
  table.loss = give_loss;
  table.gradient_ready = gradient_ready;
  table.fail = host_fail;
  table.last_error = host_last_error;
}

}  // namespace trireme::plugin
