// Small facts about samples and their bytes. Private to io/dataset and io/feed.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/field.h"

namespace trireme::io {

// Bytes of one sample of all these fields, dense.
[[nodiscard]] std::uint64_t sample_bytes(std::span<const Field> fields);

}  // namespace trireme::io
