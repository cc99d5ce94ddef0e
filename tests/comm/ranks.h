// The group of the ranks that run a test program together.
#pragma once

#include "core/comm/bootstrap.h"

namespace trireme::comm {

[[nodiscard]] Group& world();

}  // namespace trireme::comm
