// Messages between this rank and one peer, waited for without blocking in MPI.
#include "core/comm/mpi/link.h"

#include <sched.h>

#include <limits>
#include <thread>

#include "core/base/error.h"

namespace trireme::comm {

namespace {

int count_of(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fail(ExitCode::internal, "a message of {} bytes; MPI counts to 2^31 − 1: cut it", bytes);
  return static_cast<int>(bytes);
}

}  // namespace

void Link::add(MPI_Request request) {
  if (open_ == requests_.size()) fail(ExitCode::internal, "more than {} messages at once", requests_.size());
  requests_[open_++] = request;
}

void Link::start(std::span<const std::byte> give, int to, std::span<std::byte> take, int from) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (!take.empty()) {
    heart_.check(MPI_Irecv(take.data(), count_of(take.size()), MPI_BYTE, from, 0, comm_, &request), from);
    add(request);
  }
  if (!give.empty()) {
    heart_.check(MPI_Isend(give.data(), count_of(give.size()), MPI_BYTE, to, 0, comm_, &request), to);
    add(request);
  }
}

// Spins for a peer that is just behind, yields for one that is later, then sleeps: ranks that share cores must not
// take them from the compute threads. Large messages move on each test, so sleeps stay short.
void Link::wait(int from) {
  if (open_ == 0) return;
  heart_.awaiting(from);
  constexpr double yield_for = 200e-6;  // s
  constexpr auto nap = std::chrono::microseconds(50);
  double start = 0;
  for (int tests = 0;; ++tests) {
    int done = 0;
    heart_.check(MPI_Testall(static_cast<int>(open_), requests_.data(), &done, MPI_STATUSES_IGNORE), from);
    if (done != 0) break;
    if (tests < spins_) continue;
    heart_.poll();
    const double now = device::seconds_now();
    if (start == 0) start = now;
    if (now - start < yield_for)
      sched_yield();
    else
      std::this_thread::sleep_for(nap);
  }
  open_ = 0;
}

}  // namespace trireme::comm
