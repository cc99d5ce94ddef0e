// What a Slurm allocation says, through its environment and squeue.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trireme::launch {

struct Allocation {
  std::string job;        // SLURM_JOB_ID
  int tasks = 1;          // SLURM_NTASKS, else one a node
  int cpus_per_task = 0;  // 0: not said
};
[[nodiscard]] std::optional<Allocation> slurm_allocation();
// "1-02:03:04" as squeue prints it → seconds; nothing for UNLIMITED, NOT_SET, INVALID.
[[nodiscard]] std::optional<double> parse_time_left(std::string_view text);
// Seconds since the epoch at which the allocation ends; nothing where squeue does not know. Starts squeue.
[[nodiscard]] std::optional<double> slurm_deadline(const Allocation& allocation);

// The program on PATH, or empty.
[[nodiscard]] std::string find_program(std::string_view name);

}  // namespace trireme::launch
