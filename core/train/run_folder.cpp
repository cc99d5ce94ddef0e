// Taking, marking and leaving a run directory.
#include "core/train/run_folder.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/version.h"
#include "core/train/alike.h"
#include "io/checkpoint/loader.h"

namespace trireme::train {

namespace {

// Unique for a start: time and 64 random bits.
std::string new_attempt() {
  std::random_device source;
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return fmt::format("{:x}-{:08x}{:08x}", seconds, source(), source());
}

}  // namespace

RunFolder::RunFolder(comm::Group& group, const Job& job) : path_(job.run.dir), owner_(group.rank() == 0) {
  attempt_ = on_rank_0(group, [&] {
    const std::string attempt = new_attempt();
    try {
      make_folders(checkpoints());
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("run directory {}; choose another with --run-dir", error.what()));
    }
    lease_ = std::make_unique<io::Lease>(path_, attempt);
    io::sweep(checkpoints());
    make_folders(path_ / "logs");
    io::write_token(path_, attempt);
    return attempt;
  });
  on_all_ranks(group, [&] { io::check_token(path_, attempt_, group.rank()); });
  on_all_ranks(group, [&] {
    log::open(group.rank(), group.size(), path_ / "logs" / fmt::format("rank-{:05d}.log", group.rank()));
  });
  summary_ = std::make_unique<io::Summary>(path_ / "summary.json");
  summary_->set("result", std::string("running"));
  summary_->set("attempt", attempt_);
  if (const char* const launch = std::getenv("TRIREME_LAUNCH")) summary_->set("launch", launch);
  summary_->set("ranks", static_cast<std::int64_t>(group.size()));
  summary_->set("trireme", std::string(version()));
}

void RunFolder::begin(comm::Group& group, const Job& job) {
  (void)on_rank_0(group, [&]() -> std::string {
    check_owner();
    replace_file(path_ / "job.toml", to_toml(job));
    summary_->write();
    return "";
  });
  begun_ = true;
}

std::string RunFolder::last_result() const {
  try {
    const auto values = io::Summary::read(path_ / "summary.json");
    const auto found = values.find("result");
    return found == values.end() ? "" : found->second;
  } catch (const Error&) {  // none, or none that can be read
    return "";
  }
}

void RunFolder::check_owner() const {
  if (lease_) lease_->check();
}

void RunFolder::close(const std::string& result, int code, const std::string& first_cause) {
  if (!owner_ || !summary_) return;
  try {
    check_owner();
  } catch (const Error&) {  // the summary is another run's by now
    return;
  }
  if (!begun_ && std::filesystem::exists(path_ / "summary.json")) return;
  summary_->set("result", result);
  summary_->set("exit_code", static_cast<std::int64_t>(code));
  if (!first_cause.empty()) summary_->set("first_cause", first_cause);
  summary_->write();
}

}  // namespace trireme::train
