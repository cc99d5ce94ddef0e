// Choosing and loading a checkpoint, by all ranks alike.
#include "core/train/resume.h"

#include <charconv>
#include <system_error>

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

namespace {

const std::string& value_of(const io::Manifest& manifest, const std::string& key) {
  const auto found = manifest.scalars.values.find(key);
  if (found == manifest.scalars.values.end())
    fail(ExitCode::data, "{}: no value '{}'; was it written by another program?", manifest.folder.string(), key);
  return found->second;
}

[[noreturn]] void fail_value(const io::Manifest& manifest, const std::string& key) {
  fail(ExitCode::data, "{}: value '{}' = '{}' is no number; was it written by another program?",
       manifest.folder.string(), key, value_of(manifest, key));
}

}  // namespace

std::uint64_t integer_of(const io::Manifest& manifest, const std::string& key) {
  const std::string& text = value_of(manifest, key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) fail_value(manifest, key);
  return value;
}

double number_of(const io::Manifest& manifest, const std::string& key) {
  const std::string& text = value_of(manifest, key);
  try {
    return io::exact_double(text);
  } catch (const std::exception&) {
    fail_value(manifest, key);
  }
}

device::StepBlock get_block(const io::Manifest& manifest) {
  device::StepBlock block;
  block.updates = integer_of(manifest, "updates");
  block.skips = integer_of(manifest, "skips");
  block.beta1_product = number_of(manifest, "beta1_product");
  block.beta2_product = number_of(manifest, "beta2_product");
  block.loss_scale = static_cast<float>(number_of(manifest, "loss_scale"));
  block.good_steps = static_cast<std::uint32_t>(integer_of(manifest, "good_steps"));
  return block;
}

