// State of a run to and from a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/group.h"
#include "core/device/step_block.h"
#include "core/optim/optimizer.h"
#include "core/plugin/model.h"
#include "core/train/run.h"
#include "core/train/session.h"
#include "io/checkpoint/loader.h"
#include "io/checkpoint/state.h"

namespace trireme::train {

// Best evaluation so far.
struct Best {
  double value = 0;
  std::uint64_t step = 0;  // 0: none
};

// All arenas of a run as a checkpoint names them; `optimizer` may be null (evaluation).
[[nodiscard]] std::vector<io::ArenaState> state_arenas(plugin::Model& model, const optim::Optimizer* optimizer);

// A value of a checkpoint's scalars. Throws Error(data), naming folder and key, where it has none or one that is no
// number.
[[nodiscard]] std::uint64_t integer_of(const io::Manifest& manifest, const std::string& key);
[[nodiscard]] double number_of(const io::Manifest& manifest, const std::string& key);

// The device half of the step block as exact text, and back.
void put_block(const device::StepBlock& block, std::map<std::string, std::string>& values);
[[nodiscard]] device::StepBlock get_block(const io::Manifest& manifest);

// The checkpoint a run starts from and what must be known of it early; an empty path: from the beginning.
struct Start {
  std::filesystem::path checkpoint;
  std::uint64_t micro_batches = 0;  // V; 0: not known
  std::int64_t threads = 0;
};
// Chosen by rank 0 and the same on all ranks; its manifest is sound. Newer ones with damaged manifests are set aside,
// but never what `resume` names. Throws AlikeError(usage) where `resume` forbids what is there, AlikeError(data) where
// all checkpoints of the run are damaged: no run begins anew by itself.
[[nodiscard]] Start choose_start(comm::Group& group, const Resume& resume, const std::filesystem::path& checkpoints);

// Loads it: each rank reads its share and checks it, all get all (on a device that is no CPU by way of pinned memory).
// A checksum fault sets the checkpoint aside where `may_set_aside` and returns none on all ranks, the arenas half
// filled; other faults and differences are AlikeErrors. `identity` null: only the arenas given are compared.
[[nodiscard]] std::optional<io::Manifest> load_checkpoint(
    comm::Group& group, const std::shared_ptr<device::Device>& device, const std::filesystem::path& checkpoint,
    std::span<const io::ArenaState> arenas, const std::map<std::string, std::string>* identity, bool may_set_aside);

// A trained model for evaluation and prediction: the wanted checkpoint of the job's run directory (empty: the best,
// else the newest), with [data] eval opened.
struct LoadedModel {
  DeviceChoice device;
  std::shared_ptr<const io::Dataset> data;
  std::unique_ptr<plugin::Model> model;
  io::Manifest manifest;
};
[[nodiscard]] LoadedModel load_for_use(comm::Group& group, const Job& job, const std::filesystem::path& wanted);

}  // namespace trireme::train
