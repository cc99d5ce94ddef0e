// Opening what a run needs.
#include "core/train/session.h"

#include <algorithm>

#include "core/backend/cpu/cpu.h"
#include "core/base/log.h"
#include "core/base/threads.h"
#include "core/base/version.h"
#include "core/comm/bootstrap.h"
#include "core/train/alike.h"

namespace trireme::train {

DeviceChoice choose_device(const Job& job, const comm::Group& group) {
  const auto cpu = [] {
    auto device = device::make_cpu();
    return DeviceChoice{device, &backend::cpu_backend(), device->name() + ", " + backend::cpu_description()};
  };
  if (job.device == "cpu") return cpu();
  std::shared_ptr<device::Device> cuda;
  try {
    cuda = device::make_cuda(group.local_rank());
  } catch (const Error& error) {
    if (job.device == "cuda") throw;
    log::debug("device = \"auto\": {}", error.what());
    return cpu();
  }
  const std::string lacks = "the CUDA module lacks the ops of this model";
  if (job.device == "cuda")
    fail(ExitCode::usage, "device = \"cuda\": {} was found, but {}; set device = \"cpu\" or \"auto\"", cuda->name(),
         lacks);
  log::info("device: {} was found, but {}: training on the CPU", cuda->name(), lacks);
  return cpu();
}

std::int64_t settle_threads(const Job& job, const comm::Group& group, std::int64_t recorded) {
  std::int64_t threads = job.train.threads;
  if (threads == 0) threads = recorded;
  if (threads == 0) threads = std::max(1, usable_cores() / group.local_size());
  ThreadBudget budget;
  budget.compute = static_cast<int>(threads);
  apply(budget);
  return threads;
}

std::shared_ptr<const io::Dataset> open_data(comm::Group& group, const Job& job,
                                             std::span<const std::filesystem::path> patterns) {
  const std::string text = on_rank_0(group, [&] { return io::Dataset::open(patterns, job.data.fields).text(); });
  return std::make_shared<const io::Dataset>(io::Dataset::from_text(text));
}

std::vector<Field> fed_fields(const Job& job, const io::Dataset& dataset) {
  const io::Transforms transforms(job.data.transform, dataset.fields(), static_cast<std::uint64_t>(job.train.seed),
                                  false);
  return {transforms.fields().begin(), transforms.fields().end()};
}

std::unique_ptr<io::Feed> open_feed(const Job& job, std::shared_ptr<const io::Dataset> dataset, FeedKind kind,
                                    io::Sequence sequence, std::shared_ptr<device::Device> device) {
  const auto seed = static_cast<std::uint64_t>(job.train.seed);
  io::Shuffle shuffle = io::Shuffle::none;
  if (kind.training && job.data.shuffle == "global") shuffle = io::Shuffle::global;
  if (kind.training && job.data.shuffle == "block") shuffle = io::Shuffle::block;
  io::FeedOptions options;
  options.max_rows = kind.max_rows;
  options.memory_bytes = static_cast<std::uint64_t>(job.data.memory_mib) << 20;
  options.classes = job.data.classes;
  options.label = job.data.label;
  io::Sampler sampler(*dataset, seed, shuffle, job.data.window);
  io::Transforms transforms(job.data.transform, dataset->fields(), seed, kind.training);
  auto reader = io::make_hdf5_reader(*dataset);
  return std::make_unique<io::Feed>(std::move(dataset), std::move(reader), std::move(sampler), std::move(transforms),
                                    std::move(sequence), options, std::move(device));
}

std::unique_ptr<plugin::Model> open_model(comm::Group& group, const Job& job, const DeviceChoice& device,
                                          std::span<const Field> fields, std::int64_t rows) {
  std::unique_ptr<plugin::Model> model;
  on_all_ranks(group, [&] {
    auto library = plugin::Library::load(job.plugin, job.plugin_trust);
    model = std::make_unique<plugin::Model>(std::move(library), *device.backend, device.device, job.model, fields,
                                            static_cast<std::uint64_t>(job.train.seed));
    model->shape_pass(rows);
  });
  return model;
}

std::map<std::string, std::string> run_identity(const Job& job, const plugin::Model& model,
                                                const io::Dataset& train_data, std::uint64_t micro_batches) {
  std::map<std::string, std::string> all = identity(job);
  if (job.optimizer.schedule == "constant") {  // then the length of the run changes no bit of a step: it may grow
    all.erase("train.epochs");
    all.erase("train.steps");
  }
  for (const plugin::ModelKey& key : model.keys()) all["model." + key.name] = key.value;
  all["train.micro_batches"] = std::to_string(micro_batches);
  all["plugin.name"] = model.library().name();
  all["data.train"] = train_data.identity();
  return all;
}

Surroundings surroundings(const plugin::Model& model, const DeviceChoice& device, std::int64_t threads) {
  Surroundings found;
  found.alike["plugin.bytes"] = model.library().digest();
  found.alike["plugin.version"] = model.library().version();
  found.alike["trireme.version"] = version();
  found.all = found.alike;
  found.all["device"] = device.description;
  found.all["threads"] = std::to_string(threads);
  return found;
}

int run_group(const Job& job, const std::function<int(comm::Group&)>& body,
              const std::function<void(ExitCode, const std::string&)>& on_error) {
  comm::Options options;
  options.watchdog_s = job.train.watchdog_s;
  comm::Group group = comm::connect(options);
  log::set_rank(group.rank(), group.size());
  const auto note = [&](ExitCode code, const std::string& text) {
    if (group.rank() != 0) return;
    try {
      on_error(code, text);
    } catch (const std::exception& error) {
      log::error("while writing the summary: {}", error.what());
    }
  };
  const auto part = [&](ExitCode code, const std::string& text) {
    log::error("{}", text);
    note(code, text);
    log::flush();
    group.abort(static_cast<int>(code), text);  // tells all ranks; does not return to a run that goes on
    std::_Exit(static_cast<int>(code));
  };
  try {
    const int code = body(group);
    log::flush();
    group.finish();
    return code;
  } catch (const AlikeError& error) {
    if (group.rank() == 0) log::error("{}", error.what());
    note(error.code(), error.what());
    log::flush();
    group.finish();
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    part(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    part(ExitCode::internal, "out of memory on the host: use a smaller batch, model or data.memory_mib");
  } catch (const std::exception& error) {
    part(ExitCode::internal, error.what());
  }
  return static_cast<int>(ExitCode::internal);
}

}  // namespace trireme::train
