// Saves: snapshot at a step boundary, slices written behind the training by a writer thread, one commit point.
//
//   checkpoints/.step-000000000200.ATTEMPT/slice-00000-of-00002.h5 …   written by each rank
//   checkpoints/step-000000000200/manifest.json                         after the rename: committed
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/device/device.h"
#include "core/device/stream.h"
#include "io/checkpoint/state.h"

namespace trireme::io {

struct SaverOptions {
  std::filesystem::path folder;  // run directory's checkpoints/
  int rank = 0, world_size = 1;
  std::string attempt;         // unique for this start, the same on all ranks
  std::int64_t keep_last = 3;  // ≥ 2
  // Rank 0's, asked on its writer thread right before a commit and before anything is deleted: throws where this run no
  // longer owns the folder. May be empty.
  std::function<void()> check = nullptr;
};

// All methods on the compute thread. The writer's errors are thrown by the next call (Error(io) with path).
class Saver {
 public:
  Saver(const SaverOptions& options, std::shared_ptr<device::Device> device);
  ~Saver();  // waits for the writer

  // Copies this rank's slice of every arena in stream order, then writes it behind: datasets contiguous, allocated
  // early, bytes by pwrite, /blocks with one XXH3-64 for each 1 MiB, fsync of file and folder. Refused
  // (Error(internal)) while busy(). `best`: this step is the best by the job's metric so far: retention keeps it.
  void snapshot(const Scalars& scalars, std::span<const ArenaState> arenas, bool best, device::Stream& compute);
  [[nodiscard]] std::uint64_t written() const;  // last step whose slice this rank has durable; 0: none
  // Rank 0, once all ranks have written `step`: reads every /blocks, writes the manifest, fsyncs, renames, fsyncs the
  // parent, applies retention. Other ranks: notes it. Returns at once; may be called again for the same step.
  void commit(std::uint64_t step);
  [[nodiscard]] std::uint64_t committed() const;  // rank 0: last step committed here; others: as told by commit()
  [[nodiscard]] bool busy() const;                // a snapshot is not yet committed
  // Blocks and files that the writer got through so far: rises while a save goes on, however slowly. Never throws.
  [[nodiscard]] std::uint64_t moved() const;
  void wait();  // until the writer is idle
  // Seconds that snapshot() held the compute thread, all in all.
  [[nodiscard]] double stalled() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::io
