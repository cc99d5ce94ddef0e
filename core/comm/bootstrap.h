// How ranks find each other: MPI where a launcher started us, one rank without MPI otherwise.
#pragma once

#include <string>

#include "core/comm/group.h"

namespace trireme::comm {

struct Options {
  double watchdog_s = 600;  // no progress of a beating peer for this long is a hang
  double silence_s = 5;     // no heartbeat for this long is a lost peer
};

// True where mpirun or srun started this process (OMPI_COMM_WORLD_SIZE, PMIX_RANK, PMI_RANK).
[[nodiscard]] bool started_by_launcher();

// Makes the world group. With MPI the communication thread calls MPI_Init_thread(FUNNELED), all traffic and
// MPI_Finalize; it never blocks in MPI (test, yield, short sleep) and beats every second to two neighbours.
// Failure: who leaves first tells all ranks, then _exit(71); every rank prints one line that names the culprit.
// Exit code of a rank told by a peer's abort(code, why): that code.
[[nodiscard]] Group connect(const Options& options);

}  // namespace trireme::comm
