// The recorder: the compute thread copies, a thread formats and writes.
#include "io/telemetry/recorder.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/threads.h"
#include "io/telemetry/lines.h"
#include "io/telemetry/ring.h"

namespace trireme::io {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto pause_between_looks = 100ms;
constexpr auto flush_interval = 1s;
constexpr double window_seconds = 1;
constexpr std::array<std::string_view, 9> own_names{"step",      "epoch",   "loss",    "weight",    "lr",
                                                    "grad_norm", "skipped", "samples", "evaluation"};

void refuse_own_names(const std::vector<std::string>& metrics) {
  for (const std::string& name : metrics) {
    if (std::find(own_names.begin(), own_names.end(), name) != own_names.end()) {
      fail(ExitCode::usage, "metric '{}': metrics.jsonl has a key of its own with that name; report it as another",
           name);
    }
    if (std::count(metrics.begin(), metrics.end(), name) > 1) fail(ExitCode::usage, "metric '{}' is named twice", name);
  }
}

// Into StepTimes or Totals.
template <class Sum>
void add(Sum& sum, const StepTimes& times) {
  sum.seconds += times.seconds;
  sum.data_wait += times.data_wait;
  sum.comm_wait += times.comm_wait;
  sum.save_stall += times.save_stall;
}

// Rate of the steps by windows of one second of step time.
class Rate {
 public:
  void add(double seconds) {
    ++steps_;
    seconds_ += seconds;
    if (seconds_ < window_seconds) return;
    windows_.push_back(static_cast<double>(steps_) / seconds_);
    steps_ = 0;
    seconds_ = 0;
  }
  // Steps per second: the median of all windows but the first; with less than two windows, of all steps.
  [[nodiscard]] double median(const Recorder::Totals& totals) const {
    if (windows_.size() < 2) return totals.seconds > 0 ? static_cast<double>(totals.steps) / totals.seconds : 0;
    std::vector<double> sorted(windows_.begin() + 1, windows_.end());
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }

 private:
  std::uint64_t steps_ = 0;
  double seconds_ = 0;
  std::vector<double> windows_;
};

// A .jsonl file and the lines not yet in it.
struct Lines {
  std::filesystem::path path;
  File file;
  std::string text;

  void open() { file = File(path, O_WRONLY | O_CREAT | O_APPEND); }
  void flush() {
    if (text.empty()) return;
    file.write(std::as_bytes(std::span(text)));
    text.clear();
  }
};

}  // namespace

struct Recorder::State {
  explicit State(const RecorderOptions& given) : options(given), ring(given.metric_names.size()) {
    for (const std::string& name : options.metric_names) json_names.push_back(json_string(name));
  }

  RecorderOptions options;
  std::vector<std::string> json_names;
  EventRing ring;
  Lines metrics, times;  // the thread's, under `mutex`
  Totals totals;         // under `mutex`
  Rate rate;             // under `mutex`
  Interval interval;     // since the last line that stays on the console
  Clock::time_point shown{}, flushed = Clock::now();
  std::exception_ptr error;         // under `mutex`
  std::atomic<bool> failed{false};  // so that a step asks without a lock
  bool stopping = false;            // under `mutex`
  std::mutex mutex;
  std::condition_variable wake;
  std::thread thread;

  void push(const Event& event) {
    if (failed.load(std::memory_order_relaxed)) rethrow();
    while (!ring.push(event)) {  // thousands of steps behind: the disk is what limits
      wake.notify_one();
      std::this_thread::sleep_for(1ms);
      if (failed.load(std::memory_order_relaxed)) rethrow();
    }
  }
  void rethrow() {
    const std::lock_guard lock(mutex);
    if (error) std::rethrow_exception(error);
  }
  void loop();
  void drain();  // under `mutex`
  void take(const Event& event);
  void show(const StepRecord& record);
  void flush();
};

void Recorder::State::loop() {
  name_thread("trm-telemetry");
  stand_back();
  std::unique_lock lock(mutex);
  while (!stopping) {
    wake.wait_for(lock, pause_between_looks);
    try {
      drain();
      if (Clock::now() - flushed >= flush_interval) flush();
    } catch (...) {
      error = std::current_exception();
      failed.store(true);
      return;
    }
  }
}

