// `trireme eval`: a checkpoint on the evaluation data of a job.
#include <memory>

#include "core/cli/cli.h"
#include "core/cli/job_arguments.h"
#include "core/train/run.h"

namespace trireme::cli {

void add_eval(Command program) {
  Command command = program.add("eval", "Evaluate a checkpoint on [data] eval of a job");
  command.footer(
      "Examples:\n"
      "  trireme eval runs/quickstart/job.toml\n"
      "  trireme launch -n 2 eval job.toml --checkpoint runs/a/checkpoints/step-000000000200 --json");
  const auto arguments = std::make_shared<JobArguments>();
  add_job_options(command, "eval", *arguments);
  command.does([arguments] { return train::evaluate(arguments->job(), arguments->checkpoint, arguments->json); });
}

}  // namespace trireme::cli
