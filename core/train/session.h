// What every command that runs a model opens first: device, data, model, checked alike on all ranks.
#pragma once

#include <cstdint>
#include <exception>
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
#include "core/train/alike.h"
#include "io/dataset/dataset.h"
#include "io/feed/feed.h"

namespace trireme::train {

struct DeviceChoice {
  std::shared_ptr<device::Device> device;
  const ops::Backend* backend = nullptr;
  std::string description;  // for logs and summary
};
// device = "auto" | "cpu" | "cuda" of the job, the same kind on all ranks; says why "auto" took the CPU. Collective.
[[nodiscard]] DeviceChoice choose_device(const Job& job, comm::Group& group);

// Sets this rank's compute threads: the job's, else `recorded`, else the cores shared by the ranks of this host.
std::int64_t settle_threads(const Job& job, const comm::Group& group, std::int64_t recorded);

// Rank 0 opens the files, the others get its index.
[[nodiscard]] std::shared_ptr<const io::Dataset> open_data(comm::Group& group, const Job& job,
                                                           std::span<const std::filesystem::path> patterns);

// A feed over `dataset` in the order of `sequence`; training shuffles and transforms at random, evaluation does
// neither.
struct FeedKind {
  bool training = true;
  std::int64_t max_rows = 0;
};
[[nodiscard]] std::unique_ptr<io::Feed> open_feed(const Job& job, std::shared_ptr<const io::Dataset> dataset,
                                                  FeedKind kind, io::Sequence sequence,
                                                  std::shared_ptr<device::Device> device);
// Fields as they reach the model.
[[nodiscard]] std::vector<Field> fed_fields(const Job& job, const io::Dataset& dataset);

// The loaded plugin's model with its micro-batch shape fixed. Where it needs an op that the CUDA backend lacks, "auto"
// changes `device` to the CPU. Afterwards `group` is one over the device. Collective.
[[nodiscard]] std::unique_ptr<plugin::Model> open_model(comm::Group& group, const Job& job, DeviceChoice& device,
                                                        std::span<const Field> fields, std::int64_t rows);

// What a resume compares and ranks must have alike: keys of the job that change bits, the plugin's name and keys, the
// data.
[[nodiscard]] std::map<std::string, std::string> run_identity(const Job& job, const plugin::Model& model,
                                                              const io::Dataset& train_data,
                                                              std::uint64_t micro_batches);
// What a resume may change, though it ends the promise of bits: the plugin's bytes, versions, processor, threads.
// `alike`: what of it ranks must have in common.
struct Surroundings {
  std::map<std::string, std::string> all, alike;
};
[[nodiscard]] Surroundings surroundings(const plugin::Model& model, const DeviceChoice& device, std::int64_t threads);

// The end of a rank that fails alone. Queued collectives still work on memory that unwinding would free, and
// destructors may wait for minutes, so such an error ends the process where it is caught: logged, told to all ranks,
// _Exit.
class Parting {
 public:
  using OnError = std::function<void(ExitCode, const std::string&)>;
  Parting(comm::Group& group, OnError on_error) : group_(group), on_error_(std::move(on_error)) {}
  // Runs `body`; AlikeErrors pass. Whoever owns what queued work uses stands outside of `body`.
  template <class Body>
  auto guard(const Body& body) const -> decltype(body()) {
    try {
      return body();
    } catch (const AlikeError&) {
      throw;
    } catch (...) {
      leave(std::current_exception());
    }
  }
  void note(ExitCode code, const std::string& text) const;  // on_error, on rank 0

 private:
  [[noreturn]] void leave(const std::exception_ptr& error) const;

  comm::Group& group_;
  OnError on_error_;
};

// Connects, runs `body` and ends in order: errors that all ranks meet alike are printed once, others abort all ranks
// (Parting::guard). `on_error` runs on rank 0 with the code and the text before the ranks part.
int run_group(const Job& job, const std::function<int(comm::Group&, const Parting&)>& body,
              const Parting::OnError& on_error);

}  // namespace trireme::train
