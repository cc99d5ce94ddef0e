// Starts runs by `trireme launch` or mpirun and reads what they left.
#include "tests/jobs/run_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace trireme::tests {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;
using Clock = std::chrono::steady_clock;

// More ranks than cores, as root, on a machine that may have no network: for mpirun under either parent.
Environment mpi_environment() {
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},       {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"OMPI_MCA_mpi_yield_when_idle", "1"}, {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
          {"OMPI_MCA_btl", "self,vader,tcp"},    {"OMPI_MCA_btl_tcp_if_include", "lo"},
          {"OMPI_MCA_oob_tcp_if_include", "lo"}, {"OMPI_MCA_plm", "isolated"},
          {"OMP_WAIT_POLICY", "passive"}};
}

void append(std::vector<std::string>& to, const std::vector<std::string>& words) {
  to.insert(to.end(), words.begin(), words.end());
}

std::vector<std::string> rank_words(const TestJob& job) {
  std::vector<std::string> words{job.command, (job.folder / "job.toml").string(), "--run-dir",
                                 (job.folder / "run").string()};
  for (const std::string& set : job.sets) append(words, {"--set", set});
  append(words, job.arguments);
  return words;
}

std::vector<std::string> words_of(int ranks, const TestJob& job, const Faults& faults) {
  std::vector<std::string> words;
  if (!faults.by_mpirun) {
    words = {program(), "launch", "-n", std::to_string(ranks)};
    append(words, rank_words(job));
    return words;
  }
  words = {"mpirun", "--oversubscribe", "--bind-to", "none"};
  append(words, faults.mpirun_arguments);
  if (faults.each.empty()) {
    append(words, {"-n", std::to_string(ranks), program()});
    append(words, rank_words(job));
  }
  for (const Faults::Rank& rank : faults.each) {  // mpirun -n 1 A : -n 1 B
    if (&rank != &faults.each.front()) words.push_back(":");
    append(words, {"-n", "1", "env"});
    append(words, rank.environment);
    words.push_back(program());
    append(words, rank_words(job));
    append(words, rank.arguments);
  }
  return words;
}

// stdout of `trireme inspect`, whose stderr would not be JSON: where there is a checkpoint there is no message.
std::optional<nlohmann::json> inspection(const std::filesystem::path& what) {
  const Finished finished = run_trireme({"inspect", what.string(), "--json"});
  if (finished.exit_code != 0) return std::nullopt;
  return nlohmann::json::parse(finished.output);
}

bool has_checkpoint(const std::filesystem::path& run) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints", none)) {
    if (entry.path().filename().string().rfind("step-", 0) == 0) return true;
  }
  return false;
}

std::string newest(const std::filesystem::path& run) {
  std::string name;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints")) {
    const std::string one = entry.path().filename().string();
    if (one.rfind("step-", 0) == 0 && one > name) name = one;
  }
  return name;
}

}  // namespace

std::string program() { return TRIREME_PROGRAM; }

Finished run_trireme(const std::vector<std::string>& words, const Environment& environment, const std::string& folder) {
  ProcessOptions options;
  options.command = {program()};
  append(options.command, words);
  options.environment = environment;
  options.folder = folder;
  return run_process(options);
}

std::string state_of(const std::filesystem::path& checkpoint_or_run) {
  const auto json = inspection(checkpoint_or_run);
  if (!json) throw std::runtime_error("trireme inspect " + checkpoint_or_run.string() + " failed");
  return json->at("state_sha256").get<std::string>();
}

std::string read_text(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

JobResult run_job(int ranks, const TestJob& job, const Faults& faults) {
  std::filesystem::create_directories(job.folder);
  std::ofstream(job.folder / "job.toml") << job.toml;

  ProcessOptions options;
  options.command = words_of(ranks, job, faults);
  options.environment = mpi_environment();
  options.environment.insert(options.environment.end(), faults.environment.begin(), faults.environment.end());
  if (!faults.inject.empty()) options.environment.emplace_back("TRIREME_FAULT", faults.inject);
  options.timeout_s = faults.timeout_s;
  const Clock::time_point start = Clock::now();
  std::optional<double> fault_at;
  std::vector<Faults::Signal> pending = faults.signals;
  options.on_line = [&](const std::string& line, pid_t pid) {
    const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    if (!fault_at && line.rfind("fault: ", 0) == 0) fault_at = now();
    for (auto signal = pending.begin(); signal != pending.end();) {
      if (line.find(signal->on_line) == std::string::npos) {
        ++signal;
        continue;
      }
      ::kill(pid, signal->number);
      if (!fault_at) fault_at = now();
      signal = pending.erase(signal);
    }
  };
  const Finished finished = run_process(options);

  JobResult result;
  result.exit_code = finished.exit_code;
  result.output = finished.output;
  result.run_directory = job.folder / "run";
  result.seconds = finished.seconds;
  result.gone_after_fault_s = finished.gone_after_s - fault_at.value_or(finished.gone_after_s);
  result.timed_out = finished.timed_out;
  result.left_behind = finished.left_behind;
  if (has_checkpoint(result.run_directory)) {
    result.state_sha256 = state_of(result.run_directory);
    result.checkpoint = newest(result.run_directory);
  }
  return result;
}

TestFolder::TestFolder(const std::string& name)
    : path_(std::filesystem::path(testing::TempDir()) / ("trireme-" + name + "-" + std::to_string(::getpid()))) {
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  if (std::getenv("TRIREME_KEEP") == nullptr) std::filesystem::remove_all(path_, ignored);
}

}  // namespace trireme::tests
