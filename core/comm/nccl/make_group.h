// The border to the CUDA module: how a group of ranks gets a device under it. No CUDA or NCCL header.
#pragma once

#include <memory>

#include "core/comm/group.h"
#include "core/device/device.h"

namespace trireme::comm {

// extern "C" std::shared_ptr<comm::GroupImpl> trireme_cuda_make_group(host, device), exported by the module.
// Collective. The new group's tensor collectives take device memory and are queued on a stream of the device; host
// words, broadcasts, gathers, barriers, heartbeats and farewells stay with `host`. With more than one rank it opens
// NCCL. Throws Error(usage) where that is missing or refuses.
using MakeGroup = std::shared_ptr<GroupImpl> (*)(std::shared_ptr<GroupImpl> host,
                                                 std::shared_ptr<device::Device> device);
inline constexpr const char* make_group_symbol = "trireme_cuda_make_group";

}  // namespace trireme::comm
