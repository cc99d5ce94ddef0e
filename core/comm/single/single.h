// A group of one rank, without MPI.
#pragma once

#include <memory>

#include "core/comm/bootstrap.h"

namespace trireme::comm {

// Its stream is the CPU's inline one: there is nobody to wait for, and a thread would take cores from the ops. A hang
// ends the process with 71.
[[nodiscard]] std::shared_ptr<GroupImpl> make_single(const Options& options);

}  // namespace trireme::comm
