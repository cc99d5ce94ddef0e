// Streams, events and the order in which queued operations run; the device's one lock; what was found wrong.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "tests/cuda_emulation/emulation.h"
#include "tests/cuda_emulation/random.h"

namespace trireme::cuda_emulation {

struct Operation {
  const char* what = "";
  std::function<void()> run;
  std::function<bool()> ready = {};  // empty: always. Asked again and again
  enum class Kind {
    work,           // skipped once something was found wrong
    mark,           // runs all the same, so that no wait hangs
    host_function,  // on a thread of its own, unlocked; CUDA calls are refused there
    external,       // becomes ready by another process's doing
  } kind = Kind::work;
};

}  // namespace trireme::cuda_emulation

struct CUstream_st {
  std::deque<trireme::cuda_emulation::Operation> queue;
  bool busy = false;         // a host function of it runs
  std::uint64_t queued = 0;  // operations so far
  std::size_t priority = 0;
  int device = 0;
};

struct CUevent_st {
  std::uint64_t recorded = 0;     // number of the last record
  CUstream_st* stream = nullptr;  // of it
  std::uint64_t place = 0;        // in that stream
  struct Reached {
    std::uint64_t record = 0;
    double milliseconds = 0;
  };
  // Streams that wait hold it: the event may be destroyed before they run.
  std::shared_ptr<Reached> reached = std::make_shared<Reached>();
  int device = 0;
  bool timed = true;

  [[nodiscard]] bool done() const { return reached->record >= recorded; }
};

namespace trireme::cuda_emulation {

// Held through every call of the API, given up while it waits. Everything below but `running` wants it held.
class Locked {
 public:
  Locked();

 private:
  std::unique_lock<std::mutex> lock_;
};

// Keeps the first, prints all.
void report(const std::string& finding);
// cudaSuccess, or the failure that a finding means.
[[nodiscard]] cudaError_t status();
[[nodiscard]] const char* finding();
void forget_finding();
// What the device does at the moment.
[[nodiscard]] const char* running();
void set_running(const char* what);

// Names of streams that were made and not destroyed; reports others, and the default stream.
[[nodiscard]] bool check_stream(cudaStream_t stream, const char* what);
void add_stream(cudaStream_t stream);
void remove_stream(cudaStream_t stream);  // once it is idle

void enqueue(cudaStream_t stream, Operation operation);
// Runs some of what is queued as the mode has it. `asking`: the host looks whether something is done, so something happens.
void go_on(cudaStream_t asking = nullptr);
// Runs what is queued, `wanted` first in minimal mode, until the condition holds; waits for others where nothing can run.
void wait_until(const std::function<bool()>& condition, cudaStream_t wanted, const char* what);
[[nodiscard]] bool idle(cudaStream_t stream);  // null: all
void restart(std::uint64_t seed, Mode mode);

[[nodiscard]] Random& kernel_order();
[[nodiscard]] std::uint64_t seed();
[[nodiscard]] Counts& mutable_counts();
// Gives up the lock meanwhile.
void pause_unlocked(unsigned microseconds);

}  // namespace trireme::cuda_emulation
