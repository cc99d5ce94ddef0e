// The group of all ranks that the launcher started, over MPI.
#pragma once

#include <memory>

#include "core/comm/bootstrap.h"

namespace trireme::comm {

// Built without MPI: a group of one rank, or Error(usage) where the launcher started more.
[[nodiscard]] std::shared_ptr<GroupImpl> make_mpi(const Options& options);

}  // namespace trireme::comm
