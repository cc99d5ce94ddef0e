// `trireme train`: from a job to a finished, stopped or refused run.
#include "core/base/log.h"
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

void announce(const LoopParts& parts, const DeviceChoice& device, const Job& job) {
  if (parts.group.rank() != 0) return;
  const Plan& plan = parts.plan;
  std::uint64_t parameters = 0;
  for (const plugin::Parameter& p : parts.model.layout().parameters) parameters += p.range.size();
  log::info("model: {} {}, {} parameters ({})", parts.model.library().name(), parts.model.library().version(),
            parameters, parts.model.library().path().string());
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
  if (factor > 1.5)
    log::warn(
        "data.shuffle = \"global\" will read each chunk about {:.0f} times an epoch: decoded data exceed "
        "data.memory_mib = {}; "
        "raise it or set data.shuffle = \"block\"",
        factor, job.data.memory_mib);
  io::Summary& summary = parts.folder.summary();
  summary.set("plugin", parts.model.library().name());
  summary.set("plugin_version", parts.model.library().version());
  summary.set("device", device.description);
  summary.set("batch", static_cast<std::int64_t>(plan.batch));
  summary.set("micro_batches", static_cast<std::int64_t>(plan.micro_batches));
  summary.set("threads", parts.threads);
  summary.set("parameters", static_cast<std::int64_t>(parameters));
  summary.set("total_steps", static_cast<std::int64_t>(plan.total_steps));
  summary.set("reproducible", std::string(plan.same_world ? "same-world" : "any-world"));
  summary.write();
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

// The newest sound checkpoint into the arenas; faulty ones are set aside on the way.
std::optional<io::Manifest> resume_from(comm::Group& group, const Resume& resume, const RunFolder& folder,
                                        std::optional<std::filesystem::path> checkpoint,
                                        std::span<const io::ArenaState> arenas,
                                        const std::map<std::string, std::string>& identity) {
  while (checkpoint) {
    auto manifest = load_checkpoint(group, *checkpoint, arenas, identity, resume.kind != Resume::Kind::path);
    if (manifest) return manifest;
    checkpoint = choose_checkpoint(group, resume, folder.checkpoints());
  }
  return std::nullopt;
}

// Says what differs from where the checkpoint was written: the promise of bits ends there. "strict" refuses.
void compare_surroundings(const Job& job, const comm::Group& group, RunFolder& folder,
                          const std::map<std::string, std::string>& before,
                          const std::map<std::string, std::string>& now) {
  std::string differs;
  for (const auto& [key, value] : now) {
    const auto found = before.find(key);
    if (found != before.end() && found->second != value)
      differs += fmt::format("{}{}: '{}' before, '{}' now", differs.empty() ? "" : "; ", key, found->second, value);
  }
  if (differs.empty()) return;
  if (job.reproducible == "strict")
    throw AlikeError(ExitCode::usage,
                     "reproducible = \"strict\" refuses to resume where the bits may differ: " + differs);
  if (group.rank() == 0) log::warn("the same bits as before are no longer promised: {}", differs);
  folder.summary().set("bits_end_of_promise", differs);
}

int train_group(const Job& job, const Resume& resume, comm::Group& group, std::unique_ptr<RunFolder>& folder) {
  comm::check_alike(group, std::vector<std::pair<std::string, std::string>>{{"trireme version", version()},
                                                                            {"job (resolved)", to_toml(job)}});
  folder = std::make_unique<RunFolder>(group, job);
  const DeviceChoice device = choose_device(job, group);
  auto checkpoint = choose_checkpoint(group, resume, folder->checkpoints());
  const Recorded recorded = checkpoint ? read_recorded(group, *checkpoint) : Recorded{};
  const std::int64_t threads = settle_threads(job, group, recorded.threads);

  const auto train_data = open_data(group, job, job.data.train);
  const auto eval_data = job.data.eval.empty() ? nullptr : open_data(group, job, job.data.eval);
  Plan plan;
  on_all_ranks(
      group, [&] { plan = make_plan(job, group.size(), group.rank(), train_data->samples(), recorded.micro_batches); });
  const std::vector<Field> fields = fed_fields(job, *train_data);
  if (eval_data) check_alike_fields(fields, fed_fields(job, *eval_data));
  const auto model = open_model(group, job, device, fields, plan.rows);
  const auto identity = run_identity(job, *model, *train_data, plan.micro_batches);
  const Surroundings around = surroundings(*model, device, threads);
  std::vector<std::pair<std::string, std::string>> alike(identity.begin(), identity.end());
  alike.insert(alike.end(), around.alike.begin(), around.alike.end());
  comm::check_alike(group, alike);

  device::UpdateRule rule;
  on_all_ranks(group, [&] { rule = optim::rule_of(job.optimizer, plan.total_steps); });
  optim::Optimizer optimizer(rule, device.device, model->layout().parameter_elements);
  device::StepBlockRing block(device.device);
  const LoopParts parts{job,       group, plan,    device.device, train_data, eval_data, *model,
                        optimizer, block, *folder, identity,      around.all, threads};
  announce(parts, device, job);
  const auto arenas = state_arenas(*model, &optimizer);
  const auto manifest = resume_from(group, resume, *folder, checkpoint, arenas, identity);
  if (manifest && group.rank() == 0)
    log::info("resumed: {}, {} steps done", manifest->folder.string(), manifest->scalars.step);
  if (manifest) compare_surroundings(job, group, *folder, manifest->scalars.notes, around.all);
  if (!manifest && checkpoint && group.rank() == 0)
    log::warn("no sound checkpoint is left: starting from the beginning");

  Loop loop(parts);
  const int code = loop.run(manifest);
  folder->close(code == 0 ? "done" : "stopped", code, "");
  return code;
}

}  // namespace

int train(const Job& job, const Resume& resume) {
  launch::catch_stop_requests();
  std::unique_ptr<RunFolder> folder;
  return run_group(
      job, [&](comm::Group& group) { return train_group(job, resume, group, folder); },
      [&](ExitCode code, const std::string& text) {
        if (folder) folder->close(code == ExitCode::diverged ? "diverged" : "failed", static_cast<int>(code), text);
      });
}

}  // namespace trireme::train
