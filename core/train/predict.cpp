// `trireme predict`: a checkpoint's outputs on the evaluation data, one HDF5 dataset for each output. Ranks take turns
// writing, so the file is the same for every number of ranks.
#include <fcntl.h>

#include <algorithm>
#include <system_error>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/train/alike.h"
#include "core/train/resume.h"
#include "core/train/run.h"
#include "core/train/session.h"
#include "core/train/step.h"
#include "io/hdf5/hdf5.h"

namespace trireme::train {

namespace {

// Rows of one output of one rank, dense.
struct Rows {
  std::string name;
  Shape sample;
  Dtype dtype = Dtype::f32;
  std::vector<std::byte> bytes;
};

// Samples [first, first + rows) of this rank: whole batches of `rows`, cut alike for every number of ranks, since a
// product's bits may depend on its batch; neighbouring shares, so that the file is written front to back.
io::MicroBatch share_of(std::int64_t samples, std::int64_t rows, int rank, int size) {
  const std::int64_t batches = (samples + rows - 1) / rows;
  // Rounded up: where there are fewer batches than ranks, rank 0, which makes the datasets, has one.
  const auto begin_of = [&](std::int64_t piece) {
    return std::min(samples, (batches * piece + size - 1) / size * rows);
  };
  const std::int64_t begin = begin_of(rank), end = begin_of(rank + 1);
  return {static_cast<std::uint64_t>(begin), end - begin};
}

std::vector<Rows> predict_share(const Job& job, LoadedModel& loaded, const io::MicroBatch& share, std::int64_t rows) {
  const io::Sequence sequence = [share, rows](std::uint64_t k) -> std::optional<io::MicroBatch> {
    const std::int64_t done = static_cast<std::int64_t>(k) * rows;
    if (done >= share.rows) return std::nullopt;
    return io::MicroBatch{share.first + static_cast<std::uint64_t>(done), std::min(rows, share.rows - done)};
  };
  const auto feed = open_feed(job, loaded.data, {false, rows}, sequence, loaded.device.device);
  device::Stream compute = loaded.device.device->compute_stream();
  device::StepBlockRing block(loaded.device.device);
  std::vector<tensor::Tensor> fields;
  std::vector<Rows> results;
  // Number of the batch among those of all ranks: what random numbers go by.
  auto number = static_cast<std::uint32_t>(share.first / static_cast<std::uint64_t>(rows));
  while (const auto batch = feed->next(compute)) {
    view_fields(*batch, fields);
    block.stage(loaded.manifest.scalars.step, static_cast<std::uint64_t>(job.train.seed), number++, 0, compute);
    loaded.model->predict(fields, block.on_device(), compute);
    const auto outputs = loaded.model->outputs();
    if (results.empty())
      for (const plugin::Output& output : outputs) {
        const tensor::Tensor& value = loaded.model->value(output.value);
        results.push_back({output.name, value.shape.without_first(), value.dtype, {}});
      }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const tensor::Tensor& value = loaded.model->value(outputs[i].value);
      if (value.shape[0] != batch->at.rows)
        fail(ExitCode::internal,
             "predict: output '{}' has shape {} for {} samples; the first extent must be the samples", outputs[i].name,
             value.shape.text(), batch->at.rows);
      std::vector<std::byte>& bytes = results[i].bytes;
      bytes.resize(bytes.size() + value.bytes());
      compute.copy(std::span(bytes).last(value.bytes()), {static_cast<const std::byte*>(value.data), value.bytes()});
    }
    compute.synchronize();
    loaded.device.device->throw_fault();
    feed->release(*batch, compute);
    loaded.model->reset();
  }
  return results;
}

// Known before anything is computed: the output is new, and its folder can be written.
void check_place(const std::filesystem::path& output, const std::filesystem::path& partial) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(output, error)))
    fail(ExitCode::usage, "predict: {} is there already; name another --output", output.string());
  if (error && error != std::errc::no_such_file_or_directory)
    fail_errno(error.value(), fmt::format("predict: {}: cannot be looked at", output.string()));
  if (!std::filesystem::is_directory(output.parent_path(), error))
    fail(ExitCode::usage, "predict: {}: its folder is not there; make it, or name another --output", output.string());
  File(partial, O_WRONLY | O_CREAT | O_TRUNC).close();  // what a killed one left is written over
  std::filesystem::remove(partial, error);
}

int predict_group(const Job& job, const std::filesystem::path& wanted, const std::filesystem::path& output,
                  comm::Group& group) {
  if (job.data.eval.empty()) throw AlikeError(ExitCode::usage, "predict: the job has no [data] eval to predict on");
  const std::filesystem::path partial = output.string() + ".part";
  (void)on_rank_0(group, [&]() -> std::string {
    check_place(output, partial);
    return "";
  });
  LoadedModel loaded = load_for_use(group, job, wanted);
  const std::int64_t samples = loaded.data->samples();
  const std::int64_t batch = std::min(job.train.batch, samples);
  const io::MicroBatch share = share_of(samples, batch, group.rank(), group.size());
  std::vector<Rows> results;
  on_all_ranks(group, [&] { results = predict_share(job, loaded, share, batch); });
  for (int turn = 0; turn < group.size(); ++turn) {
    on_all_ranks(group, [&] {
      if (turn != group.rank()) return;
      if (turn == 0) {
        const auto file = io::Hdf5File::create(partial);
        for (const Rows& part : results)
          file->create_dataset("/" + part.name, part.sample.batched(samples), part.dtype, {});
        for (const Rows& part : results) file->write("/" + part.name, 0, share.rows, part.dtype, part.bytes);
        file->close();
        return;
      }
      const auto file = io::Hdf5File::append(partial);
      for (const Rows& part : results)
        if (share.rows > 0)
          file->write("/" + part.name, static_cast<std::int64_t>(share.first), share.rows, part.dtype, part.bytes);
      file->close();
    });
  }
  (void)on_rank_0(group, [&]() -> std::string {
    File file(partial, O_RDONLY);
    file.sync();
    file.close();
    durable_rename(partial, output);
    log::info("{}: {} samples, {} output(s)", output.string(), samples, results.size());
    return "";
  });
  return 0;
}

}  // namespace

int predict(const Job& job, const std::filesystem::path& checkpoint, const std::filesystem::path& output) {
  return run_group(
      job, [&](comm::Group& group, const Parting&) { return predict_group(job, checkpoint, output, group); },
      [](ExitCode, const std::string&) {});
}

}  // namespace trireme::train
