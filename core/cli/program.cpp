// The program's command line as a whole: parses, runs, and turns every exception into a message and an exit code.
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/base/log.h"
#include "core/base/rank.h"
#include "core/cli/cli.h"

namespace trireme::cli {
namespace {

// Ranks meet the same mistake in the command line or the job file at once: rank 0 tells all of it, the others a line.
void report(const Error& error) {
  std::string text = error.what();
  if (error.code() == ExitCode::usage && launched_as().rank != 0) text = text.substr(0, text.find('\n'));
  log::error("{}", text);
}

int run(const std::vector<std::string>& words) {
  const LaunchedAs as = launched_as();
  log::set_rank(as.rank, as.world_size);
  fault::arm_from_environment();
  Program program("trireme", "Trireme trains C++ and CUDA models as batch jobs over MPI.");
  add_all(program.root());
  if (const std::optional<int> ended = program.parse(words)) return *ended;
  const int code = program.run();
  log::flush();
  return code;
}

}  // namespace

void add_all(Command program) {
  program.footer(
      "Examples:\n"
      "  trireme launch -n 2 train job.toml\n"
      "  trireme train --help-keys\n"
      "'trireme COMMAND --help' has the options and examples of a command.");
  add_launch(program);
  add_train(program);
  add_eval(program);
  add_predict(program);
  add_pack(program);
  add_inspect(program);
  add_plugin(program);
  add_bench(program);
  add_version(program);
}

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `trireme train … | head`: lines are lost, the run goes on
  std::signal(SIGXFSZ, SIG_IGN);  // `ulimit -f`: the write fails, and the error names the file
  try {
    return run({argv + 1, argv + argc});
  } catch (...) {
    const Error error = as_error(std::current_exception());
    report(error);
    return static_cast<int>(error.code());
  }
}

}  // namespace trireme::cli
