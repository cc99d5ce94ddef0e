// Measuring steps: the step is the training's own, observed from outside.
#include "core/train/bench.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "core/backend/cpu/floor.h"
#include "core/base/log.h"
#include "core/base/version.h"
#include "core/device/doorbell.h"
#include "core/launch/stop.h"
#include "core/train/alike.h"
#include "core/train/session.h"
#include "core/train/step.h"
#include "io/telemetry/step_bench.h"

namespace trireme::train {
namespace {

using device::seconds_now;
using io::OpBench;
using io::StepBench;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One call of a kernel in the sequence that every step goes through.
struct Call {
  std::uint32_t op = 0;
  bool backward = false;
  std::vector<tensor::Tensor> in, out, saved, in_grads;  // shapes; in_grads with data are wanted
  ops::Attributes attributes;
  std::vector<double> seconds;  // one a measured step
};

// Listens to a tape: which calls a step makes, and how long each takes.
class Listener {
 public:
  void begin_step(bool measured) {
    measured_ = measured;
    next_ = 0;
    forward_ = backward_ = 0;
  }
  void hear(const autograd::OpCall& told) {
    if (inside_custom_ && told.op != autograd::Tape::custom_op) return;  // part of the custom function
    if (!told.ended) {
      inside_custom_ = told.op == autograd::Tape::custom_op;
      began_ = seconds_now();
      return;
    }
    const double seconds = seconds_now() - began_;
    inside_custom_ = false;
    (told.backward ? backward_ : forward_) += seconds;
    if (next_ == calls_.size()) calls_.push_back(copy_of(told));
    Call& call = calls_[next_++];
    if (call.op != told.op || call.backward != told.backward)
      fail(ExitCode::usage,
           "bench: this model's steps differ in their ops (call {} of a step); its ops can't be compared", next_);
    if (measured_) call.seconds.push_back(seconds);
  }
  [[nodiscard]] double forward() const { return forward_; }
  [[nodiscard]] double backward() const { return backward_; }
  [[nodiscard]] std::span<const Call> calls() const { return calls_; }

 private:
  static Call copy_of(const autograd::OpCall& told) {
    const auto list = [](std::span<const tensor::Tensor> from) { return std::vector(from.begin(), from.end()); };
    return {told.op,
            told.backward,
            list(told.in),
            list(told.out),
            list(told.saved),
            list(told.in_grads),
            told.attributes != nullptr ? *told.attributes : ops::Attributes(),
            {}};
  }

  bool measured_ = false, inside_custom_ = false;
  std::size_t next_ = 0;
  double began_ = 0, forward_ = 0, backward_ = 0;
  std::vector<Call> calls_;
};

std::string name_of_op(std::uint32_t op) {
  if (op == autograd::Tape::custom_op) return "custom function";
  if (op == autograd::Tape::add_op) return "add gradients";
  return std::string(ops::Registry::get()[op].name);
}

// "(128, 28, 28, 32) · (32, 3, 3, 32)": the inputs that are no vectors.
std::string shapes_of(const Call& call) {
  std::string text;
  for (const tensor::Tensor& in : call.in) {
    if (in.shape.rank() < 2 && !text.empty()) continue;
    if (!text.empty()) text += " · ";
    text += in.shape.text();
  }
  return text;
}

double floor_of(const Call& call, std::size_t working_set) {
  if (call.op == autograd::Tape::custom_op) return median(call.seconds);  // its own work is unknown to us
  if (call.op == autograd::Tape::add_op)
    return backend::copy_seconds(2 * call.in[0].bytes(), call.in[0].bytes(), working_set);
  const ops::Op& op = ops::Registry::get()[call.op];
  if (op.aliases_input) return 0;
  return backend::floor_seconds({op.name, call.backward, call.in, call.out, call.saved, call.in_grads, call.attributes},
                                working_set);
}

// Calls with the same op and shapes on one line, forward and backward side by side.
std::vector<OpBench> lines_of(std::span<const Call> calls, std::size_t working_set) {
  std::vector<OpBench> lines;
  std::map<std::string, double> floors;  // what was measured already
  for (const Call& call : calls) {
    const std::string op = name_of_op(call.op), shapes = shapes_of(call);
    auto line =
        std::find_if(lines.begin(), lines.end(), [&](const OpBench& l) { return l.op == op && l.shapes == shapes; });
    if (line == lines.end()) line = lines.insert(line, {op, shapes});
    std::string wanted;
    for (const tensor::Tensor& gradient : call.in_grads) wanted += gradient ? '1' : '0';
    const auto [floor, fresh] = floors.try_emplace(fmt::format("{} {} {} {}", op, shapes, call.backward, wanted), 0.0);
    if (fresh) floor->second = floor_of(call, working_set);
    (call.backward ? line->backward : line->forward) += median(call.seconds);
    (call.backward ? line->backward_floor : line->forward_floor) += floor->second;
    if (!call.backward) ++line->calls;
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const OpBench& a, const OpBench& b) { return a.forward + a.backward > b.forward + b.backward; });
  return lines;
}

// One update reads parameters, gradients and moments, and writes parameters and moments.
double update_floor(const optim::Optimizer& optimizer, std::size_t parameters, std::size_t working_set) {
  const std::size_t moments = optimizer.moment1().size() + optimizer.moment2().size();
  return backend::copy_seconds((2 * parameters + moments) * sizeof(float), (parameters + moments) * sizeof(float),
                               working_set);
}

// Seconds of each measured step, part by part.
struct Measured {
  std::vector<double> steps, forwards, backwards, updates, data_waits, comm_waits, glues;

