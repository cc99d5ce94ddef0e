// lease.json and the life signs of its process.
#include "io/checkpoint/holder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/rank.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t largest_lease = 1 << 16;

std::string text_of_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string boot_text() {
  std::ifstream id("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(id, text);
  std::error_code error;
  return text + " " + fs::read_symlink("/proc/self/ns/pid", error).string();
}

// State letter and start time, fields 3 and 22 of /proc/PID/stat; nothing where the process is gone.
struct Process {
  char state = '?';
  std::uint64_t started = 0;
};
std::optional<Process> process_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Process process;
  std::string skipped;
  fields >> process.state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> process.started;
  if (!fields) return std::nullopt;
  return process;
}

}  // namespace

Holder this_process(const std::string& attempt) {
  static std::atomic<int> count{0};
  Holder holder;
  holder.host = host_name();
  holder.boot = boot_text();
  holder.pid = ::getpid();
  if (const auto process = process_of(holder.pid)) holder.started = process->started;
  holder.slurm_job = text_of_environment("SLURM_JOB_ID");
  holder.slurm_restarts = std::atoll(text_of_environment("SLURM_RESTART_COUNT").c_str());
  holder.attempt = attempt;
  holder.nonce = fmt::format("{}.{}.{}.{}", attempt, holder.pid, holder.started, count++);
  return holder;
}

bool is_dead(const Holder& holder, const Holder& us) {
  if (!holder.slurm_job.empty() && holder.slurm_job == us.slurm_job && holder.slurm_restarts < us.slurm_restarts) {
    return true;
  }
  if (holder.host != us.host || holder.boot != us.boot) return false;
  const auto process = process_of(holder.pid);
  return !process || process->started != holder.started || process->state == 'Z' || process->state == 'X';
}

std::string describe(const Holder& holder) {
  const std::string job = holder.slurm_job.empty() ? "" : fmt::format(" (Slurm job {})", holder.slurm_job);
  return fmt::format("host {}, pid {}{}, attempt {}", holder.host, holder.pid, job, holder.attempt);
}

std::optional<Holder> read_holder(const fs::path& file) {
  std::string text;
  for (int tries = 3; tries > 0; --tries) {  // it may come or go between two looks
    std::error_code error;
    if (!fs::exists(file, error) && !error) return std::nullopt;
    try {
      text = read_file(file, largest_lease);
      break;
    } catch (const Error&) {
      if (tries == 1) throw;
    }
  }
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    return Holder{json.at("host").get<std::string>(),      json.at("boot").get<std::string>(),
                  json.at("pid").get<std::int64_t>(),      json.at("started").get<std::uint64_t>(),
                  json.at("slurm_job").get<std::string>(), json.at("slurm_restarts").get<std::int64_t>(),
                  json.at("attempt").get<std::string>(),   json.at("nonce").get<std::string>(),
                  json.at("renewals").get<std::uint64_t>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void write_holder(const fs::path& file, const Holder& holder) {
  const Json json = {
      {"host", holder.host},       {"boot", holder.boot},           {"pid", holder.pid},
      {"started", holder.started}, {"slurm_job", holder.slurm_job}, {"slurm_restarts", holder.slurm_restarts},
      {"attempt", holder.attempt}, {"nonce", holder.nonce},         {"renewals", holder.renewals}};
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  fs::path temporary = file;
  temporary += ".tmp";
  File out(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  out.write(std::as_bytes(std::span(text)));
  out.close();
  if (std::rename(temporary.c_str(), file.c_str()) != 0) {
    fail_errno(errno, fmt::format("{}: cannot be renamed to {}", temporary.string(), file.string()));
  }
}

}  // namespace trireme::io
