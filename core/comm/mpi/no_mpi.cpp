// make_mpi of a build without MPI.
#include "core/base/error.h"
#include "core/base/rank.h"
#include "core/comm/mpi/connect.h"
#include "core/comm/single/single.h"

namespace trireme::comm {

std::shared_ptr<GroupImpl> make_mpi(const Options& options) {
  if (const LaunchedAs as = launched_as(); as.world_size > 1)
    fail(ExitCode::usage,
         "{} ranks were started, but this build of Trireme has no MPI (TRIREME_MPI=OFF); start one rank, or build with "
         "MPI",
         as.world_size);
  return make_single(options);
}

}  // namespace trireme::comm
