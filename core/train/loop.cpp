// The loop over steps.
#include "core/train/loop.h"

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>

#include "core/base/fault.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/device/doorbell.h"
#include "core/launch/stop.h"
#include "core/train/alike.h"
#include "core/train/diagnose.h"
#include "core/train/session.h"

namespace trireme::train {

namespace {

// The last evaluation stays with the run: "step samples loss metric…", exact.
void put_evaluation(const Evaluation& evaluation, std::uint64_t step, std::map<std::string, std::string>& values) {
  std::string text = fmt::format("{} {} {}", step, evaluation.samples, io::exact(evaluation.loss));
  for (const double metric : evaluation.metrics) text.append(1, ' ').append(io::exact(metric));
  values["evaluation"] = text;
}

std::pair<std::optional<Evaluation>, std::uint64_t> get_evaluation(const std::map<std::string, std::string>& values) {
  const auto found = values.find("evaluation");
  if (found == values.end()) return {std::nullopt, ~std::uint64_t{0}};
  std::istringstream text(found->second);
  std::uint64_t step = 0;
  Evaluation evaluation;
  std::string word;
  text >> step >> evaluation.samples >> word;
  evaluation.loss = io::exact_double(word);
  while (text >> word) evaluation.metrics.push_back(io::exact_double(word));
  return {evaluation, step};
}

io::SaverOptions saver_options(const LoopParts& parts) {
  io::SaverOptions options;
  options.folder = parts.folder.checkpoints();
  options.rank = parts.group.rank();
  options.world_size = parts.group.size();
  options.attempt = parts.folder.attempt();
  options.keep_last = parts.job.checkpoint.keep_last;
  options.check = [&folder = parts.folder] { folder.check_owner(); };
  return options;
}

io::RecorderOptions recorder_options(const LoopParts& parts) {
  io::RecorderOptions options;
  options.run_directory = parts.folder.path();
  options.metric_names = parts.model.metric_names();
  options.log_every_steps = parts.job.run.log_every_steps;
  options.total_steps = parts.plan.total_steps;
  options.batch = parts.plan.batch;
  options.writes = parts.group.rank() == 0;
  options.check = [&folder = parts.folder] { folder.check_owner(); };
  return options;
}

}  // namespace

Loop::Loop(const LoopParts& parts)
    : parts_(parts),
      status_(parts.group),
      reports_(parts.model.metric_names().size(), parts.device),
      sync_(parts.group, parts.plan, parts.model.layout(), parts.model.metric_names().size(),
            static_cast<std::uint64_t>(parts.job.train.bucket_kib) << 10, parts.device),
      step_page_(parts.plan, static_cast<std::uint64_t>(parts.job.train.seed), parts.device->compute_stream(),
                 parts.block, parts.model, sync_, parts.optimizer, reports_, parts.group),
      saver_(saver_options(parts), parts.device),
      recorder_(recorder_options(parts)) {
  if (parts_.eval_data)
    evaluator_ = std::make_unique<Evaluator>(
        parts_.group, make_eval_plan(parts_.job, parts_.plan, parts_.eval_data->samples()), parts_.plan.same_world,
        parts_.model, parts_.block, static_cast<std::uint64_t>(parts_.job.train.seed), parts_.device->compute_stream(),
        parts_.device);
}

void Loop::begin(const std::optional<io::Manifest>& manifest) {
  started_ = device::seconds_now();
  bool evaluate_first = false;
  if (manifest) {
    device::Stream compute = parts_.device->compute_stream();
    parts_.block.write(get_block(*manifest), compute);
    step_ = manifest->scalars.step;
    evaluate_first = manifest->scalars.evaluation_due && evaluator_ != nullptr;  // the job may have dropped [data] eval
    const auto& values = manifest->scalars.values;
    best_ = {number_of(*manifest, "best_value"), integer_of(*manifest, "best_step")};
    std::tie(last_evaluation_, last_evaluated_) = get_evaluation(values);
    if (last_evaluation_ && last_evaluation_->metrics.size() != parts_.model.metric_names().size())
      last_evaluation_.reset();  // of a plugin that reported others
  }
  start_step_ = last_saved_ = step_;
  recorder_.cut_back(step_, evaluate_first);
  const std::uint64_t resident = resident_bytes();
  feed_ =
      open_feed(parts_.job, parts_.train_data, {true, parts_.plan.rows}, parts_.plan.training(step_), parts_.device);
  memory_ = plan_memory(parts_, resident, feed_->pinned_bytes());
  if (parts_.group.rank() == 0) log::info("{}", memory_.text());
  const auto local_size = static_cast<std::uint64_t>(parts_.group.local_size());
  if (parts_.group.rank() == 0 && memory_.total() * local_size > host_memory_bytes())
    log::warn("memory: {} ranks on this host will want {} MiB, and it has {}; lower data.memory_mib or train.batch",
              local_size, memory_.total() * local_size >> 20, host_memory_bytes() >> 20);
  if (evaluate_first) evaluate();
}

int Loop::run(const std::optional<io::Manifest>& manifest) {
  begin(manifest);
  evaluating_ = 0;
  if (step_ >= parts_.plan.total_steps && parts_.group.rank() == 0)
    log::info("all {} steps of this job are done; choose another --run-dir to train anew", step_);
  while (step_ < parts_.plan.total_steps && !stop_) {
    const double start = device::seconds_now();
    parts_.group.progress(step_, "step");
    step_page_.run(step_, *feed_);
    if (step_ == start_step_) {
      first_step_seconds_ = device::seconds_now() - started_;
      fault::point("first_step");
    }
    ++step_;
    const auto words = status_.pending() > 0 ? std::optional(status_.fetch()) : std::nullopt;
    if (words) act(*words);
    report(1);
    const std::int64_t every = parts_.job.checkpoint.every_steps;
    if (every > 0 && step_ % static_cast<std::uint64_t>(every) == 0) save_due_ = true;
    if (evaluation_due(step_)) evaluate();
    if (save_due_ && pending_save_ == 0) save();
    times_.seconds += device::seconds_now() - start - evaluating_;
    evaluating_ = 0;
    status_.post(mine());
  }
  report(0);
  if (status_.pending() > 0) act(status_.fetch());
  settle();
  if (last_saved_ != step_ || unsaved_evaluation_) save();
  settle();
  summarise();
  const bool trained = step_ >= parts_.plan.total_steps;
  const bool done = trained && !(stop_ && evaluation_due(step_) && last_evaluated_ != step_);
  if (!done && trained && parts_.group.rank() == 0)
    log::info("stopped in the evaluation after the last step, {}; the same command goes on with it", step_);
  else if (!done && parts_.group.rank() == 0)
    log::info("stopped after step {} of {}, saved; go on with the same command", step_, parts_.plan.total_steps);
  return static_cast<int>(done ? ExitCode::done : ExitCode::stopped);
}

void Loop::report(std::size_t keep) {
  // Waits up to now go to the next record, which may be of the step before.
  times_.data_wait += feed_->waited() - waited_before_;
  times_.comm_wait += sync_.waited() + status_.waited() - comm_before_;
  times_.save_stall += saver_.stalled() - stalled_before_;
  waited_before_ = feed_->waited();
  comm_before_ = sync_.waited() + status_.waited();
  stalled_before_ = saver_.stalled();
  while (const auto report = reports_.fetch(keep)) {
    if (report->halted) {
      const std::string culprit = diagnose(parts_.group, parts_.job, parts_.plan, report->step, parts_.train_data,
                                           parts_.model, parts_.block, parts_.device);
      throw AlikeError(
          ExitCode::diverged,
          fmt::format("diverged: {}. Nothing was written since the last checkpoint; lower the learning rate, set "
                      "optimizer.clip_norm, or look at these samples",
                      culprit));
    }
    io::StepRecord record;
    record.step = report->step;
    record.epoch = parts_.plan.epoch_after(report->step + 1);
    record.loss = report->loss;
    record.weight = report->weight;
    record.lr = optim::learning_rate(parts_.optimizer.rule().schedule, report->updates > 0 ? report->updates - 1 : 0);
    record.grad_norm = report->grad_norm;
    record.skipped = report->weight == 0;
    record.metrics = report->metrics;
    recorder_.step(record, std::exchange(times_, {}));
  }
}

HostWords Loop::mine() {
  const std::uint64_t moved_before = std::exchange(moved_, saver_.moved());
  // Only rank 0 knows what is committed; the others note a commit when they are told that it may begin.
  return {launch::stop_requested() ? 1u : 0u, saver_.written(), parts_.group.rank() == 0 ? saver_.committed() : 0,
          moved_ != moved_before ? 1u : 0u};
}

void Loop::act(const HostWords& words) {
  if (words.stop != 0) stop_ = true;
  if (pending_save_ == 0) return;
  if (words.committed >= pending_save_) {
    pending_save_ = 0;
    return;
  }
  if (words.written >= pending_save_ && saver_.committed() < pending_save_) saver_.commit(pending_save_);
}

bool Loop::evaluation_due(std::uint64_t done) const {
  if (!evaluator_ || done == 0) return false;
  if (parts_.job.eval.every_epoch && parts_.plan.ends_epoch(done - 1)) return true;
  const std::int64_t every = parts_.job.eval.every_steps;
  return (every > 0 && done % static_cast<std::uint64_t>(every) == 0) || done == parts_.plan.total_steps;
}

void Loop::evaluate() {
  report(0);
  const EvalPlan plan = make_eval_plan(parts_.job, parts_.plan, parts_.eval_data->samples());
  const auto feed = open_feed(parts_.job, parts_.eval_data, {false, plan.rows}, plan.sequence(), parts_.device);
  const auto between = [this] {
    act(status_.exchange(mine()));
    return !stop_;
  };
  const double start = device::seconds_now();
  const auto evaluation = evaluator_->run(*feed, step_, between);
  evaluating_ += device::seconds_now() - start;
  if (!evaluation) return;  // stopped: the checkpoint says that an evaluation is due
  last_evaluated_ = step_;
  unsaved_evaluation_ = true;
  last_evaluation_ = evaluation;
  recorder_.evaluation(step_, evaluation->loss, evaluation->metrics, evaluation->samples, evaluation->seconds);
  const auto names = parts_.model.metric_names();
  for (std::size_t i = 0; i <= names.size(); ++i) {
    const std::string name = i == names.size() ? "loss" : names[i];
    if (name != parts_.job.eval.best_metric) continue;
    const double value = i == names.size() ? evaluation->loss : evaluation->metrics[i];
    const bool better = parts_.job.eval.best_is_max ? value > best_.value : value < best_.value;
    if (!std::isnan(value) && (best_.step == 0 || better)) {
      best_ = {value, step_};
      best_is_new_ = parts_.job.checkpoint.keep_best;
    }
  }
  if (!best_is_new_) return;
  settle();  // the best parameters are these: an earlier save must be out of the way
  // The checkpoint that a run was resumed from, before its due evaluation, is not marked as the best: it is saved anew.
  if (last_saved_ != step_ || start_step_ == step_) save();
  best_is_new_ = false;
}

void Loop::save() {
  save_due_ = unsaved_evaluation_ = false;
  report(0);  // a diverged step is known before anything is written, and its lines are in metrics.jsonl
  parts_.folder.check_owner();
  io::Scalars scalars;
  scalars.step = step_;
  scalars.cursor = step_ * static_cast<std::uint64_t>(parts_.plan.batch);
  scalars.world_size = parts_.plan.world_size;
  scalars.micro_batches = parts_.plan.micro_batches;
  scalars.evaluation_due = last_evaluated_ != step_ && evaluation_due(step_);  // stopped in the middle of it
  device::Stream compute = parts_.device->compute_stream();
  put_block(parts_.block.read(compute), scalars.values);
  scalars.values["best_value"] = io::exact(best_.value);
  scalars.values["best_step"] = std::to_string(best_.step);
  if (last_evaluation_) put_evaluation(*last_evaluation_, last_evaluated_, scalars.values);
  scalars.notes = parts_.notes;
  scalars.identity = parts_.identity;
  recorder_.sync();
  const auto arenas = state_arenas(parts_.model, &parts_.optimizer);
  saver_.snapshot(scalars, arenas, best_.step == step_ && parts_.job.checkpoint.keep_best, compute);
  pending_save_ = last_saved_ = step_;
  recorder_.checkpoint(step_, saver_.stalled() - stalled_before_);
}

void Loop::settle() {
  std::uint64_t moves = 0;  // a save may take longer than train.watchdog_s; one that stands still is a hang
  while (pending_save_ != 0) {
    parts_.group.progress(step_, "checkpoint", moves);
    const HostWords words = status_.exchange(mine());
    moves += words.moving;
    act(words);
    if (pending_save_ != 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Loop::summarise() {
  recorder_.sync();
  if (parts_.group.rank() != 0) return;
  const io::Recorder::Totals totals = recorder_.totals();
  io::Summary& summary = parts_.folder.summary();
  const auto share = [&](double part) { return totals.seconds > 0 ? part / totals.seconds : 0.0; };
  summary.set("steps", static_cast<std::int64_t>(step_));
  summary.set("epochs", parts_.plan.epoch_after(step_));
  summary.set("steps_this_start", static_cast<std::int64_t>(step_ - start_step_));
  summary.set("samples_per_second", totals.samples_per_second);
  summary.set("first_step_seconds", first_step_seconds_);
  summary.set("train_seconds", totals.seconds);
  summary.set("memory_planned_mib", static_cast<std::int64_t>(memory_.total() >> 20));
  summary.set("memory_peak_mib", static_cast<std::int64_t>(peak_resident_bytes() >> 20));
  summary.set("run_seconds", device::seconds_now() - started_);
  summary.set("data_wait_share", share(totals.data_wait));
  summary.set("comm_wait_share", share(totals.comm_wait));
  summary.set("save_stall_share", share(totals.save_stall));
  summary.set("last_checkpoint", static_cast<std::int64_t>(last_saved_));
  if (best_.step > 0) {
    summary.set("best_metric", parts_.job.eval.best_metric);
    summary.set("best_value", best_.value);
    summary.set("best_step", static_cast<std::int64_t>(best_.step));
  }
  if (last_evaluation_) {
    summary.set("eval_step", static_cast<std::int64_t>(last_evaluated_));
    summary.set("eval_loss", last_evaluation_->loss);
    const auto names = parts_.model.metric_names();
    for (std::size_t i = 0; i < names.size(); ++i) summary.set("eval_" + names[i], last_evaluation_->metrics[i]);
  }
}

}  // namespace trireme::train
