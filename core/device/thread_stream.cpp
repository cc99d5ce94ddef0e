// ThreadStream: a ring of tasks that one thread runs in order.
#include "core/device/thread_stream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/threads.h"
#include "core/device/doorbell.h"

namespace trireme::device {

namespace {

constexpr std::uint64_t ring_size = 4096;
// About 4 µs: shorter than a wake by the kernel, too short to take a core from another rank.
constexpr int short_spin = 100;

}  // namespace

struct ThreadStream::State {
  struct Entry {
    Task task;
    bool always = false;  // runs after a failure too: records, so that nobody waits for ever
  };

  State(const char* label, Hooks given) : name(label), hooks(std::move(given)), ring(ring_size) {}

  void push(const Task& task, bool always) {
    const std::lock_guard lock(producers);
    const std::uint64_t place = queued.load(std::memory_order_relaxed);
    const auto has_room = [&] { return place - taken.load(std::memory_order_acquire) < ring_size; };
    if (!has_room()) room.wait(has_room, short_spin);
    ring[place % ring_size] = {task, always};
    queued.store(place + 1, std::memory_order_release);
    work.ring();
  }

  void loop() {
    name_thread(name.c_str());
    if (hooks.begin) guarded(hooks.begin);
    while (true) {
      const std::uint64_t place = taken.load(std::memory_order_relaxed);
      const auto has_work = [&] { return queued.load(std::memory_order_acquire) != place; };
      if (has_work()) {
        Entry& entry = ring[place % ring_size];
        if (entry.always || !failed.load(std::memory_order_relaxed)) guarded([&] { entry.task(); });
        taken.store(place + 1, std::memory_order_release);
        room.ring();
        continue;
      }
      if (stopping.load(std::memory_order_acquire)) break;
      const auto awake = [&] { return has_work() || stopping.load(std::memory_order_acquire); };
      std::chrono::nanoseconds limit = Doorbell::forever;
      if (hooks.idle) guarded([&] { limit = hooks.idle(); });
      work.wait(awake, short_spin, limit);
    }
    if (hooks.end) guarded(hooks.end);
  }

  // The first exception is kept.
  template <class Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (...) {
      if (!failed.load(std::memory_order_relaxed)) {
        error = std::current_exception();
        failed.store(true, std::memory_order_release);
      }
    }
  }

  void reach(std::uint64_t id) {
    times[id % ring_size].store(seconds_now(), std::memory_order_relaxed);
    reached.store(id, std::memory_order_release);
    progress.ring();
  }

  // Waits on the stream's thread for another stream; idle goes on being called meanwhile.
  void await(const Event& event) const {
    if (hooks.idle) {
      for (int i = 0; i < short_spin && !event.done(); ++i) relax();
      while (!event.done()) {
        const auto limit = std::min<std::chrono::microseconds>(hooks.idle(), std::chrono::microseconds(50));
        std::this_thread::sleep_for(limit);
      }
    }
    event.synchronize();
  }

  double wait_for(std::uint64_t id) {
    double waited = 0;
    const auto is_done = [&] { return reached.load(std::memory_order_acquire) >= id; };
    if (!is_done()) {
      const double start = seconds_now();
      progress.wait(is_done, short_spin);
      waited = seconds_now() - start;
    }
    if (failed.load(std::memory_order_acquire)) std::rethrow_exception(error);
    return waited;
  }

  std::string name;
  Hooks hooks;
  std::mutex producers;
  std::vector<Entry> ring;
  alignas(64) std::atomic<std::uint64_t> queued{0};
  alignas(64) std::atomic<std::uint64_t> taken{0};
  std::atomic<std::uint64_t> reached{0};
  std::atomic<bool> stopping{false}, failed{false};
  std::exception_ptr error;    // written before `failed`
  std::uint64_t recorded = 0;  // guarded by `recorders`
  std::mutex recorders;
  Doorbell work, room, progress;
  std::array<std::atomic<double>, ring_size> times{};
  std::thread thread;
};

ThreadStream::ThreadStream(const char* name, Hooks hooks) : state_(std::make_unique<State>(name, std::move(hooks))) {
  state_->thread = std::thread([state = state_.get()] { state->loop(); });
}

ThreadStream::~ThreadStream() {
  state_->stopping.store(true, std::memory_order_release);
  state_->work.ring();
  state_->thread.join();
}

void ThreadStream::run(const Task& task) { state_->push(task, false); }

void ThreadStream::copy(void* to, const void* from, std::size_t bytes) {
  run([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void ThreadStream::wait(const Event& event) {
  if (event.stream() == nullptr || event.stream() == this) return;
  run([state = state_.get(), event] { state->await(event); });
}

std::uint64_t ThreadStream::record() {
  const std::lock_guard lock(state_->recorders);
  const std::uint64_t id = ++state_->recorded;
  state_->push([state = state_.get(), id] { state->reach(id); }, true);
  return id;
}

bool ThreadStream::done(std::uint64_t id) const { return state_->reached.load(std::memory_order_acquire) >= id; }

double ThreadStream::synchronize(std::uint64_t id) const { return state_->wait_for(id); }

double ThreadStream::time(std::uint64_t id) const {
  state_->wait_for(id);
  if (state_->reached.load(std::memory_order_acquire) >= id + ring_size) return 0;  // forgotten
  return state_->times[id % ring_size].load(std::memory_order_relaxed);
}

}  // namespace trireme::device