void Recorder::State::drain() {
  while (const Event* event = ring.front()) {
    take(*event);
    ring.pop();
  }
}

void Recorder::State::take(const Event& event) {
  if (event.kind == Event::Kind::step) {
    ++totals.steps;
    ++interval.steps;
    add(interval.times, event.times);
    add(totals, event.times);
    rate.add(event.times.seconds);
  }
  if (!options.writes) return;
  if (event.kind != Event::Kind::checkpoint) append_metrics_line(metrics.text, event, json_names);
  append_times_line(times.text, event);
  if (event.kind == Event::Kind::step) show(event.record);
  if (event.kind == Event::Kind::evaluation) log::progress(console_line(event, options), true);
}

void Recorder::State::show(const StepRecord& record) {
  const std::uint64_t done = record.step + 1;
  const bool last = done == options.total_steps;
  if (last || (options.log_every_steps > 0 && done % static_cast<std::uint64_t>(options.log_every_steps) == 0)) {
    log::progress(console_line(record, interval, options), true);
    interval = {};
    shown = Clock::now();
  } else if (ring.empty() || Clock::now() - shown > pause_between_looks) {
    log::progress(console_line(record, interval, options), false);
    shown = Clock::now();
  }
}

void Recorder::State::flush() {
  flushed = Clock::now();
  if (!options.writes || (metrics.text.empty() && times.text.empty())) return;
  if (options.check) options.check();
  metrics.flush();
  times.flush();
}

Recorder::Recorder(const RecorderOptions& options) : state_(std::make_unique<State>(options)) {
  refuse_own_names(options.metric_names);
  State& s = *state_;
  s.metrics.path = options.run_directory / "metrics.jsonl";
  s.times.path = options.run_directory / "times.jsonl";
  if (options.writes) {
    s.metrics.open();
    s.times.open();
  }
  s.thread = std::thread([&s] { s.loop(); });
}

Recorder::~Recorder() {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.stopping = true;
  }
  s.wake.notify_one();
  s.thread.join();
  try {
    s.rethrow();  // met after the last call
    s.drain();
    s.flush();
  } catch (const std::exception& failure) {
    log::error("telemetry: {}", failure.what());
  }
}

void Recorder::cut_back(std::uint64_t step, bool evaluation_due) {
  State& s = *state_;
  s.rethrow();
  if (!s.options.writes) return;
  const std::lock_guard lock(s.mutex);
  s.drain();
  s.flush();
  for (Lines* lines : {&s.metrics, &s.times}) {
    const std::string text = read_file(lines->path, std::numeric_limits<std::size_t>::max());
    const std::string kept = lines_before(text, step, evaluation_due);
    if (kept.size() == text.size()) continue;
    replace_file(lines->path, kept);
    lines->open();
  }
}

void Recorder::step(const StepRecord& record, const StepTimes& times) {
  state_->push({Event::Kind::step, record, times, 0});
}

void Recorder::evaluation(std::uint64_t step, double loss, std::span<const double> metrics, std::int64_t samples,
                          double seconds) {
  Event event{Event::Kind::evaluation, {}, {}, samples};
  event.record.step = step;
  event.record.loss = loss;
  event.record.metrics = metrics;
  event.times.seconds = seconds;
  state_->push(event);
}

void Recorder::checkpoint(std::uint64_t step, double stall_seconds) {
  Event event{Event::Kind::checkpoint, {}, {}, 0};
  event.record.step = step;
  event.times.save_stall = stall_seconds;
  state_->push(event);
}

void Recorder::sync() {
  State& s = *state_;
  s.rethrow();
  const std::lock_guard lock(s.mutex);
  s.drain();
  s.flush();
  if (!s.options.writes) return;
  s.metrics.file.sync();
  s.times.file.sync();
}

Recorder::Totals Recorder::totals() const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.drain();
  Totals totals = s.totals;
  totals.samples_per_second = s.rate.median(totals) * static_cast<double>(s.options.batch);
  return totals;
}

}  // namespace trireme::io
