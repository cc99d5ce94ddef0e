// SLURM_* variables; `squeue -o %L` for the time that is left.
#include "core/launch/slurm.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

namespace trireme::launch {
namespace {

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

int variable(const char* name, int fallback) {
  const char* const text = std::getenv(name);
  return static_cast<int>(text == nullptr ? fallback : whole(text).value_or(fallback));
}

}  // namespace

std::optional<Allocation> slurm_allocation() {
  const char* const job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr || *job == '\0') return std::nullopt;
  return Allocation{job, variable("SLURM_NTASKS", variable("SLURM_JOB_NUM_NODES", 1)),
                    variable("SLURM_CPUS_PER_TASK", 0)};
}

std::optional<double> parse_time_left(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::int64_t days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto value = whole(text.substr(0, dash));
    if (!value) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  std::int64_t seconds = 0;
  int parts = 0;
  while (true) {
    const std::size_t colon = text.find(':');
    const auto value = whole(text.substr(0, colon));
    if (!value || ++parts > 3) return std::nullopt;
    seconds = seconds * 60 + *value;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  if (parts < 2) return std::nullopt;  // squeue always prints minutes and seconds
  return static_cast<double>(days * 86400 + seconds);
}

std::optional<double> slurm_deadline(const Allocation& allocation) {
  if (!whole(allocation.job)) return std::nullopt;  // it goes into a command line
  const std::string command = "squeue -h -j " + allocation.job + " -o %L 2>/dev/null";
  const auto close = [](std::FILE* pipe) { ::pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(::popen(command.c_str(), "r"), close);
  if (!pipe) return std::nullopt;
  std::array<char, 64> line{};
  if (std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) == nullptr) return std::nullopt;
  const auto left = parse_time_left(line.data());
  if (!left) return std::nullopt;
  return *left + std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string find_program(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::filesystem::path file = std::filesystem::path(rest.substr(0, colon)) / name;
    if (::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file)) return file.string();
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return "";
}

}  // namespace trireme::launch
