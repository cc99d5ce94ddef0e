// What a run tells: metrics.jsonl, the console line, summary.json. Rank 0 writes; all of it off the compute thread but
// for one small copy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trireme::io {

// One step, all ranks: sums already divided by their weights.
struct StepRecord {
  std::uint64_t step = 0;  // from 0
  double epoch = 0;
  double loss = 0, weight = 0;
  double lr = 0, grad_norm = 0;
  bool skipped = false;
  std::span<const double> metrics;  // in the order of metric_names
};
// Seconds of one step on this rank, host clock. Deterministic fields of metrics.jsonl never include these.
struct StepTimes {
  double seconds = 0, data_wait = 0, comm_wait = 0, save_stall = 0;
};

struct RecorderOptions {
  std::filesystem::path run_directory;
  std::vector<std::string> metric_names;
  std::int64_t log_every_steps = 50;
  std::uint64_t total_steps = 0;
  std::int64_t batch = 0;  // samples of a global batch
  bool writes = true;      // rank 0
  // Asked before lines are written, on the thread that writes: throws where this run no longer owns the directory. May
  // be empty.
  std::function<void()> check;
};

// metrics.jsonl has one line a step {"step","epoch","loss",…,metrics} with the shortest exact decimal of each double
// and no times, (NaN and infinities: null), so it is the same for the same bits; times go to times.jsonl. Appended and
// flushed every second, fsynced by sync(). One calling thread. What the writing thread meets (Error(io)) is thrown by
// the next call.
class Recorder {
 public:
  explicit Recorder(const RecorderOptions& options);
  ~Recorder();
  // Drops lines of steps ≥ `step` (a resume goes on from there), and a torn last line. Evaluations count updates done:
  // those after `step` go; the one at `step` goes where the resume is due to run it again.
  void cut_back(std::uint64_t step, bool evaluation_due = true);
  void step(const StepRecord& record, const StepTimes& times);
  // After `step` updates; {"step","evaluation":{"loss",…,"samples"}}.
  void evaluation(std::uint64_t step, double loss, std::span<const double> metrics, std::int64_t samples,
                  double seconds);
  void checkpoint(std::uint64_t step, double stall_seconds);
  void sync();
  // Split of all steps so far: totals of the times, steps, samples.
  struct Totals {
    std::uint64_t steps = 0;
    double seconds = 0, data_wait = 0, comm_wait = 0, save_stall = 0;
    double samples_per_second = 0;  // median over windows of 1 s, first second left out where there is more
  };
  [[nodiscard]] Totals totals() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// summary.json: flat and nested JSON written by replace_file. Keys: result, exit_code, attempt, first_cause, steps,
// epochs, … (train fills them). Values are JSON texts.
class Summary {
 public:
  explicit Summary(std::filesystem::path file);
  void set(const std::string& key, const std::string& text);  // as a JSON string
  void set(const std::string& key, const char* text);         // would otherwise become a bool
  void set(const std::string& key, double number);            // shortest exact decimal; NaN: null
  void set(const std::string& key, std::int64_t number);
  void set(const std::string& key, bool value);
  void set_json(const std::string& key, const std::string& json);
  void write() const;
  [[nodiscard]] static std::map<std::string, std::string> read(const std::filesystem::path& file);  // values as text

 private:
  std::filesystem::path file_;
  std::vector<std::pair<std::string, std::string>> items_;
};

}  // namespace trireme::io
