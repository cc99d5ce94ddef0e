// A stream that is a thread: copy, communication and writer streams on the CPU.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "core/device/stream.h"

namespace trireme::device {

// The queue is a fixed ring (4,096 entries; a full one makes run() wait), so queueing allocates nothing. What a
// task throws is kept: the stream runs nothing further and every later synchronize() rethrows it.
class ThreadStream final : public StreamImpl {
 public:
  // `idle`, if given, is called again and again on the thread while no task is ready; it returns the longest time
  // the thread may sleep before it calls idle again. begin runs first on the thread, end last.
  struct Hooks {
    std::function<void()> begin, end;
    std::function<std::chrono::microseconds()> idle;
  };
  explicit ThreadStream(const char* name, Hooks hooks = {});
  ~ThreadStream() override;  // runs what is queued, then ends the thread

  void run(const Task& task) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void wait(const Event& event) override;
  std::uint64_t record() override;
  [[nodiscard]] bool done(std::uint64_t id) const override;
  double synchronize(std::uint64_t id) const override;
  [[nodiscard]] double time(std::uint64_t id) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::device
