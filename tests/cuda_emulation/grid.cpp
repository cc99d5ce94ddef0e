// Blocks, warps, barriers and shared memory.
#include "tests/cuda_emulation/grid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/fiber.h"
#include "tests/cuda_emulation/schedule.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#endif

namespace trireme::cuda_emulation {

GpuThread* current_thread = nullptr;

namespace {

struct Thread : GpuThread {
  enum class State { fresh, ready, at_barrier, in_collective, gone } state = State::fresh;
  Fiber* fiber = nullptr;
  Place place;  // where it waits
};

// A warp collective under way; two sets of values by turns, as a lane may be at the next one while another still reads.
struct Meeting {
  unsigned mask = 0, arrived = 0, turn = 0;
  std::array<unsigned, 2> lanes{};
  std::array<std::array<std::uint64_t, warp_lanes>, 2> values{};
  Collective kind{};
  Place place;
};
struct Warp {
  unsigned gone = 0;
  std::array<Meeting, warp_lanes> meetings;  // by the lowest lane of the mask
};

struct SharedArray {
  const void* site;
  char* memory;
};

constexpr std::size_t red_zone = 32, shared_capacity = shared_bytes + 64 * (red_zone + 16);

// The block that runs; one at a time, as the device is locked.
struct Block {
  const std::function<void()>* body = nullptr;
  const char* kernel = "";
  std::array<Thread, most_threads> threads;
  std::array<Warp, most_threads / warp_lanes> warps;
  unsigned size = 0, gone = 0, at_barrier = 0;
  bool voted = false, vote = false;  // at the barrier under way, at the one before
  Place barrier;
  std::vector<unsigned> ready;  // indices of threads
  bool failed = false;

  alignas(64) std::array<char, shared_capacity> shared{};
  std::size_t shared_used = 0, shared_wanted = 0;
  std::vector<SharedArray> arrays;

