// Options of train, eval, predict and bench step, and the job that they name.
#include "core/cli/job_arguments.h"

#include <filesystem>

#include "core/base/error.h"

namespace trireme::cli {

bool is_rank_command(std::string_view word) {
  return word == "train" || word == "eval" || word == "predict" || word == "bench";
}

void add_job_options(Command command, std::string_view name, JobArguments& into) {
  command.text("job", into.file, "job file in TOML", {.type = "JOB"});
  command.texts("--set", into.sets, "set a key of the job file, as --set train.epochs=1; may be repeated",
                {.type = "KEY=VALUE"});
  command.text("--run-dir", into.run_directory, "run directory, instead of run.dir of the job", {.type = "DIR"});
  if (name == "train") {
    command.text(
        "--resume", into.resume,
        "auto: go on from the newest sound checkpoint, if there is one; never: refuse a run directory that has "
        "checkpoints; must: refuse one that has none; or a checkpoint",
        {.type = "auto|never|must|PATH", .shown_default = "auto"});
    command.flag("--help-keys", into.help_keys, "list every key of a job file and exit");
    command.flag("--markdown", into.markdown, "with --help-keys: as the page share/jobs/keys.md");
  } else if (name == "bench") {
    command.integer("--steps", into.bench.steps, 1, 1'000'000, "steps to measure");
    command.integer("--warm-up", into.bench.warm_up, 1, 1'000'000, "steps before them");
    command.flag("--json", into.json, "print one JSON document, in seconds");
  } else {
    command.text("--checkpoint", into.checkpoint, "checkpoint (default: the best, else the newest of the run)",
                 {.type = "PATH"});
  }
  if (name == "eval") command.flag("--json", into.json, "print one JSON document");
  if (name == "predict") {
    command.text("--output", into.output, "HDF5 file to write, one dataset for each output of the model",
                 {.type = "FILE", .shown_default = "RUN_DIR/predictions.h5"});
  }
}

Job JobArguments::job() const {
  if (file.empty()) fail(ExitCode::usage, "no job file given; as in: trireme train job.toml");
  Job job = read_job(file, sets);
  if (!run_directory.empty()) job.run.dir = std::filesystem::absolute(run_directory).lexically_normal();
  return job;
}

train::Resume JobArguments::resumption() const {
  using Kind = train::Resume::Kind;
  if (resume == "auto") return {Kind::automatic, {}};
  if (resume == "never") return {Kind::never, {}};
  if (resume == "must") return {Kind::must, {}};
  if (!std::filesystem::exists(resume)) {
    fail(ExitCode::usage, "--resume {}: neither auto, never or must, nor a checkpoint that exists{}", resume,
         suggestion(resume, {"auto", "never", "must"}));
  }
  return {Kind::path, std::filesystem::absolute(resume).lexically_normal()};
}

}  // namespace trireme::cli
