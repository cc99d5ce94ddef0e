// A group of ranks: value handle over single/ (one rank, no MPI), mpi/ and nccl/ (over one of these). All collectives
// are queued on the group's communication stream, run there in order, and overlap whatever else the rank does; callers
// wait by events. All ranks queue the same collectives in the same order. With nccl/ tensors lie on the device and have
// a stream of it; the others stay on the communication thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/range.h"
#include "core/device/kernels.h"
#include "core/device/stream.h"

namespace trireme::comm {

// Host words on which ranks agree; every operator is idempotent (so dissemination works for any world size).
struct Words {
  std::uint64_t max[8] = {};  // agreed: element-wise maximum
  std::uint64_t min[8] = {};  // agreed: element-wise minimum
};

// A library that works for the group beside MPI (NCCL). All are called on the communication thread.
struct Companion {
  std::function<bool()> waiting;         // whether its work is under way: then a peer may be the one that hangs
  std::function<std::string()> failure;  // what it met, asked about every second; not empty: this rank leaves with 71
  std::function<void()> abort;  // before this process leaves: frees what waits for a peer; returns within seconds
};

class GroupImpl {
 public:
  virtual ~GroupImpl() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the ranks of this host
  virtual int local_size() const = 0;
  virtual device::Stream stream() const = 0;
  // Where host words, broadcasts, gathers and barriers run: the communication thread (one rank: at once).
  virtual device::Stream host_stream() const { return stream(); }
  // True where tensor collectives queue device work on stream() themselves, on the caller's thread.
  virtual bool queues() const { return false; }
  virtual void accompany(Companion) {}  // none: ends it
  // Called on the communication thread, inside a task of stream(): block there, not on the caller.
  virtual void tree_reduce(std::span<float> data, std::span<double> tile_squares) = 0;
  virtual void tree_reduce(std::span<double> data) = 0;
  virtual void all_reduce(std::span<float> data) = 0;
  virtual void all_reduce(std::span<double> data) = 0;
  virtual void agree(Words& words) = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void barrier() = 0;
  // Ends the group in an orderly way: all ranks call it. False: its library did not come back, and the process must
  // leave without destroying the group.
  [[nodiscard]] virtual bool finish() = 0;
  // Tells all ranks that this one leaves with `code` and why; then the process may _exit. Any thread.
  virtual void abort(int code, const std::string& why) noexcept = 0;
  // What the watchdog says when this rank makes no progress: step, phase. `part` counts on in a phase of many rounds,
  // so that each of them is progress. Any thread, no lock.
  virtual void progress(std::uint64_t step, const char* phase, std::uint64_t part) noexcept = 0;
};

// Cheap to copy. Methods queue and return an event of the communication stream, except those named _now, which wait
// (start and end of a run only). Memory handed over must stay valid until the event is done.
class Group {
 public:
  Group() = default;
  explicit Group(std::shared_ptr<GroupImpl> impl) : impl_(std::move(impl)) {}

  [[nodiscard]] int rank() const { return impl_->rank(); }
  [[nodiscard]] int size() const { return impl_->size(); }
  [[nodiscard]] int local_rank() const { return impl_->local_rank(); }
  [[nodiscard]] int local_size() const { return impl_->local_size(); }
  [[nodiscard]] device::Stream stream() const { return impl_->stream(); }  // of tensors
  [[nodiscard]] const std::shared_ptr<GroupImpl>& impl() const { return impl_; }

  // Sum over the ranks along one binary tree, in place: recursive halving at distance 1, 2, 4, …, back by recursive
  // doubling; the bytes on the wire are those of a ring. Needs a power-of-two size. `data` begins at a tile;
  // halving cuts at whole tiles (pieces may be empty). The same bits for every size that divides the leaves the
  // same way. `tile_squares` (one a tile, or empty): f64 sums of squares of the result, taken in the last add on the
  // rank that owns the tile and returned with the doubling. With one rank nothing is added: squares stay untouched.
  device::Event tree_reduce(std::span<float> data, std::span<double> tile_squares);
  device::Event tree_reduce(std::span<double> data);  // small: exchanged whole at each distance, same tree
  // The library's own sum, any size; no promise of bits between world sizes.
  device::Event all_reduce(std::span<float> data);
  device::Event all_reduce(std::span<double> data);
  // Words of all ranks, combined; in place.
  device::Event agree(Words& words);
  device::Event broadcast(std::span<std::byte> data, int root);
  device::Event all_gather(std::span<const std::byte> mine, std::span<std::byte> all);  // equal sizes
  void broadcast_now(std::string& text, int root);
  [[nodiscard]] std::vector<std::string> all_gather_now(const std::string& mine);  // any sizes
  void barrier_now();
  void abort(int code, const std::string& why) const noexcept { impl_->abort(code, why); }
  void progress(std::uint64_t step, const char* phase, std::uint64_t part = 0) const noexcept {
    impl_->progress(step, phase, part);
  }
  [[nodiscard]] bool finish() { return impl_->finish(); }

 private:
  std::shared_ptr<GroupImpl> impl_;
};

// Throws Error(usage) on the first key whose value differs, naming the key, both values and both ranks: what
// every rank must have alike before step 1 (job file, plugin bytes, data, version). Collective.
void check_alike(Group& group, std::span<const std::pair<std::string, std::string>> values);

}  // namespace trireme::comm
