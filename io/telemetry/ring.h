// What the compute thread leaves behind for the recorder's thread: fixed records in a preallocated ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "io/telemetry/recorder.h"

namespace trireme::io {

// A step, an evaluation or a checkpoint; the metrics' span points into the ring.
struct Event {
  enum class Kind { step, evaluation, checkpoint } kind = Kind::step;
  StepRecord record;
  StepTimes times;
  std::int64_t samples = 0;  // of an evaluation
};

// One producer, one consumer; neither locks nor allocates.
class EventRing {
 public:
  explicit EventRing(std::size_t metrics);
  // False where the ring is full.
  [[nodiscard]] bool push(const Event& event);
  // The oldest event, valid until pop(); nullptr where there is none.
  [[nodiscard]] const Event* front() const;
  void pop();
  [[nodiscard]] bool empty() const { return front() == nullptr; }

 private:
  std::size_t metrics_;
  std::vector<Event> events_;
  std::vector<double> values_;
  std::atomic<std::uint64_t> pushed_{0}, popped_{0};
};

}  // namespace trireme::io
