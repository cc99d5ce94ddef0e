// The ring between the compute thread and the recorder's thread.
#include "io/telemetry/ring.h"

#include <algorithm>

#include "core/base/error.h"

namespace trireme::io {
namespace {

constexpr std::size_t capacity = 4096;

}  // namespace

EventRing::EventRing(std::size_t metrics) : metrics_(metrics), events_(capacity), values_(capacity * metrics) {}

bool EventRing::push(const Event& event) {
  if (event.kind != Event::Kind::checkpoint && event.record.metrics.size() != metrics_) {
    fail(ExitCode::internal, "step {} has {} metrics, {} were named", event.record.step, event.record.metrics.size(),
         metrics_);
  }
  const std::uint64_t place = pushed_.load(std::memory_order_relaxed);
  if (place - popped_.load(std::memory_order_acquire) == capacity) return false;
  Event& slot = events_[place % capacity];
  slot = event;
  const std::span<double> values = std::span(values_).subspan(place % capacity * metrics_, metrics_);
  std::copy(event.record.metrics.begin(), event.record.metrics.end(), values.begin());
  slot.record.metrics = values;
  pushed_.store(place + 1, std::memory_order_release);
  return true;
}

const Event* EventRing::front() const {
  const std::uint64_t place = popped_.load(std::memory_order_relaxed);
  return pushed_.load(std::memory_order_acquire) == place ? nullptr : &events_[place % capacity];
}

void EventRing::pop() { popped_.store(popped_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

}  // namespace trireme::io
