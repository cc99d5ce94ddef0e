// Which rank the launcher says this process is, before any communication: for messages and for tests' faults.
#pragma once

#include <string>

namespace trireme {

struct LaunchedAs {
  int rank = 0, world_size = 1;
  int local_size = 1;     // ranks on this host; where the launcher doesn't say so, all of them
  bool launched = false;  // mpirun or srun started this process
};
// From the environment that Open MPI, PMIx, MPICH or Slurm sets.
[[nodiscard]] LaunchedAs launched_as();

// This host's whole name; "unknown-host" where it has none.
[[nodiscard]] std::string host_name();

}  // namespace trireme
