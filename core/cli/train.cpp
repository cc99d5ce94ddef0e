// `trireme train`: one rank of a training run, or all of it.
#include <memory>

#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/cli/cli.h"
#include "core/cli/job_arguments.h"
#include "core/train/run.h"

namespace trireme::cli {

void add_train(Command program) {
  Command command = program.add("train", "Train the model of a job");
  command.footer(
      "Examples:\n"
      "  trireme train job.toml                                one rank\n"
      "  trireme launch -n 2 train job.toml                    two ranks, signals forwarded\n"
      "  mpirun -n 2 trireme train job.toml --set train.epochs=1\n"
      "Exit codes: 0 done, 64 usage, 65 bad data or checkpoint, 70 plugin or internal, 71 lost peer or hang (start "
      "again),\n72 diverged, 74 I/O, 75 stopped early and resumable.");
  const auto arguments = std::make_shared<JobArguments>();
  add_job_options(command, "train", *arguments);
  command.does([arguments] {
    if (arguments->help_keys) {
      log::info("{}", arguments->markdown ? reference_page() : help_keys());
      return static_cast<int>(ExitCode::done);
    }
    return train::train(arguments->job(), arguments->resumption());
  });
}

}  // namespace trireme::cli
