// Chooses srun, mpirun or the program itself; forwards requests; decides the exit code by summary.json.
#include "core/launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/threads.h"
#include "core/launch/child.h"
#include "core/launch/console.h"
#include "core/launch/outcome.h"
#include "core/launch/slurm.h"

namespace trireme::launch {
namespace {

using Clock = std::chrono::steady_clock;
using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr const char* launch_variable = "TRIREME_LAUNCH";  // for the ranks: who started them, kept in summary.json

// Of no other launcher, on this host or another.
std::string new_launch() {
  std::random_device source;
  return fmt::format("{}-{:08x}{:08x}", ::getpid(), source(), source());
}

struct Plan {
  std::vector<std::string> command;
  Environment environment;
  std::optional<Allocation> allocation;  // where srun starts the ranks
  bool direct = false;                   // one rank, started without either
};

void add(std::vector<std::string>& to, std::initializer_list<std::string> words) {
  to.insert(to.end(), words.begin(), words.end());
}

// Words that a site or a user adds to the starter's command line.
void add_from(std::vector<std::string>& to, const char* variable) {
  const char* const text = std::getenv(variable);
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; words >> word;) to.push_back(word);
}

void plan_srun(Plan& plan, const Allocation& allocation, int ranks) {
  add(plan.command, {"srun", "--mpi=pmix", "-n", std::to_string(ranks), "--kill-on-bad-exit=1"});
  if (allocation.cpus_per_task > 0) {  // srun of 22.05 ignores SLURM_CPUS_PER_TASK
    plan.command.push_back(fmt::format("--cpus-per-task={}", allocation.cpus_per_task));
  }
  add_from(plan.command, "TRIREME_SRUN_OPTIONS");
  plan.allocation = allocation;
}

void plan_mpirun(Plan& plan, int ranks) {
  if (find_program("mpirun").empty()) {
    fail(ExitCode::usage,
         "launch: no mpirun on PATH for {} ranks; install Open MPI (Debian: openmpi-bin) or load its module, or leave "
         "out -n to run on one rank",
         ranks);
  }
  // How many ranks is the caller's word: Open MPI counts cores (without hyper-threads) or the slots of an allocation.
  add(plan.command, {"mpirun", "-n", std::to_string(ranks), "--bind-to", "none", "--oversubscribe"});
  if (ranks > usable_cores()) plan.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
  if (::geteuid() == 0) {
    plan.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    plan.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  // On other hosts (of a PBS or LSF allocation) ranks see only what is named.
  for (const char* name : {"LD_LIBRARY_PATH", "TRIREME_PLUGIN_PATH", "HDF5_PLUGIN_PATH", "HDF5_USE_FILE_LOCKING"}) {
    if (std::getenv(name) != nullptr) add(plan.command, {"-x", name});
  }
  add_from(plan.command, "TRIREME_MPIRUN_OPTIONS");
  // Without a remote shell mpirun refuses to start even on its own host.
  if (find_program("ssh").empty() && find_program("rsh").empty() && std::getenv("OMPI_MCA_plm") == nullptr &&
      std::getenv("PBS_JOBID") == nullptr && std::getenv("LSB_JOBID") == nullptr) {
    plan.environment.emplace_back("OMPI_MCA_plm", "isolated");
  }
}

Plan plan(const LaunchOptions& options) {
  Plan plan;
  const std::optional<Allocation> allocation = slurm_allocation();
  const int ranks = options.ranks > 0 ? options.ranks : allocation ? allocation->tasks : 1;
  if (allocation && ranks <= allocation->tasks && !find_program("srun").empty()) {
    plan_srun(plan, *allocation, ranks);
  } else if (ranks > 1) {
    plan_mpirun(plan, ranks);
  } else {
    plan.direct = true;
  }
  plan.command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
  // mpirun gives ranks a terminal of its own making, whatever the launcher's output is.
  plan.environment.emplace_back("TRIREME_TERMINAL", ::isatty(STDOUT_FILENO) == 1 ? "1" : "0");
  return plan;
}

// Turns what reaches the launcher into what the ranks should get. The first request: USR1, ranks save and stop. Slurm
// and shells often send a signal twice, so only one a second later counts as the second: TERM to mpirun or srun, which
// end their ranks; a rank without them takes TERM for one more request, so it is killed.
class Requests {
 public:
  Requests(Child& child, bool direct) : child_(child), direct_(direct) {}
  void operator()(int number) {
    const Clock::time_point now = Clock::now();
    if (count_ > 0 && (number == SIGUSR1 || now - last_ < std::chrono::seconds(1))) return;
    last_ = now;
    ++count_;
    if (count_ == 1) {
      log::warn("{} received: the ranks save and stop; send TERM or INT again to end them unsaved", name_of(number));
      child_.signal(SIGUSR1);
    } else if (count_ == 2) {
      log::warn("{} received again: ending the ranks unsaved", name_of(number));
      child_.signal(direct_ ? SIGKILL : SIGTERM);
    } else {
      child_.signal_all(SIGKILL);
    }
  }

 private:
  static const char* name_of(int number) {
    switch (number) {
      case SIGTERM: return "TERM";
      case SIGINT: return "INT";
      case SIGHUP: return "HUP";
      default: return "USR1";
    }
  }
  Child& child_;
  bool direct_;
  int count_ = 0;
  Clock::time_point last_{};
};

bool is_ours(int code) {
  constexpr int codes[] = {0, 64, 65, 70, 71, 72, 74, 75};
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

struct End {
  int code = 0;
  std::string cause;
};

// `before`: the summary that lay there at the start; `launch`: what ours would name.
End decide(const std::filesystem::path& run_directory, const std::optional<Outcome>& before, const std::string& launch,
           int child_code, std::string cause) {
  const int code = is_ours(child_code) ? child_code : static_cast<int>(ExitCode::lost_peer);
  if (run_directory.empty()) return {code, std::move(cause)};
  const std::optional<Outcome> after = read_outcome(run_directory);
  // Refused, idle, or ended before it began to write: what lies there is another run's, which may live and is left
  // alone.
  const bool older = after && before && before->attempt == after->attempt;
  const bool anothers = after && !after->launch.empty() && after->launch != launch;
  if (!after || older || anothers) return {code, std::move(cause)};
  if (!after->first_cause.empty()) cause = after->first_cause;
  if (after->result != "running" && after->exit_code) return {*after->exit_code, std::move(cause)};
  const int died = code == 0 ? static_cast<int>(ExitCode::lost_peer) : code;
  if (cause.empty()) cause = fmt::format("the ranks ended with code {} and without a word", child_code);
  try {
    complete_outcome(run_directory, died, cause);
  } catch (const Error& error) {  // a full disk, say, which may be the cause itself
    log::warn("the summary stays as it is: {}", error.what());
  }
  return {died, std::move(cause)};
}

}  // namespace

std::vector<std::string> command(const LaunchOptions& options) { return plan(options).command; }

int launch(const LaunchOptions& options) {
  Plan chosen = plan(options);
  if (chosen.allocation && std::getenv("TRIREME_DEADLINE") == nullptr) {
    if (const auto deadline = slurm_deadline(*chosen.allocation)) {
      chosen.environment.emplace_back("TRIREME_DEADLINE", fmt::format("{:.0f}", *deadline));
    }
  }
  const std::string id = new_launch();
  chosen.environment.emplace_back(launch_variable, id);
  if (chosen.command.front() == "mpirun") chosen.command.insert(chosen.command.begin() + 1, {"-x", launch_variable});
  if (options.verbose) log::info("{}", fmt::join(chosen.command, " "));
  log::flush();
  std::optional<Outcome> before;
  if (!options.run_directory.empty()) before = read_outcome(options.run_directory);

  Console console;
  int child_code = 0;
  {
    Child child(chosen.command, chosen.environment);
    Requests requests(child, chosen.direct);
    child_code =
        child.wait([&](const std::string& line) { console.line(line); }, [&](int number) { requests(number); });
  }
  console.end();
  const End end = decide(options.run_directory, before, id, child_code, console.first_cause());
  const bool failed = end.code != 0 && end.code != static_cast<int>(ExitCode::stopped);
  if (failed && !end.cause.empty()) log::error("exit code {}; first cause: {}", end.code, end.cause);
  return end.code;
}

}  // namespace trireme::launch
