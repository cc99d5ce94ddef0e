// The seeded order of streams; the thread of host functions; the clock that goes on where the host makes no calls.
#include "tests/cuda_emulation/schedule.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/cuda_emulation/memory.h"

namespace trireme::cuda_emulation {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// How long the host must make no call before the clock runs its work. Long, so that it does not hide a wait that is missing.
constexpr auto silence = 50ms, eager_silence = 2ms;
// A host function that takes longer goes on beside everything else.
constexpr auto host_function_patience = 20ms;

struct HostFunction {
  std::function<void()> run;
  cudaStream_t stream = nullptr;
};

// For the life of the process: threads of it may run at its end.
struct Schedule {
  std::mutex mutex;
  std::condition_variable changed;  // a host function came or ended
  std::vector<cudaStream_t> streams;
  std::deque<HostFunction> host_functions;
  bool threads_started = false;
  Mode mode = Mode::random;
  std::uint64_t seed = 1;
  Random order{1}, kernels{2};
  Counts counts;
  std::string finding;
  Clock::time_point last_call = Clock::now();
  std::atomic<const char*> running{"nothing"};

  Schedule() {
    if (const char* text = std::getenv("TRIREME_EMULATION_SEED")) seed = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TRIREME_EMULATION_MODE")) mode = named(text);
    set_seed();
    if (std::getenv("TRIREME_EMULATION_COUNTS") != nullptr) std::atexit(print_counts);
  }
  static void print_counts();
  static Mode named(std::string_view name) {
    if (name == "eager") return Mode::eager;
    if (name == "minimal") return Mode::minimal;
    if (name == "random") return Mode::random;
    if (name == "sparse") return Mode::sparse;
    std::fprintf(stderr, "TRIREME_EMULATION_MODE: %s is not eager, minimal, random or sparse\n", name.data());
    std::abort();
  }
  void set_seed() {
    order = Random(seed * 2 + 1);
    kernels = Random(seed * 2 + 2);
    for (const cudaStream_t stream : streams) stream->priority = order.below(1000);
  }
};

Schedule& schedule() {
  static auto* const made = new Schedule;  // NOLINT(cppcoreguidelines-owning-memory)
  return *made;
}

void Schedule::print_counts() {
  const Counts c = schedule().counts;
  std::fprintf(stderr, "cuda emulation: %llu launches, %llu copies, %llu allocations, %llu synchronizations\n",
               static_cast<unsigned long long>(c.launches), static_cast<unsigned long long>(c.copies),
               static_cast<unsigned long long>(c.allocations), static_cast<unsigned long long>(c.synchronizations));
}

thread_local bool on_host_function_thread = false;

void run_host_functions() {
  on_host_function_thread = true;
  Schedule& s = schedule();
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.changed.wait(lock, [&] { return !s.host_functions.empty(); });
    HostFunction next = std::move(s.host_functions.front());
    s.host_functions.pop_front();
    lock.unlock();
    next.run();
    next.run = {};
    lock.lock();
    next.stream->busy = false;
    s.changed.notify_all();
  }
}

// The stream whose first operation is to run: by priorities with few changes, so that one stream gets far ahead of another;
// sometimes any.
cudaStream_t choose(cudaStream_t wanted) {
  Schedule& s = schedule();
  std::vector<cudaStream_t> able;
  for (const cudaStream_t stream : s.streams) {
    if (stream->busy || stream->queue.empty()) continue;
    const Operation& first = stream->queue.front();
    if (!first.ready || first.ready()) able.push_back(stream);
  }
  if (able.empty()) return nullptr;
  if (std::ranges::find(able, wanted) != able.end()) return wanted;
  if (s.order.below(8) == 0) able[s.order.below(able.size())]->priority = s.order.below(1000);
  if (wanted == nullptr && s.order.below(4) == 0) return able[s.order.below(able.size())];
  return *std::ranges::max_element(able, {}, [](cudaStream_t stream) { return stream->priority; });
}

void wait_unlocked(std::chrono::microseconds time) {
  Schedule& s = schedule();
  std::unique_lock lock(s.mutex, std::adopt_lock);
  s.changed.wait_for(lock, time);
  lock.release();
}

// Runs one operation; false where none can run.
bool step(cudaStream_t wanted = nullptr) {
  Schedule& s = schedule();
  const cudaStream_t stream = choose(wanted);
  if (stream == nullptr) return false;
  Operation operation = std::move(stream->queue.front());
  stream->queue.pop_front();
  if (!s.finding.empty() && operation.kind != Operation::Kind::mark) return true;
  if (operation.kind == Operation::Kind::host_function) {
    stream->busy = true;
    s.host_functions.push_back({std::move(operation.run), stream});
    s.changed.notify_all();
    const auto give_up = Clock::now() + host_function_patience;
    while (stream->busy && Clock::now() < give_up) wait_unlocked(1ms);
    return true;
  }
  s.running = operation.what;
  {
    const DeviceMemoryOpen opened;
    operation.run();
  }
  s.running = "nothing";
  return true;
}