namespace {

// "4 2 /path": V, threads and folder of a checkpoint.
std::string early_words(const io::Manifest& manifest) {
  std::int64_t threads = 0;  // a note, so it may be missing or anything
  if (const auto note = manifest.scalars.notes.find("threads"); note != manifest.scalars.notes.end())
    std::from_chars(note->second.data(), note->second.data() + note->second.size(), threads);
  return fmt::format("{} {} {}", manifest.scalars.micro_batches, threads, manifest.folder.string());
}

Start parse_early_words(const std::string& text) {
  const std::size_t first = text.find(' '), second = text.find(' ', first + 1);
  return {text.substr(second + 1), std::stoull(text), std::stoll(text.substr(first + 1))};
}

// A run that goes on from an older checkpoint while newer ones lie beside its saves would lose its own to them: they
// are kept as the newest, and the next start goes on from them.
void refuse_newer(const io::Manifest& manifest, const std::filesystem::path& checkpoints) {
  std::string newer;
  std::error_code unknown;
  for (const auto& other : io::list_checkpoints(checkpoints)) {
    const auto step = io::step_of(other);
    if (step < manifest.scalars.step || std::filesystem::equivalent(other, manifest.folder, unknown)) break;
    newer += fmt::format("{}{}", newer.empty() ? "" : ", ", other.filename().string());
  }
  if (newer.empty()) return;
  fail(ExitCode::usage,
       "--resume {}: {} holds newer checkpoints: {}. Go on from there with --resume auto, give another --run-dir, or "
       "move "
       "them away",
       manifest.folder.string(), checkpoints.string(), newer);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

// Rank 0's part of choose_start.
std::string choose(const Resume& resume, const std::filesystem::path& checkpoints) {
  if (resume.kind == Resume::Kind::path) {
    if (!std::filesystem::is_directory(resume.path))
      fail(ExitCode::usage, "--resume {}: no such checkpoint folder", resume.path.string());
    const io::Manifest manifest = io::read_manifest(resume.path);
    refuse_newer(manifest, checkpoints);
    return early_words(manifest);
  }
  const auto found = io::list_checkpoints(checkpoints);
  if (resume.kind == Resume::Kind::never) {
    if (found.empty()) return "";
    fail(ExitCode::usage,
         "--resume never: {} has {} checkpoint(s), the newest {}; choose another --run-dir, or go on with --resume "
         "auto",
         checkpoints.string(), found.size(), found.front().filename().string());
  }
  for (const auto& checkpoint : found) {
    try {
      return early_words(io::read_manifest(checkpoint));
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      log::warn("checkpoint set aside: {}", error.what());
      io::set_aside(checkpoint, error.what());
    }
  }
  if (const auto damaged = io::list_set_aside(checkpoints); !damaged.empty())
    fail(ExitCode::data,
         "all {} checkpoint(s) of {} are damaged (set aside as {}); choose another --run-dir to train anew, or give "
         "--resume never to do so here",
         damaged.size(), checkpoints.string(), joined(damaged));
  if (resume.kind == Resume::Kind::must)
    fail(ExitCode::usage, "--resume must: no checkpoint in {}", checkpoints.string());
  return "";
}

}  // namespace

Start choose_start(comm::Group& group, const Resume& resume, const std::filesystem::path& checkpoints) {
  const std::string chosen = on_rank_0(group, [&] { return choose(resume, checkpoints); });
  return chosen.empty() ? Start{} : parse_early_words(chosen);
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

// Files and MPI work on host memory: the arenas themselves on the CPU, pinned copies of them elsewhere.
class Staging {
 public:
  Staging(const std::shared_ptr<device::Device>& device, std::span<const io::ArenaState> arenas)
      : device_(device), to_(arenas), arenas_(arenas.begin(), arenas.end()) {
    if (device->kind() == device::Kind::cpu) return;
    for (io::ArenaState& arena : arenas_) {
      memory_.emplace_back(device, arena.memory.size());
      arena.memory = memory_.back().span<std::byte>();
    }
  }
  [[nodiscard]] std::span<const io::ArenaState> arenas() const { return arenas_; }
  void deliver() {
    if (memory_.empty()) return;
    device::Stream stream = device_->compute_stream();
    for (std::size_t i = 0; i < to_.size(); ++i) stream.copy(to_[i].memory, arenas_[i].memory);
    stream.synchronize();
  }

 private:
  std::shared_ptr<device::Device> device_;
  std::span<const io::ArenaState> to_;
  std::vector<io::ArenaState> arenas_;
  std::vector<device::PinnedBuffer> memory_;
};

}  // namespace

std::optional<io::Manifest> load_checkpoint(comm::Group& group, const std::shared_ptr<device::Device>& device,
                                            const std::filesystem::path& checkpoint,
                                            std::span<const io::ArenaState> arenas,
                                            const std::map<std::string, std::string>* identity, bool may_set_aside) {
  io::Manifest manifest;
  Staging staging(device, arenas);
  try {
    on_all_ranks(group, [&] {
      manifest = io::read_manifest(checkpoint);
      const auto different =
          identity ? io::differences(manifest, arenas, *identity) : io::tensor_differences(manifest, arenas);
      if (!different.empty()) {
        std::string text = fmt::format("{} is not of this {}:", checkpoint.string(), identity ? "job" : "model");
        for (const std::string& line : different) text += "\n  " + line;
        fail(ExitCode::usage, "{}\n{}", text,
             identity ? "resume with the job it was written by, or start anew in another --run-dir"
                      : "use the plugin and the [model] keys that it was trained with");
      }
      io::load_share(manifest, staging.arenas(), static_cast<std::uint64_t>(group.rank()),
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
  gather(group, staging.arenas());
  staging.deliver();
  return manifest;
}

namespace {

// Rank 0: the wanted checkpoint; else the best of the run, else its newest. Damaged ones are passed over, not set
// aside: the run may not be ours.
io::Manifest choose_for_use(const std::filesystem::path& wanted, const std::filesystem::path& folder) {
  if (!wanted.empty()) {
    if (!std::filesystem::is_directory(wanted)) fail(ExitCode::usage, "{}: no such checkpoint folder", wanted.string());
    return io::read_manifest(wanted);
  }
  std::vector<io::Manifest> sound;
  std::string damage;
  for (const auto& checkpoint : io::list_checkpoints(folder)) {
    try {
      sound.push_back(io::read_manifest(checkpoint));
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      log::warn("checkpoint passed over: {}", error.what());
      damage = error.what();
    }
  }
  if (sound.empty() && !damage.empty()) fail(ExitCode::data, "no sound checkpoint in {}: {}", folder.string(), damage);
  if (sound.empty())
    fail(ExitCode::usage, "no checkpoint in {}: train first, or name one with --checkpoint", folder.string());
  const auto& values = sound.front().scalars.values;
  const auto best = values.find("best_step");
  for (const io::Manifest& manifest : sound)
    if (best != values.end() && best->second != "0" && std::to_string(manifest.scalars.step) == best->second)
      return manifest;
  return sound.front();
}

}  // namespace

LoadedModel load_for_use(comm::Group& group, const Job& job, const std::filesystem::path& wanted) {
  const std::filesystem::path folder = job.run.dir / "checkpoints";
  const Start chosen = parse_early_words(on_rank_0(group, [&] { return early_words(choose_for_use(wanted, folder)); }));
  LoadedModel loaded;
  loaded.device = choose_device(job, group);
  settle_threads(job, group, chosen.threads);
  loaded.data = open_data(group, job, job.data.eval);
  const std::vector<Field> fields = fed_fields(job, *loaded.data);
  loaded.model = open_model(group, job, loaded.device, fields, 1);
  auto arenas = state_arenas(*loaded.model, nullptr);
  loaded.manifest = *load_checkpoint(group, loaded.device.device, chosen.checkpoint, arenas, nullptr, false);
  return loaded;
}

}  // namespace trireme::train
