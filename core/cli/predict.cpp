// `trireme predict`: the model's outputs for the evaluation data of a job, as HDF5.
#include <filesystem>
#include <memory>

#include "core/cli/cli.h"
#include "core/cli/job_arguments.h"
#include "core/train/run.h"

namespace trireme::cli {

void add_predict(Command program) {
  Command command = program.add("predict", "Write a model's outputs for [data] eval of a job");
  command.footer(
      "Examples:\n"
      "  trireme predict runs/quickstart/job.toml --output logits.h5\n"
      "  trireme predict job.toml --set 'data.eval=[\"new/*.h5\"]' --output new-logits.h5");
  const auto arguments = std::make_shared<JobArguments>();
  add_job_options(command, "predict", *arguments);
  command.does([arguments] {
    const Job job = arguments->job();
    const std::filesystem::path output =
        arguments->output.empty() ? job.run.dir / "predictions.h5" : std::filesystem::absolute(arguments->output);
    return train::predict(job, arguments->checkpoint, output);
  });
}

}  // namespace trireme::cli