void run_clock() {
  Schedule& s = schedule();
  for (;;) {
    std::this_thread::sleep_for(s.mode == Mode::eager ? eager_silence : silence / 5);
    const std::unique_lock lock(s.mutex);
    const auto enough = s.mode == Mode::eager ? eager_silence : silence;
    while (Clock::now() - s.last_call > enough && step()) {
    }
  }
}

void start_threads() {
  Schedule& s = schedule();
  if (s.threads_started) return;
  s.threads_started = true;
  std::thread(run_host_functions).detach();
  std::thread(run_clock).detach();
}

bool waits_for_others() {
  return std::ranges::any_of(schedule().streams, [](cudaStream_t stream) {
    return stream->busy || (!stream->queue.empty() && stream->queue.front().kind == Operation::Kind::external);
  });
}

}  // namespace

Locked::Locked() : lock_(schedule().mutex) {
  schedule().last_call = Clock::now();
  if (on_host_function_thread) report("a CUDA call in a host function");
}

void report(const std::string& text) {
  std::fprintf(stderr, "cuda emulation: %s\n", text.c_str());
  if (schedule().finding.empty()) schedule().finding = text;
}
cudaError_t status() { return schedule().finding.empty() ? cudaSuccess : cudaErrorLaunchFailure; }
const char* finding() { return schedule().finding.c_str(); }
void forget_finding() { schedule().finding.clear(); }

const char* running() { return schedule().running; }
void set_running(const char* what) { schedule().running = what; }

bool check_stream(cudaStream_t stream, const char* what) {
  if (std::ranges::find(schedule().streams, stream) != schedule().streams.end()) return true;
  const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  report(std::string(what) + (is_default ? ": on the default stream" : ": on a stream that is none"));
  return false;
}

void add_stream(cudaStream_t stream) {
  start_threads();
  stream->priority = schedule().order.below(1000);
  schedule().streams.push_back(stream);
}
void remove_stream(cudaStream_t stream) { std::erase(schedule().streams, stream); }

void enqueue(cudaStream_t stream, Operation operation) {
  stream->queue.push_back(std::move(operation));
  ++stream->queued;
  go_on();
}

void go_on(cudaStream_t asking) {
  Schedule& s = schedule();
  switch (s.mode) {
    case Mode::eager:
      while (step()) {
      }
      return;
    case Mode::minimal:
      // Only now and then, or a copy that the host asks for often would always be done in time.
      if (asking != nullptr && s.order.below(16) == 0) step(asking);
      return;
    case Mode::sparse:
      if (s.order.below(8) != 0) return;
      break;
    case Mode::random: break;
  }
  for (std::size_t steps = s.order.below(3); steps > 0 && step(); --steps) {
  }
}

void wait_until(const std::function<bool()>& condition, cudaStream_t wanted, const char* what) {
  if (condition()) return;
  unsigned idle_rounds = 0;
  while (!condition()) {
    if (step(schedule().mode == Mode::minimal ? wanted : nullptr)) {
      idle_rounds = 0;
      continue;
    }
    if (!waits_for_others() && idle_rounds > 3) {
      report(std::string(what) + " waits for what nobody will do");
      return;
    }
    pause_unlocked(++idle_rounds < 20 ? 0 : 50);
    schedule().last_call = Clock::now();
  }
}

bool idle(cudaStream_t stream) {
  const auto of_one = [](cudaStream_t one) { return one->queue.empty() && !one->busy; };
  return stream != nullptr ? of_one(stream) : std::ranges::all_of(schedule().streams, of_one);
}

void restart(std::uint64_t new_seed, Mode mode) {
  wait_until([] { return idle(nullptr); }, nullptr, "begin");
  schedule().mode = mode;
  schedule().seed = new_seed;
  schedule().set_seed();
  forget_finding();
}

Random& kernel_order() { return schedule().kernels; }
std::uint64_t seed() { return schedule().seed; }
Counts& mutable_counts() { return schedule().counts; }

void pause_unlocked(unsigned microseconds) {
  Schedule& s = schedule();
  s.mutex.unlock();
  if (microseconds == 0) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  s.mutex.lock();
}

}  // namespace trireme::cuda_emulation