  Fiber caller;
  Fiber* running = nullptr;
  std::vector<Fiber*> all, unused;
};

Block& block() {
  static auto* const made = new Block;  // NOLINT(cppcoreguidelines-owning-memory): for the life of the process
  return *made;
}

std::string text(const Place& place) { return std::string(place.file_name()) + ":" + std::to_string(place.line()); }
bool same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

void switch_to(Fiber& from, Fiber& to) {
  block().running = &to;
  switch_fiber(from, to);
}

Thread& pick() {
  Block& b = block();
  std::swap(b.ready[kernel_order().below(b.ready.size())], b.ready.back());
  Thread& picked = b.threads[b.ready.back()];
  b.ready.pop_back();
  return picked;
}

void make_ready(Thread& thread) {
  thread.state = Thread::State::ready;
  block().ready.push_back(thread.index);
}

void report_stuck() {
  Block& b = block();
  unsigned waiting = 0;
  const Thread* first = nullptr;
  for (unsigned i = 0; i < b.size; ++i) {
    const Thread& thread = b.threads[i];
    if (thread.state != Thread::State::at_barrier && thread.state != Thread::State::in_collective) continue;
    if (++waiting == 1) first = &thread;
  }
  report(std::string("kernel ") + b.kernel + ": " + std::to_string(waiting) + " of " + std::to_string(b.size) +
         " threads wait for ever, thread " + std::to_string(first != nullptr ? first->index : 0) + " at " +
         (first != nullptr ? text(first->place) : std::string("none")));
  b.failed = true;
}

void fiber_main();

Fiber& unused_fiber() {
  Block& b = block();
  if (b.unused.empty()) {
    b.all.push_back(make_fiber(&fiber_main));
    return *b.all.back();
  }
  Fiber* const fiber = b.unused.back();
  b.unused.pop_back();
  return *fiber;
}

// The running thread waits: on with another. Returns once it was made ready and picked.
void give_way(Thread& waiting) {
  Block& b = block();
  if (b.ready.empty() && !b.failed) report_stuck();
  if (b.failed) {
    switch_to(*waiting.fiber, b.caller);  // for good
    std::abort();
  }
  Thread& next = pick();
  if (next.state == Thread::State::fresh) {
    b.ready.push_back(next.index);
    switch_to(*waiting.fiber, unused_fiber());  // which picks again
  } else if (&next != &waiting) {
    current_thread = &next;
    switch_to(*waiting.fiber, *next.fiber);
  }
  current_thread = &waiting;
}

void end_meeting(unsigned warp, Meeting& meeting) {
  meeting.lanes[meeting.turn & 1] = meeting.arrived;
  ++meeting.turn;
  for (unsigned left = std::exchange(meeting.arrived, 0); left != 0; left &= left - 1) {
    Thread& thread = block().threads[warp * warp_lanes + static_cast<unsigned>(std::countr_zero(left))];
    if (thread.state == Thread::State::in_collective) make_ready(thread);
  }
}

void end_barrier() {
  Block& b = block();
  b.at_barrier = 0;
  b.vote = std::exchange(b.voted, false);
  for (unsigned i = 0; i < b.size; ++i)
    if (b.threads[i].state == Thread::State::at_barrier) make_ready(b.threads[i]);
}

bool complete(const Warp& warp, const Meeting& meeting) {
  const unsigned expected = meeting.mask & ~warp.gone;
  return (meeting.arrived & expected) == expected;
}

// A thread that has left the kernel is waited for no more.
void leave(Thread& thread) {
  Block& b = block();
  thread.state = Thread::State::gone;
  ++b.gone;
  Warp& warp = b.warps[thread.warp];
  warp.gone |= 1u << thread.lane;
  for (Meeting& meeting : warp.meetings)
    if (meeting.arrived != 0 && complete(warp, meeting)) end_meeting(thread.warp, meeting);
  if (b.at_barrier != 0 && b.at_barrier == b.size - b.gone) end_barrier();
}

// One stack runs thread after thread until one has to wait; that one keeps it.
void fiber_main() {
  Block& b = block();
  Fiber& me = *b.running;
  fiber_entered(me);
  for (;;) {
    while (!b.ready.empty() && !b.failed) {
      Thread& next = pick();
      current_thread = &next;
      if (next.state == Thread::State::fresh) {
        next.fiber = &me;
        next.state = Thread::State::ready;
        (*b.body)();
        leave(next);
      } else {
        b.unused.push_back(&me);
        switch_to(me, *next.fiber);
      }
    }
    if (b.gone < b.size && !b.failed) report_stuck();
    b.unused.push_back(&me);
    switch_to(me, b.caller);
  }
}

void begin_block(dim3 index, dim3 blocks, dim3 threads) {
  Block& b = block();
  b.size = threads.x * threads.y * threads.z;
  b.gone = b.at_barrier = 0;
  b.voted = false;
  b.ready.clear();
  b.arrays.clear();
  ASAN_UNPOISON_MEMORY_REGION(b.shared.data(), b.shared.size());
  std::memset(b.shared.data(), 0xFF, b.shared_used == 0 ? b.shared.size() : b.shared_used);
  ASAN_POISON_MEMORY_REGION(b.shared.data(), b.shared.size());
  b.shared_used = b.shared_wanted = 0;
  for (unsigned warp = 0; warp * warp_lanes < b.size; ++warp) {
    const unsigned lanes = std::min(warp_lanes, b.size - warp * warp_lanes);
    b.warps[warp].gone = lanes == warp_lanes ? 0 : ~0u << lanes;
    for (Meeting& meeting : b.warps[warp].meetings) meeting.arrived = 0;
  }
  for (unsigned i = 0; i < b.size; ++i) {
    Thread& thread = b.threads[i];
    thread.thread_index = {i % threads.x, i / threads.x % threads.y, i / (threads.x * threads.y)};
    thread.block_index = {index.x, index.y, index.z};
    thread.block_extent = threads;
    thread.grid_extent = blocks;
    thread.index = i;
    thread.lane = i % warp_lanes;
    thread.warp = i / warp_lanes;
    thread.state = Thread::State::fresh;
    b.ready.push_back(i);
  }
}

}  // namespace

void run_grid(const char* kernel, dim3 blocks, dim3 threads, const std::function<void()>& body) {
  Block& b = block();
  b.body = &body;
  b.kernel = kernel;
  b.failed = false;
  b.shared_used = 0;
  b.caller = thread_as_fiber();
  std::vector<unsigned> order(std::size_t{blocks.x} * blocks.y * blocks.z);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[kernel_order().below(i)]);
  for (const unsigned at : order) {
    begin_block({at % blocks.x, at / blocks.x % blocks.y, at / (blocks.x * blocks.y)}, blocks, threads);
    switch_to(b.caller, unused_fiber());
    if (b.failed) break;
  }
  current_thread = nullptr;
  ASAN_UNPOISON_MEMORY_REGION(b.shared.data(), b.shared.size());
  if (!b.failed) return;
  for (Fiber* const fiber : b.all) free_fiber(fiber);  // threads stand still in the middle of them
  b.all.clear();
  b.unused.clear();
}

