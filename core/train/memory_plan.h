// What a run will hold in host memory, told before its first step: a job script asks Slurm for as much.
#pragma once

#include <cstdint>
#include <string>

namespace trireme::train {

struct LoopParts;

// Bytes of this rank. All memory of ours is mapped when it is allocated, so what is resident before the feed is opened
// stays; to it comes what is filled later.
struct MemoryPlan {
  std::uint64_t resident = 0;    // program and libraries, model, optimizer, activations
  std::uint64_t data = 0;        // batches, decoded blocks within data.memory_mib, and the order of samples
  std::uint64_t evaluation = 0;  // the same of the evaluation data
  std::uint64_t saves = 0;       // snapshots of this rank's slices

  [[nodiscard]] std::uint64_t total() const { return resident + data + evaluation + saves; }
  [[nodiscard]] std::string text() const;  // "memory: about 341 MiB on a rank (…)"
};

// `resident`: before the feed of training was opened, which has `pinned` bytes of batches.
[[nodiscard]] MemoryPlan plan_memory(const LoopParts& parts, std::uint64_t resident, std::uint64_t pinned);

}  // namespace trireme::train
