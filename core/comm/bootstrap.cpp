// How ranks find each other: by what the launcher left in the environment.
#include "core/comm/bootstrap.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/rank.h"
#include "core/comm/mpi/connect.h"
#include "core/comm/single/single.h"

namespace trireme::comm {

bool started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

Group connect(const Options& options) {
  if (started_by_launcher()) return Group(make_mpi(options));
  if (const LaunchedAs as = launched_as(); as.world_size > 1)
    fail(ExitCode::usage, "srun started {} tasks, but without PMIx they cannot find each other; use srun --mpi=pmix",
         as.world_size);
  return Group(make_single(options));
}

}  // namespace trireme::comm
