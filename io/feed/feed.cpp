// The double buffer. Batch k uses pinned and device slot k mod 2. The reader thread fills pinned slots in order; the
// copy of batch k is queued by whoever comes last: the reader that filled it, or the compute thread that released batch
// k − 2. On the CPU the slots that the reader fills are the ones that the model reads: four of them, and no copy.
#include "io/feed/feed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/range.h"
#include "core/base/threads.h"
#include "io/feed/filler.h"

namespace trireme::io {
namespace {

constexpr std::uint64_t most_taken = 2;   // batches that the compute thread may hold
constexpr std::uint64_t alignment = 256;  // of a field in its slot, bytes

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

struct Feed::State {
  struct Slot {
    device::PinnedBuffer pinned;
    device::Buffer memory;
    std::vector<std::span<std::byte>> places;  // of the fields in `pinned`
    std::vector<FieldView> views;              // in `memory`
    MicroBatch at_pinned, at;                  // what `pinned` was filled with; what `memory` holds or gets next
    device::Event copied, released;
  };

  std::shared_ptr<const Dataset> dataset;
  Filler filler;  // reader thread
  Sequence sequence;
  device::Stream copy_stream;  // queued to under the mutex
  bool direct;                 // the device reads host memory: `memory` stays empty
  std::vector<Slot> slots;

  std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex. Counts of batches: filled ≥ submitted; released ≤ taken ≤ submitted ≤ released + slots.
  std::uint64_t filled = 0, submitted = 0, taken = 0, released = 0;
  bool ended = false, stop = false;
  std::exception_ptr error;

  double waited = 0;  // compute thread
  std::thread thread;

  State(std::shared_ptr<const Dataset> data, std::unique_ptr<Reader> reader, Sampler sampler, Transforms transforms,
        Sequence order, const FeedOptions& options, const std::shared_ptr<device::Device>& device)
      : dataset(std::move(data)),
        filler(*dataset, std::move(reader), std::move(sampler), std::move(transforms), options),
        sequence(std::move(order)),
        direct(device->kind() == device::Kind::cpu),
        slots(direct ? 4 : most_taken) {
    if (!direct) copy_stream = device->make_stream("trm-copy");
    const std::span<const Field> fields = filler.fields();
    std::vector<std::size_t> offsets, bytes;
    std::size_t total = 0;
    for (const Field& field : fields) {
      offsets.push_back(total);
      bytes.push_back(static_cast<std::size_t>(options.max_rows * field.shape.elements()) * size_of(field.dtype));
      total = round_up(total + bytes.back(), alignment);
    }
    for (Slot& slot : slots) {
      slot.pinned = device::PinnedBuffer(device, total);
      if (!direct) slot.memory = device::Buffer(device, total);
      for (std::size_t i = 0; i < fields.size(); ++i) {
        slot.places.push_back(slot.pinned.span<std::byte>().subspan(offsets[i], bytes[i]));
        std::byte* const views_begin =
            direct ? slot.pinned.span<std::byte>().data() : slot.memory.span<std::byte>().data();
        slot.views.push_back({views_begin + offsets[i], fields[i].shape.batched(options.max_rows), fields[i].dtype});
      }
    }
  }

  [[nodiscard]] Slot& slot_of(std::uint64_t k) { return slots[k % slots.size()]; }

  // Queues the copies that can go. Under the mutex.
  void submit() {
    while (submitted < filled && submitted < released + slots.size()) {
      Slot& slot = slot_of(submitted);
      if (!direct) {
        copy_stream.wait(slot.released);
        copy_stream.copy(slot.memory.span<std::byte>(), slot.pinned.span<std::byte>());
        slot.copied = copy_stream.record();
      }
      slot.at = slot.at_pinned;
      ++submitted;
    }
  }

  // True when the pinned slot of batch k is free: the batch before in it is on its way, then waits for its copy
  // (direct: was released, then waits for what reads it).
  bool wait_for_slot(std::uint64_t k) {
    device::Event read;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stop || k < (direct ? released : submitted) + slots.size(); });
      if (stop) return false;
      read = direct ? slot_of(k).released : slot_of(k).copied;
    }
    read.synchronize();
    return true;
  }

  void read_all() {
    const std::atomic<bool>& stopping = filler.stopping();
    for (std::uint64_t k = 0; !stopping; ++k) {
      const std::optional<MicroBatch> at = sequence(k);
      if (at && !wait_for_slot(k)) return;
      Slot& slot = slot_of(k);
      if (at && !filler.fill(*at, slot.places)) return;
      const std::lock_guard lock(mutex);
      if (at) {
        slot.at_pinned = *at;
        ++filled;
        submit();
      } else {
        ended = true;
      }
      changed.notify_all();
      if (!at) return;
    }
  }

  void run() {
    name_thread("trm-feed");
    stand_back();
    try {
      read_all();
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      changed.notify_all();
    }
  }
};

Feed::Feed(std::shared_ptr<const Dataset> dataset, std::unique_ptr<Reader> reader, Sampler sampler,
           Transforms transforms, Sequence sequence, const FeedOptions& options, std::shared_ptr<device::Device> device)
    : state_(std::make_unique<State>(std::move(dataset), std::move(reader), std::move(sampler), std::move(transforms),
                                     std::move(sequence), options, device)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Feed::~Feed() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->filler.stop();
    state_->changed.notify_all();
  }
  state_->thread.join();
  // Slots are freed next: no copy may be under way.
  try {
    if (state_->copy_stream) state_->copy_stream.synchronize();
  } catch (...) {  // the stream's failure was already told by next()
  }
}

std::optional<Batch> Feed::next(device::Stream& stream) {
  State& state = *state_;
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(state.mutex);
  const std::uint64_t k = state.taken;
  if (k == state.released + most_taken) {
    fail(ExitCode::internal, "feed: micro-batch {} asked for before micro-batch {} was released", k, state.released);
  }
  const auto settled = [&] { return state.submitted > k || ((state.ended || state.error) && state.filled <= k); };
  const bool ready = settled() && (state.submitted <= k || state.slot_of(k).copied.done());
  state.changed.wait(lock, settled);
  if (state.submitted <= k) {
    if (!ready) state.waited += seconds_since(start);
    if (state.error) std::rethrow_exception(state.error);
    return std::nullopt;
  }
  ++state.taken;
  State::Slot& slot = state.slot_of(k);
  lock.unlock();
  stream.wait(slot.copied);
  if (!ready) state.waited += seconds_since(start);
  for (FieldView& view : slot.views) view.shape = view.shape.with_rows(slot.at.rows);
  return Batch{slot.at, static_cast<std::uint32_t>(k % state.slots.size()), slot.views};
}

void Feed::release(const Batch& batch, device::Stream& stream) {
  State& state = *state_;
  const device::Event done = stream.record();
  const std::lock_guard lock(state.mutex);
  if (state.released == state.taken || batch.slot != state.released % state.slots.size()) {
    fail(ExitCode::internal, "feed: slot {} released out of turn: {} micro-batches taken, {} released", batch.slot,
         state.taken, state.released);
  }
  state.slots[batch.slot].released = done;
  ++state.released;
  state.submit();
  state.changed.notify_all();
}

double Feed::waited() const { return state_->waited; }
std::uint64_t Feed::pinned_bytes() const {
  std::uint64_t bytes = 0;
  for (const State::Slot& slot : state_->slots) bytes += slot.pinned.bytes();
  return bytes;
}
std::uint64_t Feed::blocks_read() const { return state_->filler.blocks_read(); }

}  // namespace trireme::io
