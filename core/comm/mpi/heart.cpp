// Heartbeats, farewells and the watchdog over MPI; nothing here blocks.
#include "core/comm/mpi/heart.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/comm/leave.h"

namespace trireme::comm {

namespace {

constexpr double poll_every = 0.002, beat_every = 1.0;  // s
constexpr double tell_at_most = 1.0;                    // s: a rank that does not take the message is gone itself
// A rank that waits in a collective leaves the verdict to the one it waits for, which stalls at about the same time.
constexpr double grace = 2.0;  // s
constexpr int lost_peer = static_cast<int>(ExitCode::lost_peer);

template <std::size_t N>
void put(char (&to)[N], std::string_view text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

std::string error_text(int result) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

Heart::Heart(MPI_Comm beats, MPI_Comm leaving, std::vector<std::string> hosts, const Options& options,
             Watchdog& watchdog)
    : beats_(beats), leaving_(leaving), hosts_(std::move(hosts)), options_(options), watchdog_(watchdog) {
  MPI_Comm_rank(beats_, &rank_);
  MPI_Comm_size(beats_, &size_);
  polled_ = device::seconds_now();
  if (size_ == 1) return;
  std::vector<int> ranks{(rank_ + 1) % size_};
  if (size_ > 2) ranks.push_back((rank_ + size_ - 1) % size_);
  neighbours_.resize(ranks.size());  // never again: MPI holds addresses in it
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    neighbours_[i].rank = ranks[i];
    neighbours_[i].heard = polled_;
    expect(neighbours_[i]);
  }
  check(MPI_Irecv(&told_, sizeof told_, MPI_BYTE, MPI_ANY_SOURCE, 0, leaving_, &farewell_), -1);
}

void Heart::expect(Neighbour& neighbour) {
  check(MPI_Irecv(&neighbour.in, sizeof neighbour.in, MPI_BYTE, neighbour.rank, 0, beats_, &neighbour.receive),
        neighbour.rank);
}

void Heart::poll() {
  if (stopped_) return;
  const double now = device::seconds_now();
  const double pause = now - polled_;
  if (pause < poll_every) return;
  polled_ = now;
  // Where this process itself did not run (stopped, suspended host), silence proves nothing about others.
  if (pause > beat_every)
    for (Neighbour& neighbour : neighbours_) neighbour.heard += pause;
  answer();
  listen(now);
  if (now - beaten_ >= beat_every) beat(now);
  judge(now);
}

void Heart::answer() {
  if (!leave_asked_.load(std::memory_order_acquire) || leave_told_.load(std::memory_order_relaxed)) return;
  tell(asked_);
  leave_told_.store(true, std::memory_order_release);
  leave_bell_.ring();
}

void Heart::listen(double now) {
  if (size_ == 1) return;
  int arrived = 0;
  check(MPI_Test(&farewell_, &arrived, MPI_STATUS_IGNORE), -1);
  if (arrived != 0) {
    say(rank_, told_.why);
    exit_now(told_.code);
  }
  for (Neighbour& neighbour : neighbours_) {
    for (arrived = 1; arrived != 0;) {
      check(MPI_Test(&neighbour.receive, &arrived, MPI_STATUS_IGNORE), neighbour.rank);
      if (arrived == 0) break;
      neighbour.heard = now;
      expect(neighbour);
    }
  }
}

void Heart::beat(double now) {
  beaten_ = now;
  for (Neighbour& neighbour : neighbours_) {
    int sent = 0;
    check(MPI_Test(&neighbour.send, &sent, MPI_STATUS_IGNORE), neighbour.rank);
    if (sent == 0) continue;
    neighbour.out.step = watchdog_.step();
    put(neighbour.out.phase, watchdog_.phase());
    check(MPI_Isend(&neighbour.out, sizeof neighbour.out, MPI_BYTE, neighbour.rank, 0, beats_, &neighbour.send),
          neighbour.rank);
  }
}

void Heart::judge(double now) {
  for (const Neighbour& neighbour : neighbours_) {
    if (now - neighbour.heard <= options_.silence_s) continue;
    leave(lost_peer, neighbour.rank,
          fmt::format("lost {}: no heartbeat for {:.1f} s since step {}, phase {}; seen by {} in step {}, phase {}",
                      named(neighbour.rank), now - neighbour.heard, neighbour.in.step,
                      neighbour.in.phase[0] != '\0' ? neighbour.in.phase : "start", named(rank_), watchdog_.step(),
                      watchdog_.phase()));
  }
  if (companion_.failure && now - asked_at_ >= beat_every) {
    asked_at_ = now;
    if (const std::string met = companion_.failure(); !met.empty())
      leave(lost_peer, rank_,
            fmt::format("{} in step {}, phase {}: {}", named(rank_), watchdog_.step(), watchdog_.phase(), met));
  }
  const double stalled = watchdog_.stalled(now);
  if (stalled <= options_.watchdog_s) return;
  const bool on_device = companion_.waiting && companion_.waiting();
  if (stalled <= options_.watchdog_s + (collective_ != nullptr || on_device ? grace : 0.0)) return;
  const std::string waiting = on_device                ? "in a collective of the device"
                              : collective_ == nullptr ? "in no collective"
                                                       : fmt::format("in collective {} waiting for {}", collective_,
                                                                     awaited_ < 0 ? "all" : named(awaited_));
  leave(lost_peer, rank_,
        fmt::format("{} hangs: no progress for {:.1f} s in step {}, phase {}, {}; if steps are that long, raise "
                    "train.watchdog_s",
                    named(rank_), stalled, watchdog_.step(), watchdog_.phase(), waiting));
}

void Heart::check(int result, int peer) {
  if (result == MPI_SUCCESS) return;
  leave(lost_peer, peer,
        fmt::format("lost {}: MPI says: {}", peer < 0 ? std::string("a peer") : named(peer), error_text(result)));
}

void Heart::leave(int code, int culprit, const std::string& why) {
  say(rank_, why);
  Farewell farewell;
  farewell.code = code;
  farewell.culprit = culprit;
  put(farewell.why, why);
  tell(farewell);
  exit_now(code);
}

void Heart::exit_now(int code) {
  if (companion_.abort) companion_.abort();
  _exit(code);
}

// Errors are passed over: who cannot be told finds out by silence.
void Heart::tell(const Farewell& farewell) {
  std::vector<MPI_Request> requests;
  requests.reserve(static_cast<std::size_t>(size_));
  for (int other = 0; other < size_; ++other) {
    const bool gone = other == farewell.culprit;
    if (other == rank_ || gone) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(&farewell, sizeof farewell, MPI_BYTE, other, 0, leaving_, &request) == MPI_SUCCESS)
      requests.push_back(request);
  }
  const double deadline = device::seconds_now() + tell_at_most;
  for (int sent = 0; sent == 0 && device::seconds_now() < deadline;) {
    if (MPI_Testall(static_cast<int>(requests.size()), requests.data(), &sent, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      break;
    if (sent == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Heart::ask_to_leave(int code, const std::string& why) noexcept {
  {
    const std::lock_guard lock(asking_);
    if (!leave_asked_.load(std::memory_order_relaxed)) {
      asked_.code = code;
      asked_.culprit = rank_;
      put(asked_.why, fmt::format("{} leaves with code {}: {}", named(rank_), code, why));
      leave_asked_.store(true, std::memory_order_release);
    }
  }
  if (std::this_thread::get_id() == thread_) {
    answer();
    return;
  }
  leave_bell_.wait([&] { return leave_told_.load(std::memory_order_acquire); }, 0, std::chrono::milliseconds(2500));
}

void Heart::stop() {
  stopped_ = true;
  for (Neighbour& neighbour : neighbours_) {
    MPI_Cancel(&neighbour.receive);
    MPI_Request_free(&neighbour.receive);
    int sent = 0;
    MPI_Test(&neighbour.send, &sent, MPI_STATUS_IGNORE);
  }
  if (farewell_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&farewell_);
    MPI_Request_free(&farewell_);
  }
  leave_told_.store(true, std::memory_order_release);  // nobody is left to tell
}

std::string Heart::named(int rank) const {
  return fmt::format("rank {} ({})", rank, hosts_[static_cast<std::size_t>(rank)]);
}

}  // namespace trireme::comm
