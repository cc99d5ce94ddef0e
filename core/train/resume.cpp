// Choosing and loading a checkpoint, by all ranks alike.
#include "core/train/resume.h"

#include "core/base/log.h"
#include "core/train/alike.h"

namespace trireme::train {

std::vector<io::ArenaState> state_arenas(plugin::Model& model, const optim::Optimizer* optimizer) {
  std::vector<io::Entry> parameters, buffers;
  for (const plugin::Parameter& p : model.layout().parameters) parameters.push_back({p.name, p.shape, p.range});
  for (const plugin::Buffer& b : model.layout().buffers) buffers.push_back({b.name, b.shape, b.range});
  std::vector<io::ArenaState> arenas;
  const auto add = [&](const char* name, std::span<float> memory, const std::vector<io::Entry>& entries) {
    if (!memory.empty()) arenas.push_back({name, Dtype::f32, std::as_writable_bytes(memory), entries});
  };
  add("parameters", model.parameters(), parameters);
  add("buffers", model.buffers(), buffers);
  if (optimizer != nullptr) {
    add("moment1", optimizer->moment1(), parameters);
    add("moment2", optimizer->moment2(), parameters);
  }
  return arenas;
}

void put_block(const device::StepBlock& block, std::map<std::string, std::string>& values) {
  values["updates"] = std::to_string(block.updates);
  values["skips"] = std::to_string(block.skips);
  values["beta1_product"] = io::exact(block.beta1_product);
  values["beta2_product"] = io::exact(block.beta2_product);
  values["loss_scale"] = io::exact(static_cast<double>(block.loss_scale));
  values["good_steps"] = std::to_string(block.good_steps);
}

device::StepBlock get_block(const std::map<std::string, std::string>& values) {
  device::StepBlock block;
  block.updates = std::stoull(values.at("updates"));
  block.skips = std::stoull(values.at("skips"));
  block.beta1_product = io::exact_double(values.at("beta1_product"));
  block.beta2_product = io::exact_double(values.at("beta2_product"));
  block.loss_scale = static_cast<float>(io::exact_double(values.at("loss_scale")));
  block.good_steps = static_cast<std::uint32_t>(std::stoul(values.at("good_steps")));
  return block;
}

std::optional<std::filesystem::path> choose_checkpoint(comm::Group& group, const Resume& resume,
                                                       const std::filesystem::path& checkpoints) {
  const std::string chosen = on_rank_0(group, [&]() -> std::string {
    if (resume.kind == Resume::Kind::path) {
      if (!std::filesystem::is_directory(resume.path))
        fail(ExitCode::usage, "--resume {}: no such checkpoint folder", resume.path.string());
      return resume.path.string();
    }
    const auto found = io::list_checkpoints(checkpoints);
    if (resume.kind == Resume::Kind::never && !found.empty())
      fail(ExitCode::usage,
           "--resume never: {} has {} checkpoint(s), the newest {}; choose another --run-dir, or go on with --resume "
           "auto",
           checkpoints.string(), found.size(), found.front().filename().string());
    if (resume.kind == Resume::Kind::must && found.empty())
      fail(ExitCode::usage, "--resume must: no checkpoint in {}", checkpoints.string());
    return found.empty() ? "" : found.front().string();
  });
  if (chosen.empty()) return std::nullopt;
  return chosen;
}

Recorded read_recorded(comm::Group& group, const std::filesystem::path& checkpoint) {
  const std::string text = on_rank_0(group, [&] {
    const io::Manifest manifest = io::read_manifest(checkpoint);
    return std::to_string(manifest.scalars.micro_batches) + " " +
           (manifest.scalars.notes.contains("threads") ? manifest.scalars.notes.at("threads") : "0");
  });
  const std::size_t cut = text.find(' ');
  return {std::stoull(text.substr(0, cut)), std::stoll(text.substr(cut + 1))};
}

namespace {

// Every rank has read its share of every arena; afterwards every rank has all shares.
void gather(comm::Group& group, std::span<const io::ArenaState> arenas) {
  const auto ranks = static_cast<std::uint64_t>(group.size());
  device::Event done;
  for (const io::ArenaState& arena : arenas)
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const Range slice = arena.slice(rank, ranks);
      const std::size_t size = size_of(arena.dtype);
      if (!slice.empty())
        done = group.broadcast(arena.memory.subspan(slice.begin * size, slice.size() * size), static_cast<int>(rank));
    }
  done.synchronize();
}

}  // namespace

std::optional<io::Manifest> load_checkpoint(comm::Group& group, const std::filesystem::path& checkpoint,
                                            std::span<const io::ArenaState> arenas,
                                            const std::map<std::string, std::string>& identity, bool may_set_aside) {
  io::Manifest manifest;
  try {
    on_all_ranks(group, [&] {
      manifest = io::read_manifest(checkpoint);
      if (!identity.empty()) {
        const auto different = io::differences(manifest, arenas, identity);
        if (!different.empty()) {
          std::string text = fmt::format("{} is not of this job:", checkpoint.string());
          for (const std::string& line : different) text += "\n  " + line;
          fail(ExitCode::usage, "{}\nresume with the job it was written by, or start anew in another --run-dir", text);
        }
      }
      io::load_share(manifest, arenas, static_cast<std::uint64_t>(group.rank()),
                     static_cast<std::uint64_t>(group.size()));
    });
  } catch (const AlikeError& error) {
    if (error.code() != ExitCode::data || !may_set_aside) throw;
    (void)on_rank_0(group, [&]() -> std::string {
      log::warn("checkpoint set aside: {}", error.what());
      io::set_aside(checkpoint, error.what());
      return "";
    });
    return std::nullopt;
  }
  gather(group, arenas);
  return manifest;
}

LoadedModel load_for_use(comm::Group& group, const Job& job, const std::filesystem::path& wanted) {
  const std::filesystem::path folder = job.run.dir / "checkpoints";
  const std::string chosen = on_rank_0(group, [&]() -> std::string {
    if (!wanted.empty()) {
      if (!std::filesystem::is_directory(wanted))
        fail(ExitCode::usage, "{}: no such checkpoint folder", wanted.string());
      return wanted.string();
    }
    const auto found = io::list_checkpoints(folder);
    if (found.empty())
      fail(ExitCode::usage, "no checkpoint in {}: train first, or name one with --checkpoint", folder.string());
    const std::string best = io::read_manifest(found.front()).scalars.values.at("best_step");
    for (const auto& checkpoint : found)
      if (best != "0" && std::to_string(io::read_manifest(checkpoint).scalars.step) == best) return checkpoint.string();
    return found.front().string();
  });
  LoadedModel loaded;
  loaded.device = choose_device(job, group);
  settle_threads(job, group, read_recorded(group, chosen).threads);
  loaded.data = open_data(group, job, job.data.eval);
  const std::vector<Field> fields = fed_fields(job, *loaded.data);
  loaded.model = open_model(group, job, loaded.device, fields, 1);
  auto arenas = state_arenas(*loaded.model, nullptr);
  loaded.manifest = *load_checkpoint(group, chosen, arenas, {}, false);
  return loaded;
}

}  // namespace trireme::train
