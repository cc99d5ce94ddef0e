// A CUDA stream behind Stream: events by number, host tasks in stream order.
#pragma once

#include <memory>

#include "core/device/stream.h"

namespace trireme::device::cuda {

// On the current device of the calling thread. One thread queues; any thread may ask for events.
[[nodiscard]] std::shared_ptr<StreamImpl> make_stream(int device);

}  // namespace trireme::device::cuda
