// What a call of the model is for. Values agree with trireme_mode of abi.h.
#pragma once

#include <cstdint>

namespace trireme {

enum class Mode : std::int32_t { train = 0, evaluate = 1, predict = 2 };

}  // namespace trireme
