// Opening what a run needs.
#include "core/train/session.h"

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "core/backend/cpu/cpu.h"
#include "core/backend/cuda/cuda.h"
#include "core/base/log.h"
#include "core/base/threads.h"
#include "core/base/version.h"
#include "core/comm/bootstrap.h"
#include "core/comm/nccl/make_group.h"
#include "core/device/module.h"
#include "core/train/alike.h"

namespace trireme::train {

namespace {

DeviceChoice the_cpu(const Job& job) {
  if (job.precision != "fp32")
    throw AlikeError(
        ExitCode::usage,
        fmt::format("precision = \"{}\" is a format of CUDA devices, and this run is on the CPU; set precision = "
                    "\"fp32\", or device = \"cuda\" to see why there is none",
                    job.precision));
  auto device = device::make_cpu();
  return {device, &backend::cpu_backend(), device->name() + ", " + backend::cpu_description()};
}

DeviceChoice the_cuda(const Job& job, const comm::Group& group) {
  auto device = device::make_cuda(group.local_rank());
  const auto backend = reinterpret_cast<backend::GetCudaBackend>(device::cuda_symbol(backend::cuda_backend_symbol));
  const auto words = reinterpret_cast<backend::DescribeCuda>(device::cuda_symbol(backend::cuda_description_symbol));
  return {device, backend(job.precision == "tf32"), device->name() + ", " + words()};
}

}  // namespace

DeviceChoice choose_device(const Job& job, comm::Group& group) {
  if (job.device == "cpu") return the_cpu(job);
  DeviceChoice cuda;
  if (job.device == "cuda") {
    on_all_ranks(group, [&] { cuda = the_cuda(job, group); });
    return cuda;
  }
  std::string why;
  try {
    cuda = the_cuda(job, group);
  } catch (const Error& error) {
    why = error.what();
    log::debug("device = \"auto\": {}", why);
  }
  const std::vector<std::string> all = group.all_gather_now(why);
  const auto without = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  if (without == all.end()) return cuda;
  if (group.rank() == 0 && std::any_of(all.begin(), all.end(), [](const std::string& text) { return text.empty(); }))
    log::info("device = \"auto\": rank {} has no CUDA device, so all ranks take the CPU: {}", without - all.begin(),
              *without);
  return the_cpu(job);
}

std::int64_t settle_threads(const Job& job, const comm::Group& group, std::int64_t recorded) {
  std::int64_t threads = job.train.threads;
  if (threads == 0) threads = recorded;
  if (threads == 0) threads = std::max(1, usable_cores() / group.local_size());
  set_compute_threads(static_cast<int>(threads));
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

std::unique_ptr<plugin::Model> open_model(comm::Group& group, const Job& job, DeviceChoice& device,
                                          std::span<const Field> fields, std::int64_t rows) {
  std::unique_ptr<plugin::Model> model;
  std::string missing;
  const auto open = [&] {
    auto library = plugin::Library::load(job.plugin, job.plugin_trust);
    model = std::make_unique<plugin::Model>(std::move(library), *device.backend, device.device, job.model, fields,
                                            static_cast<std::uint64_t>(job.train.seed));
    try {
      model->shape_pass(rows);
    } catch (const Error&) {
      missing = model->tape().missing_op();
      if (missing.empty() || device.device->kind() == device::Kind::cpu) throw;
    }
  };
  on_all_ranks(group, open);  // one plugin for all: all ranks miss the same op
  if (!missing.empty()) {
    const std::string lacks =
        fmt::format("{} was found, but the CUDA backend lacks op '{}' of this model", device.device->name(), missing);
    if (job.device == "cuda")
      throw AlikeError(ExitCode::usage, fmt::format("device = \"cuda\": {}; set device = \"cpu\" or \"auto\"", lacks));
    if (group.rank() == 0) log::info("device: {}: training on the CPU", lacks);
    model.reset();
    device = the_cpu(job);
    on_all_ranks(group, open);
  }
  if (device.device->kind() == device::Kind::cuda) {
    const auto make = reinterpret_cast<comm::MakeGroup>(device::cuda_symbol(comm::make_group_symbol));
    group = comm::Group(make(group.impl(), device.device));
  }
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

void Parting::note(ExitCode code, const std::string& text) const {
  if (group_.rank() != 0) return;
  try {
    on_error_(code, text);
  } catch (const std::exception& error) {
    log::error("while writing the summary: {}", error.what());
  }
}

void Parting::leave(const std::exception_ptr& error) const {
  const Error known = as_error(error);
  const ExitCode code = known.code();
  const std::string text = known.what();
  log::error("{}", text);
  note(code, text);
  log::flush();
  group_.abort(static_cast<int>(code), text);  // tells all ranks; does not return to a run that goes on
  std::_Exit(static_cast<int>(code));
}

int run_group(const Job& job, const std::function<int(comm::Group&, const Parting&)>& body,
              const Parting::OnError& on_error) {
  comm::Options options;
  options.watchdog_s = job.train.watchdog_s;
  comm::Group group = comm::connect(options);
  log::set_rank(group.rank(), group.size());
  const Parting parting(group, on_error);
  int code = 0;
  try {
    code = parting.guard([&] { return body(group, parting); });
  } catch (const AlikeError& error) {
    if (group.rank() == 0) log::error("{}", error.what());
    parting.note(error.code(), error.what());
    code = static_cast<int>(error.code());
  }
  log::flush();
  if (!group.finish()) std::_Exit(code);
  return code;
}

}  // namespace trireme::train