  void into(StepBench& bench) const {
    bench.steps = static_cast<std::int64_t>(steps.size());
    bench.step = median(steps);
    bench.forward = median(forwards);
    bench.backward = median(backwards);
    bench.update = median(updates);
    bench.data_wait = median(data_waits);
    bench.comm_wait = median(comm_waits);
    bench.glue = median(glues);
  }
};

// What a step works with.
struct Bench {
  Listener listener;
  Step& step;
  io::Feed& feed;
  Reports& reports;
  GradSync& sync;
};

Measured measure(const BenchOptions& options, Bench& b) {
  double update_began = 0, update = 0;
  b.step.on_phase = [&](const char* phase) {
    if (phase == std::string_view("update")) update_began = seconds_now();
    if (phase == std::string_view("report")) update = seconds_now() - update_began;
  };
  Measured measured;
  for (std::int64_t i = 0; i < options.warm_up + options.steps && !launch::stop_requested(); ++i) {
    const bool counts = i >= options.warm_up;
    b.listener.begin_step(counts);
    const double data_before = b.feed.waited(), comm_before = b.sync.waited(), start = seconds_now();
    b.step.run(static_cast<std::uint64_t>(i), b.feed);
    while (b.reports.fetch(1)) {
    }
    if (!counts) continue;
    const double all = seconds_now() - start;
    const double data_wait = b.feed.waited() - data_before, comm_wait = b.sync.waited() - comm_before;
    measured.steps.push_back(all);
    measured.forwards.push_back(b.listener.forward());
    measured.backwards.push_back(b.listener.backward());
    measured.updates.push_back(update);
    measured.data_waits.push_back(data_wait);
    measured.comm_waits.push_back(comm_wait);
    measured.glues.push_back(all - b.listener.forward() - b.listener.backward() - update - data_wait - comm_wait);
  }
  b.step.on_phase = nullptr;
  return measured;
}

StepBench bench_group(const Job& job, const BenchOptions& options, comm::Group& group, const Parting& parting) {
  all_alike(group, std::vector<std::pair<std::string, std::string>>{{"trireme version", version()},
                                                                    {"job (resolved)", to_toml(job)}});
  DeviceChoice device = choose_device(job, group);
  if (device.device->kind() != device::Kind::cpu)
    throw AlikeError(ExitCode::usage, "bench step: floors are known for the CPU alone; add --set device=cpu");
  StepBench bench;
  bench.threads = settle_threads(job, group, 0);
  const auto data = open_data(group, job, job.data.train);
  Plan plan;
  on_all_ranks(group, [&] { plan = make_plan(job, group.size(), group.rank(), data->samples(), 0); });
  const auto model = open_model(group, job, device, fed_fields(job, *data), plan.rows);
  optim::Optimizer optimizer(optim::rule_of(job.optimizer, plan.total_steps), device.device,
                             model->layout().parameter_elements);
  device::StepBlockRing block(device.device);
  const auto metrics = model->metric_names().size();
  Reports reports(metrics, device.device);
  GradSync sync(group, plan, model->layout(), metrics, static_cast<std::uint64_t>(job.train.bucket_kib) << 10,
                device.device);
  Step step(plan, static_cast<std::uint64_t>(job.train.seed), device.device->compute_stream(), block, *model, sync,
            optimizer, reports, group);
  const auto feed = open_feed(job, data, {true, plan.rows}, plan.training(0), device.device);

  Bench parts{{}, step, *feed, reports, sync};
  model->tape().on_op = [&](const autograd::OpCall& told) { parts.listener.hear(told); };
  parting.guard([&] { return measure(options, parts); }).into(bench);
  group.barrier_now();
  bench.batch = plan.batch;
  bench.ranks = group.size();
  bench.device = device.description;
  // Activations, parameters, gradients and two moments.
  const std::size_t working_set = model->activation_bytes() + 4 * model->parameters().size_bytes();
  bench.update_floor = update_floor(optimizer, model->parameters().size(), working_set);
  bench.ops = lines_of(parts.listener.calls(), working_set);
  for (const OpBench& op : bench.ops) {
    bench.forward_floor += op.forward_floor;
    bench.backward_floor += op.backward_floor;
  }
  group.barrier_now();  // all ranks measure their floors side by side, as they trained
  return bench;
}

}  // namespace

int bench_step(const Job& given, const BenchOptions& options, bool json) {
  launch::catch_stop_requests();
  Job job = given;
  job.train.steps = options.warm_up + options.steps;
  return run_group(
      job,
      [&](comm::Group& group, const Parting& parting) {
        const StepBench bench = bench_group(job, options, group, parting);
        if (group.rank() == 0) log::info("{}", json ? io::document(bench) : io::table(bench));
        return 0;
      },
      [](ExitCode, const std::string&) {});
}

}  // namespace trireme::train
