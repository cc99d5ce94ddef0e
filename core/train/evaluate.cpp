// `trireme eval`: a checkpoint's metrics on the evaluation data.
#include "core/base/log.h"
#include "core/base/threads.h"
#include "core/launch/stop.h"
#include "core/train/alike.h"
#include "core/train/evaluator.h"
#include "core/train/resume.h"
#include "core/train/run.h"
#include "core/train/session.h"
#include "core/train/status.h"
#include "io/telemetry/eval_report.h"

namespace trireme::train {

namespace {

int evaluate_group(const Job& job, const std::filesystem::path& wanted, bool json, comm::Group& group,
                   const Parting& parting) {
  if (job.data.eval.empty()) throw AlikeError(ExitCode::usage, "eval: the job has no [data] eval");
  const LoadedModel loaded = load_for_use(group, job, wanted);
  const auto& manifest = loaded.manifest;
  Plan plan;
  on_all_ranks(group, [&] {
    plan = make_plan(job, group.size(), group.rank(), std::max(loaded.data->samples(), job.train.batch),
                     manifest.scalars.micro_batches);
  });
  device::StepBlockRing block(loaded.device.device);
  const EvalPlan eval = make_eval_plan(job, plan, loaded.data->samples());
  Evaluator evaluator(group, eval, plan.same_world, *loaded.model, block, static_cast<std::uint64_t>(job.train.seed),
                      loaded.device.device->compute_stream(), loaded.device.device);
  const auto feed = open_feed(job, loaded.data, {false, eval.rows}, eval.sequence(), loaded.device.device);
  Status status(group);  // a stop is agreed on: all ranks end after the same round
  const auto between = [&] { return status.exchange({launch::stop_requested() ? 1u : 0u, 0, 0, 0}).stop == 0; };
  const auto result = parting.guard([&] { return evaluator.run(*feed, manifest.scalars.step, between); });
  if (!result) throw AlikeError(ExitCode::stopped, "eval: stopped before its end");
  if (group.rank() != 0) return 0;
  io::EvalReport told{manifest.folder.string(), manifest.scalars.step, result->samples, result->loss, {}};
  const auto names = loaded.model->metric_names();
  for (std::size_t i = 0; i < names.size(); ++i) told.metrics.emplace_back(names[i], result->metrics[i]);
  log::info("{}", json ? io::document(told) : io::lines(told));
  return 0;
}

}  // namespace

int evaluate(const Job& job, const std::filesystem::path& checkpoint, bool json) {
  launch::catch_stop_requests();
  return run_group(
      job,
      [&](comm::Group& group, const Parting& parting) { return evaluate_group(job, checkpoint, json, group, parting); },
      [](ExitCode, const std::string&) {});
}

}  // namespace trireme::train
