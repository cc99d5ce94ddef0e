// `trireme launch`: checks the ranks' command line and job once, then starts them.
#include <memory>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/rank.h"
#include "core/cli/cli.h"
#include "core/cli/job_arguments.h"
#include "core/launch/launcher.h"

namespace trireme::cli {
namespace {

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`*?[]{}()<>|&;#~!") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

int start(launch::LaunchOptions options, bool dry_run) {
  const std::vector<std::string>& words = options.arguments;
  const std::vector<std::string> known{"train", "eval", "predict", "bench"};
  if (words.empty()) fail(ExitCode::usage, "launch what? As in: trireme launch -n 2 train job.toml");
  if (!is_rank_command(words.front())) {
    fail(ExitCode::usage, "launch starts train, eval, predict or bench, not '{}'{}", words.front(),
         suggestion(words.front(), known));
  }
  if (const LaunchedAs as = launched_as(); as.world_size > 1) {
    fail(ExitCode::usage,
         "launch starts ranks itself, but mpirun or srun has started it {} times; give them 'trireme {}'",
         as.world_size, words.front());
  }
  // The whole program's parser first: its --help has the examples.
  Program whole("trireme", "");
  add_all(whole.root());
  if (const std::optional<int> ended = whole.parse(words)) return *ended;
  JobArguments arguments;
  Program one("trireme", "");
  add_job_options(one.root(), words.front(), arguments);
  const std::ptrdiff_t command_words = words.front() == "bench" ? 2 : 1;  // "bench step"
  if (const std::optional<int> ended = one.parse({words.begin() + command_words, words.end()})) return *ended;
  if (arguments.help_keys) {
    log::info("{}", arguments.markdown ? reference_page() : help_keys());
    return static_cast<int>(ExitCode::done);
  }
  const Job job = arguments.job();
  if (words.front() == "train") {
    (void)arguments.resumption();  // a mistake here is told once, not by every rank
    options.run_directory = job.run.dir;
  }
  if (!dry_run) return launch::launch(options);
  std::string line;
  for (const std::string& word : launch::command(options)) {
    if (!line.empty()) line += ' ';
    line += quoted(word);
  }
  log::info("{}", line);
  return static_cast<int>(ExitCode::done);
}

}  // namespace

void add_launch(Command program) {
  Command command = program.add("launch", "Start the ranks of train, eval, predict or bench by srun or mpirun");
  command.usage("trireme launch [OPTIONS] train|eval|predict|bench step JOB [OPTIONS of that command]");
  command.footer(
      "TRIREME_MPIRUN_OPTIONS and TRIREME_SRUN_OPTIONS add words to the command line of mpirun and srun.\n"
      "TERM, INT and USR1 make the ranks save and stop (exit code 75); a second TERM or INT ends them at once.\n"
      "Examples:\n"
      "  trireme launch -n 2 train job.toml --set train.epochs=1 --resume auto\n"
      "  trireme launch -n 4 --dry-run train job.toml          prints the command\n"
      "  trireme launch train job.toml                         in a Slurm job: all tasks of the allocation");
  struct Arguments {
    std::int64_t ranks = 0;
    bool dry_run = false, verbose = false;
    std::vector<std::string> words;
  };
  const auto given = std::make_shared<Arguments>();
  command.integer("-n,--ranks", given->ranks, 0, 1 << 20,
                  "number of ranks; 0: the tasks of the Slurm allocation, else 1");
  command.flag("--dry-run", given->dry_run, "print the command, start nothing");
  command.flag("-v,--verbose", given->verbose, "print the command, then start it");
  command.rest(given->words);
  command.does([given] {
    return start({static_cast<int>(given->ranks), given->words, {}, given->verbose}, given->dry_run);
  });
}

}  // namespace trireme::cli
