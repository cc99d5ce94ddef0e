// The lease on a run directory and the token that shows that it is shared.
//
// lease.json changes only under flock on lease.lock, which a death releases. Time is never compared between hosts: who
// wants the lease watches whether the renewal count moves.
#include "io/checkpoint/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/rank.h"
#include "core/base/threads.h"
#include "io/checkpoint/holder.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// flock on a file, for as long as the object lives. Some file systems have none; there the lease still tells a live
// holder from a dead one, only two takers in the same instant are not kept apart. It is held for moments; a process
// that was stopped inside one must not hang the others: after `patience` Error(io).
class LockFile {
 public:
  LockFile(const fs::path& path, std::chrono::milliseconds patience) : file_(path, O_RDWR | O_CREAT) {
    const auto until = Clock::now() + patience;
    while (::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) {
        static std::atomic<bool> said{false};  // a lease is renewed for weeks
        if (!said.exchange(true))
          log::warn("{}: this file system has no locks ({}); don't start a run twice at the same moment", path.string(),
                    std::generic_category().message(errno));
        return;
      }
      if (errno != EINTR && errno != EWOULDBLOCK) fail_errno(errno, path.string() + ": cannot be locked");
      if (Clock::now() >= until) {
        fail(ExitCode::io, "{}: locked for {} ms; a process that holds it does not go on (stopped by a signal?)",
             path.string(), patience.count());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  File file_;  // closing it unlocks
};

fs::path token_of(const fs::path& run_directory) { return run_directory / "attempt.token"; }

}  // namespace

struct Lease::State {
  fs::path file, lock;
  Holder us;
  LeaseTimes times;
  mutable std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;  // the rest under `mutex`
  std::string lost;       // why; empty: held
  Clock::time_point renewed;
  std::thread thread;

  [[nodiscard]] bool ours(const std::optional<Holder>& holder) const { return holder && holder->nonce == us.nonce; }
  bool take_if_free(const std::optional<Holder>& watched);
  void acquire();
  void renew();
  void loop();
  void look();
};

// Takes it where there is none, its holder is dead, or it is still what was watched in vain.
bool Lease::State::take_if_free(const std::optional<Holder>& watched) {
  const LockFile locked(lock, times.expiry);
  const auto holder = read_holder(file);
  const bool expired = watched && holder && holder->nonce == watched->nonce && holder->renewals == watched->renewals;
  if (holder && !is_dead(*holder, us) && !expired) return false;
  if (holder) log::info("taking over the run directory from {}", describe(*holder));
  write_holder(file, us);
  return true;
}

void Lease::State::acquire() {
  std::optional<Holder> watched;
  auto since = Clock::now();
  while (true) {
    if (take_if_free(std::nullopt)) return;
    const auto holder = read_holder(file);
    if (!holder) continue;
    if (!watched) {
      watched = holder;
      since = Clock::now();
      log::info("{}: held by {}; watching whether it is alive", file.parent_path().string(), describe(*holder));
    } else if (holder->nonce != watched->nonce || holder->renewals != watched->renewals) {
      fail(ExitCode::usage, "{}: another run works here: {}. Stop it, or give another --run-dir",
           file.parent_path().string(), describe(*holder));
    } else if (Clock::now() - since >= times.expiry) {
      if (take_if_free(watched)) return;
    }
    std::this_thread::sleep_for(times.renewal / 10);
  }
}

void Lease::State::renew() {
  const LockFile locked(lock, times.renewal);
  const auto holder = read_holder(file);
  if (!ours(holder)) {
    lost = holder ? "it was taken over by " + describe(*holder) : "lease.json is gone";
    return;
  }
  ++us.renewals;
  write_holder(file, us);
  renewed = Clock::now();
}

void Lease::State::loop() {
  name_thread("trm-lease");
  std::unique_lock guard(mutex);
  while (!stopping && lost.empty()) {
    wake.wait_for(guard, times.renewal, [this] { return stopping; });
    if (stopping) return;
    try {
      renew();
    } catch (const Error& failure) {  // tried again: the file system may come back before the lease expires
      log::warn("the lease is not renewed: {}", failure.what());
    }
  }
}

// A process that slept past the expiry may have lost it without having seen so.
void Lease::State::look() {
  if (!lost.empty() || Clock::now() - renewed < times.expiry / 2) return;
  const auto holder = read_holder(file);
  if (!ours(holder)) lost = holder ? "it was taken over by " + describe(*holder) : "lease.json is gone";
}

Lease::Lease(const fs::path& run_directory, const std::string& attempt, const LeaseTimes& times)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.file = run_directory / "lease.json";
  s.lock = run_directory / "lease.lock";
  s.us = this_process(attempt);
  s.times = times;
  s.acquire();
  s.renewed = Clock::now();
  s.thread = std::thread([&s] { s.loop(); });
}

Lease::~Lease() {
  State& s = *state_;
  {
    const std::lock_guard guard(s.mutex);
    s.stopping = true;
  }
  s.wake.notify_one();
  s.thread.join();
  try {
    const LockFile locked(s.lock, s.times.renewal);
    std::error_code error;
    if (s.ours(read_holder(s.file))) fs::remove(s.file, error);
  } catch (const std::exception& failure) {
    log::warn("the lease is not given back: {}", failure.what());
  }
}

void Lease::check() const {
  State& s = *state_;
  const std::lock_guard guard(s.mutex);
  s.look();
  if (s.lost.empty()) return;
  fail(ExitCode::io, "{}: this run no longer owns its directory: {}; it stops before it writes there",
       s.file.parent_path().string(), s.lost);
}

void write_token(const fs::path& run_directory, const std::string& attempt) {
  replace_file(token_of(run_directory), attempt);
}

void check_token(const fs::path& run_directory, const std::string& attempt, int rank,
                 std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  const fs::path file = token_of(run_directory);
  std::string found;
  while (true) {
    try {
      found = read_file(file, 4096);
      if (found == attempt) return;
    } catch (const Error& failure) {
      found = failure.what();
    }
    if (Clock::now() >= until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail(ExitCode::usage,
       "rank {} on host {}: {} is not the folder that rank 0 sees: {} should hold '{}', here it is: {}. The run "
       "directory "
       "must lie on a file system that all hosts share",
       rank, host_name(), run_directory.string(), file.filename().string(), attempt, found);
}

}  // namespace trireme::io
