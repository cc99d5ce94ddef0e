// What keeps ranks from waiting for ever: heartbeats to two neighbours, messages of who leaves, the watchdog.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/bootstrap.h"
#include "core/comm/watchdog.h"
#include "core/device/doorbell.h"

namespace trireme::comm {

// All but ask_to_leave() on the communication thread. Whoever finds a failure tells all ranks directly and leaves
// by _exit; whoever is told prints the line and leaves with the same code.
class Heart {
 public:
  // `beats` and `leaving`: communicators of their own. hosts: one name a rank.
  Heart(MPI_Comm beats, MPI_Comm leaving, std::vector<std::string> hosts, const Options& options, Watchdog& watchdog);

  // Sends, receives and judges; cheap where the last call was less than 2 ms ago. May not return.
  void poll();
  // What the thread does from now on, for the watchdog's words: a collective, and the rank it waits for (-1: all);
  // nullptr: nothing.
  void doing(const char* collective) { collective_ = collective, awaited_ = -1; }
  void awaiting(int rank) { awaited_ = rank; }
  // MPI_SUCCESS, or a lost peer in MPI's own words.
  void check(int result, int peer);
  // From now on; the communication thread calls it too.
  void accompany(Companion companion) { companion_ = std::move(companion); }
  // After the last barrier: no more silence is judged, open receives are cancelled.
  void stop();

  // Any thread: the communication thread tells all ranks that this one leaves; returns when that is done or after
  // 2.5 s. The first caller's reason is told.
  void ask_to_leave(int code, const std::string& why) noexcept;

 private:
  struct Beat {
    std::uint64_t step = 0;
    char phase[24] = {};
  };
  struct Farewell {
    std::int32_t code = 0, culprit = 0;
    char why[504] = {};
  };
  struct Neighbour {
    int rank = 0;
    double heard = 0;
    Beat in, out;
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
  };

  void expect(Neighbour& neighbour);
  void beat(double now);
  void answer();  // what ask_to_leave() left
  void listen(double now);
  void judge(double now);
  void tell(const Farewell& farewell);
  [[noreturn]] void leave(int code, int culprit, const std::string& why);
  [[noreturn]] void exit_now(int code);
  [[nodiscard]] std::string named(int rank) const;

  MPI_Comm beats_, leaving_;
  std::vector<std::string> hosts_;
  Options options_;
  Watchdog& watchdog_;
  std::thread::id thread_ = std::this_thread::get_id();
  int rank_ = 0, size_ = 1;
  std::vector<Neighbour> neighbours_;
  Farewell told_;  // received
  MPI_Request farewell_ = MPI_REQUEST_NULL;
  Companion companion_;
  double polled_ = 0, beaten_ = 0, asked_at_ = 0;
  bool stopped_ = false;
  const char* collective_ = nullptr;
  int awaited_ = -1;

  std::mutex asking_;
  Farewell asked_;  // guarded by asking_ until leave_asked_
  std::atomic<bool> leave_asked_{false}, leave_told_{false};
  device::Doorbell leave_bell_;
};

}  // namespace trireme::comm
