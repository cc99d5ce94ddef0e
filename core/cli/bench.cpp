// `trireme bench`: where the time of a job's steps goes.
#include "core/train/bench.h"

#include <memory>

#include "core/cli/cli.h"
#include "core/cli/job_arguments.h"

namespace trireme::cli {

void add_bench(Command program) {
  Command bench = program.add("bench", "Measure where time goes");
  bench.footer("Example:\n  trireme bench step job.toml");
  Command command = bench.add("step", "Take training steps apart, each op beside its floor");
  command.footer(
      "Trains on the job's data without run directory or checkpoint. The floor is what the processor needs for the "
      "same\n"
      "arithmetic alone: oneDNN's own primitive at the same shape; for other ops a copy of as many bytes.\n"
      "Examples:\n"
      "  trireme bench step job.toml\n"
      "  trireme launch -n 2 bench step job.toml --set train.threads=1 --json");
  const auto arguments = std::make_shared<JobArguments>();
  add_job_options(command, "bench", *arguments);
  command.does([arguments] { return train::bench_step(arguments->job(), arguments->bench, arguments->json); });
}

}  // namespace trireme::cli
