// A group of one rank, without MPI.
#pragma once

#include <memory>

#include "core/comm/bootstrap.h"

namespace trireme::comm {

// The stream is a thread as with MPI, so events work alike. A hang ends the process with 71.
[[nodiscard]] std::shared_ptr<GroupImpl> make_single(const Options& options);

}  // namespace trireme::comm
