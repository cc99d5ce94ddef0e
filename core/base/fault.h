// Named places where a test makes a rank fail. Costs one load where TRIREME_FAULT is not set.
//
//   TRIREME_FAULT="rank=1,event=before_manifest,count=2"              kill -9 of rank 1, the second time it comes by
//   TRIREME_FAULT="rank=0,event=forward,count=9,action=delay,ms=30000;rank=1,event=forward,count=9"
//
// rank: one rank, or all (default). count: the first time that acts, from 1 (default). action:
//   kill      SIGKILL to itself (default)
//   freeze    SIGSTOP to itself: threads, heartbeat and all
//   throw     Error(internal)
//   delay     sleeps `ms`, each time from `count` on
//   announce  nothing more than what all print on stderr first: "fault: rank R reached EVENT COUNT"
#pragma once

#include <atomic>
#include <string_view>

namespace trireme::fault {

namespace detail {
extern std::atomic<bool> armed;
void reach(std::string_view event);
}  // namespace detail

// Events: first_step, forward, backward, between_buckets, writing_slice, before_manifest, after_manifest, after_rename,
// evaluation, next_batch. Any thread.
inline void point(std::string_view event) {
  if (detail::armed.load(std::memory_order_relaxed)) [[unlikely]]
    detail::reach(event);
}

// Reads TRIREME_FAULT once more (it is read when the library is loaded); throws Error(usage) on one that makes no
// sense.
void arm_from_environment();

}  // namespace trireme::fault
