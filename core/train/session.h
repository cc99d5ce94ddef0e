// What every command that runs a model opens first: device, data, model, checked alike on all ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/exit_code.h"
#include "core/base/job.h"
#include "core/comm/group.h"
#include "core/device/device.h"
#include "core/device/step_block.h"
#include "core/plugin/model.h"
#include "io/dataset/dataset.h"
#include "io/feed/feed.h"

namespace trireme::train {

struct DeviceChoice {
  std::shared_ptr<device::Device> device;
  const ops::Backend* backend = nullptr;
  std::string description;  // for logs and summary
};
// device = "auto" | "cpu" | "cuda" of the job; says why "auto" took the CPU.
[[nodiscard]] DeviceChoice choose_device(const Job& job, const comm::Group& group);

// Sets this rank's compute threads: the job's, else `recorded`, else the cores shared by the ranks of this host.
std::int64_t settle_threads(const Job& job, const comm::Group& group, std::int64_t recorded);

// Rank 0 opens the files, the others get its index.
[[nodiscard]] std::shared_ptr<const io::Dataset> open_data(comm::Group& group, const Job& job,
                                                           std::span<const std::filesystem::path> patterns);

// A feed over `dataset` in the order of `sequence`; training shuffles and transforms at random, evaluation does neither.
struct FeedKind {
  bool training = true;
  std::int64_t max_rows = 0;
};
[[nodiscard]] std::unique_ptr<io::Feed> open_feed(const Job& job, std::shared_ptr<const io::Dataset> dataset,
                                                  FeedKind kind, io::Sequence sequence,
                                                  std::shared_ptr<device::Device> device);
// Fields as they reach the model.
[[nodiscard]] std::vector<Field> fed_fields(const Job& job, const io::Dataset& dataset);

// The loaded plugin's model with its micro-batch shape fixed.
[[nodiscard]] std::unique_ptr<plugin::Model> open_model(comm::Group& group, const Job& job, const DeviceChoice& device,
                                                        std::span<const Field> fields, std::int64_t rows);

// What a resume compares and ranks must have alike: keys of the job that change bits, the plugin's name and keys, the data.
[[nodiscard]] std::map<std::string, std::string> run_identity(const Job& job, const plugin::Model& model,
                                                              const io::Dataset& train_data,
                                                              std::uint64_t micro_batches);
// What a resume may change, though it ends the promise of bits: the plugin's bytes, versions, processor, threads.
// `alike`: what of it ranks must have in common.
struct Surroundings {
  std::map<std::string, std::string> all, alike;
};
[[nodiscard]] Surroundings surroundings(const plugin::Model& model, const DeviceChoice& device, std::int64_t threads);

// Connects, runs `body` and ends in order: errors that all ranks meet alike are printed once, others abort all ranks.
// `on_error` runs on rank 0 with the code and the text before the ranks part.
int run_group(const Job& job, const std::function<int(comm::Group&)>& body,
              const std::function<void(ExitCode, const std::string&)>& on_error);

}  // namespace trireme::train
