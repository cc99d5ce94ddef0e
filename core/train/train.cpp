// `trireme train`: from a job to a finished, stopped or refused run.
#include <algorithm>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/base/version.h"
#include "core/launch/stop.h"
#include "core/train/alike.h"
#include "core/train/loop.h"
#include "core/train/resume.h"
#include "core/train/run.h"
#include "core/train/run_folder.h"
#include "core/train/session.h"

namespace trireme::train {

namespace {

std::uint64_t parameters_of(const plugin::Model& model) {
  std::uint64_t parameters = 0;
  for (const plugin::Parameter& p : model.layout().parameters) parameters += p.range.size();
  return parameters;
}

void announce(const LoopParts& parts, const DeviceChoice& device, const Job& job) {
  if (parts.group.rank() != 0) return;
  const Plan& plan = parts.plan;
  log::info("model: {} {}, {} parameters ({})", parts.model.library().name(), parts.model.library().version(),
            parameters_of(parts.model), parts.model.library().path().string());
  log::info("data: {} training samples in {} files{}", plan.samples, parts.train_data->files().size(),
            parts.eval_data ? fmt::format(", {} for evaluation", parts.eval_data->samples()) : std::string());
  log::info("ranks: {}, {} compute thread(s) each; batch {} = {} micro-batches of {}; {} steps ({:.2f} epochs)",
            plan.world_size, parts.threads, plan.batch, plan.micro_batches, plan.rows, plan.total_steps,
            plan.epoch_after(plan.total_steps));
  log::info("device: {}", device.description);
  if (plan.same_world)
    log::info("reproducible: on {} ranks only (micro-batches or ranks are no power of two, or the job says so)",
              plan.world_size);
  else if (plan.micro_batches == 1)
    log::info("reproducible: on 1 rank; set train.micro_batches to a power of two to run the same bits on more");
  const double factor =
      job.data.shuffle == "global"
          ? io::reads_of_a_block(*parts.train_data, static_cast<std::uint64_t>(job.data.memory_mib) << 20)
          : 1;
  const std::uint64_t order = job.data.shuffle == "global" ? io::order_bytes(plan.samples, io::Shuffle::global) : 0;
  if (order > static_cast<std::uint64_t>(job.data.memory_mib) << 20)
    log::warn(
        "data.shuffle = \"global\" keeps {} MiB on each rank for the order of {} samples, more than data.memory_mib = "
        "{}; "
        "set data.shuffle = \"block\" if memory is short",
        order >> 20, plan.samples, job.data.memory_mib);
  if (factor > 1.5)
    log::warn(
        "data.shuffle = \"global\" will read each chunk about {:.0f} times an epoch: decoded data exceed "
        "data.memory_mib = {}; "
        "raise it or set data.shuffle = \"block\"",
        factor, job.data.memory_mib);
}

// The order of so many samples that a host could not hold it.
void check_order(const Job& job, const Plan& plan) {
  if (job.data.shuffle != "global") return;
  const std::uint64_t order = io::order_bytes(plan.samples, io::Shuffle::global);
  if (order > host_memory_bytes())
    fail(ExitCode::usage,
         "data.shuffle = \"global\" keeps {} MiB on each rank for the order of {} samples, and this host has {} MiB in "
         "all; set data.shuffle = \"block\"",
         order >> 20, plan.samples, host_memory_bytes() >> 20);
}

// The summary's part that is known at the start. Rank 0's is written.
void summarise(const LoopParts& parts, const DeviceChoice& device) {
  const Plan& plan = parts.plan;
  io::Summary& summary = parts.folder.summary();
  summary.set("plugin", parts.model.library().name());
  summary.set("plugin_version", parts.model.library().version());
  summary.set("device", device.description);
  summary.set("batch", static_cast<std::int64_t>(plan.batch));
  summary.set("micro_batches", static_cast<std::int64_t>(plan.micro_batches));
  summary.set("threads", parts.threads);
  summary.set("parameters", static_cast<std::int64_t>(parameters_of(parts.model)));
  summary.set("total_steps", static_cast<std::int64_t>(plan.total_steps));
  summary.set("reproducible", std::string(plan.same_world ? "same-world" : "any-world"));
}

// One model takes both; the names come from one table.
void check_alike_fields(std::span<const Field> train, std::span<const Field> eval) {
  for (std::size_t i = 0; i < train.size(); ++i)
    if (train[i] != eval[i])
      throw AlikeError(
          ExitCode::data,
          fmt::format("field '{}': a sample is {} {} in [data] train, {} {} in [data] eval; one model takes both",
                      train[i].name, name_of(train[i].dtype), train[i].shape.text(), name_of(eval[i].dtype),
                      eval[i].shape.text()));
}

// The newest sound checkpoint into the arenas; faulty ones are set aside on the way. A run that had one never goes on
// without: parts of the arenas are a faulty one's by then.
std::optional<io::Manifest> resume_from(comm::Group& group, const Resume& resume, const RunFolder& folder,
                                        const std::shared_ptr<device::Device>& device, Start start,
                                        std::span<const io::ArenaState> arenas,
                                        const std::map<std::string, std::string>& identity) {
  if (start.checkpoint.empty()) return std::nullopt;
  while (true) {
    auto manifest =
        load_checkpoint(group, device, start.checkpoint, arenas, &identity, resume.kind != Resume::Kind::path);
    if (manifest) return manifest;
    start = choose_start(group, resume, folder.checkpoints());
    if (start.checkpoint.empty())
      throw AlikeError(ExitCode::internal, "a damaged checkpoint is gone, and no other is chosen");
  }
}

// A run that reached its end earlier, with nothing to evaluate: its summary stays. Collective.
bool is_done(comm::Group& group, const RunFolder& folder, const io::Manifest& manifest, const Plan& plan) {
  if (manifest.scalars.step != plan.total_steps || manifest.scalars.evaluation_due) return false;
  if (on_rank_0(group, [&] { return folder.last_result(); }) != "done") return false;
  if (group.rank() == 0)
    log::info("nothing to do: all {} steps of this job are done; choose another --run-dir to train anew",
              plan.total_steps);
  return true;
}

// Says what differs from where the checkpoint was written, on the first rank where something does: the promise of bits
// ends there. "strict" refuses. Collective.
void compare_surroundings(const Job& job, comm::Group& group, RunFolder& folder,
                          const std::map<std::string, std::string>& before,
                          const std::map<std::string, std::string>& now) {
  std::string differs;
  for (const auto& [key, value] : now) {
    const auto found = before.find(key);
    if (found != before.end() && found->second != value)
      differs += fmt::format("{}{}: '{}' before, '{}' now", differs.empty() ? "" : "; ", key, found->second, value);
  }
  const std::vector<std::string> all = group.all_gather_now(differs);
  const auto first = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  if (first == all.end()) return;
  differs = first == all.begin() ? *first : fmt::format("rank {}: {}", first - all.begin(), *first);
  if (job.reproducible == "strict")
    throw AlikeError(ExitCode::usage,
                     "reproducible = \"strict\" refuses to resume where the bits may differ: " + differs);
  if (group.rank() == 0) log::warn("the same bits as before are no longer promised: {}", differs);
  folder.summary().set("bits_end_of_promise", differs);
}

// Ranks on different processors: a run on other ranks, or a resume, deals micro-batches to other kernels. Collective.
void compare_devices(const Job& job, comm::Group& group, RunFolder& folder, const std::string& mine) {
  const std::vector<std::string> all = group.all_gather_now(mine);
  const auto other = std::find_if(all.begin(), all.end(), [&](const std::string& text) { return text != all.front(); });
  if (other == all.end()) return;
  const std::string differs =
      fmt::format("rank 0 computes on '{}', rank {} on '{}'", all.front(), other - all.begin(), *other);
  if (job.reproducible == "strict")
    throw AlikeError(ExitCode::usage,
                     fmt::format("reproducible = \"strict\" refuses ranks on different devices: {}; start "
                                 "all ranks on one kind of host",
                                 differs));
  if (group.rank() == 0) log::warn("bits are promised for these hosts alone: {}", differs);
  folder.summary().set("devices_differ", differs);
}

// eval.best names a metric of this model. The same on all ranks.
void check_best(const Job& job, const plugin::Model& model) {
  const std::string& wanted = job.eval.best_metric;
  std::vector<std::string> names = model.metric_names();
  names.emplace_back("loss");
  if (wanted.empty() || std::find(names.begin(), names.end(), wanted) != names.end()) return;
  const std::string near = nearest(wanted, names);
  std::string all;
  for (const std::string& name : names) all += fmt::format("{}'{}'", all.empty() ? "" : ", ", name);
  throw AlikeError(ExitCode::usage, fmt::format("eval.best = \"{}\": this model reports {}{}", wanted, all,
                                                near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

int train_group(const Job& job, const Resume& resume, comm::Group& group, const Parting& parting,
                std::unique_ptr<RunFolder>& folder) {
  all_alike(group, std::vector<std::pair<std::string, std::string>>{{"trireme version", version()},
                                                                    {"job (resolved)", to_toml(job)}});
  folder = std::make_unique<RunFolder>(group, job);
  DeviceChoice device = choose_device(job, group);
  const Start start = choose_start(group, resume, folder->checkpoints());
  const std::int64_t threads = settle_threads(job, group, start.threads);

  const auto train_data = open_data(group, job, job.data.train);
  const auto eval_data = job.data.eval.empty() ? nullptr : open_data(group, job, job.data.eval);
  Plan plan;
  on_all_ranks(group, [&] {
    plan = make_plan(job, group.size(), group.rank(), train_data->samples(), start.micro_batches);
    check_order(job, plan);
  });
  const std::vector<Field> fields = fed_fields(job, *train_data);
  if (eval_data) check_alike_fields(fields, fed_fields(job, *eval_data));
  const auto model = open_model(group, job, device, fields, plan.rows);
  check_best(job, *model);
  compare_devices(job, group, *folder, device.description);
  const auto identity = run_identity(job, *model, *train_data, plan.micro_batches);
  const Surroundings around = surroundings(*model, device, threads);
  std::vector<std::pair<std::string, std::string>> alike(identity.begin(), identity.end());
  alike.insert(alike.end(), around.alike.begin(), around.alike.end());
  all_alike(group, alike);

  device::UpdateRule rule;
  on_all_ranks(group, [&] { rule = optim::rule_of(job.optimizer, plan.total_steps); });
  optim::Optimizer optimizer(rule, device.device, model->layout().parameter_elements);
  device::StepBlockRing block(device.device);
  const LoopParts parts{job,       group, plan,    device.device, train_data, eval_data, *model,
                        optimizer, block, *folder, identity,      around.all, threads};
  announce(parts, device, job);
  const auto arenas = state_arenas(*model, &optimizer);
  const auto manifest = resume_from(group, resume, *folder, device.device, start, arenas, identity);
  if (manifest && group.rank() == 0)
    log::info("resumed: {}, {} steps done", manifest->folder.string(), manifest->scalars.step);
  if (manifest) compare_surroundings(job, group, *folder, manifest->scalars.notes, around.all);
  if (manifest && is_done(group, *folder, *manifest, plan)) return static_cast<int>(ExitCode::done);
  summarise(parts, device);
  folder->begin(group, job);

  Loop loop(parts);
  const int code = parting.guard([&] { return loop.run(manifest); });
  folder->close(code == 0 ? "done" : "stopped", code, "");
  return code;
}

}  // namespace

int train(const Job& job, const Resume& resume) {
  launch::catch_stop_requests();
  std::unique_ptr<RunFolder> folder;
  return run_group(
      job, [&](comm::Group& group, const Parting& parting) { return train_group(job, resume, group, parting, folder); },
      [&](ExitCode code, const std::string& text) {
        if (folder) folder->close(code == ExitCode::diverged ? "diverged" : "failed", static_cast<int>(code), text);
      });
}

}  // namespace trireme::train