bool block_barrier(bool vote, Place place) {
  Block& b = block();
  auto& thread = static_cast<Thread&>(*current_thread);
  if (b.at_barrier == 0) {
    b.barrier = place;
  } else if (!same(b.barrier, place)) {
    trap(("divergent barrier: other threads wait in the one at " + text(b.barrier)).c_str(), place);
  }
  thread.place = place;
  b.voted = b.voted || vote;
  if (++b.at_barrier == b.size - b.gone) {
    end_barrier();
    make_ready(thread);  // who is first behind the barrier is drawn
  } else {
    thread.state = Thread::State::at_barrier;
  }
  give_way(thread);
  return b.vote;  // no barrier ends before this thread came to it
}

Met meet(unsigned mask, Collective kind, std::uint64_t value, Place place) {
  Block& b = block();
  auto& thread = static_cast<Thread&>(*current_thread);
  const unsigned bit = 1u << thread.lane;
  if ((mask & bit) == 0) trap("a lane calls a warp collective whose mask it is not in", place);
  Warp& warp = b.warps[thread.warp];
  Meeting& meeting = warp.meetings[static_cast<std::size_t>(std::countr_zero(mask))];
  if (meeting.arrived == 0) {
    meeting.mask = mask;
    meeting.kind = kind;
    meeting.place = place;
  } else if (meeting.mask != mask || meeting.kind != kind || !same(meeting.place, place)) {
    trap(("lanes of a warp call different collectives, others the one at " + text(meeting.place)).c_str(), place);
  }
  const unsigned turn = meeting.turn & 1;
  meeting.values[turn][thread.lane] = value;
  meeting.arrived |= bit;
  if (complete(warp, meeting)) {
    end_meeting(thread.warp, meeting);
  } else {
    thread.state = Thread::State::in_collective;
    thread.place = place;
    give_way(thread);
  }
  return {meeting.values[turn].data(), meeting.lanes[turn]};
}

void trap(const char* what, Place place) {
  Block& b = block();
  const auto& thread = static_cast<Thread&>(*current_thread);
  report(std::string("kernel ") + b.kernel + ": " + what + ": " + text(place) + ", thread " +
         std::to_string(thread.index) + " of block " + std::to_string(thread.block_index.x));
  b.failed = true;
  switch_to(*thread.fiber, b.caller);  // for good
  std::abort();
}

void* shared_array(const void* site, std::size_t bytes, std::size_t alignment, const char* name, Place place) {
  Block& b = block();
  for (const SharedArray& array : b.arrays)
    if (array.site == site) return array.memory;
  b.shared_wanted += bytes;
  const std::size_t begin = (b.shared_used + alignment - 1) / alignment * alignment;
  if (b.shared_wanted > shared_bytes || begin + bytes + red_zone > b.shared.size())
    trap((std::string("no room for the shared array ") + name + ": a block has 48 KiB").c_str(), place);
  b.shared_used = begin + bytes + red_zone;
  char* const memory = b.shared.data() + begin;
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  b.arrays.push_back({site, memory});
  return memory;
}

}  // namespace trireme::cuda_emulation
