// The folder of checkpoints: which stay. Inside io/checkpoint only; rank 0's writer, after a commit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "io/checkpoint/format.h"

namespace trireme::io {

// Keeps `committed` (just now), the `keep_last` newest steps and the newest one marked best; of a step saved twice, its
// newest revision. One whose manifest cannot be read at the moment may be the best: it stays. The others are renamed to
// .trash-… (durably, so that a half deleted one is never listed), then deleted.
void apply_retention(const std::filesystem::path& folder, std::int64_t keep_last, const std::string& attempt,
                     const StepName& committed);

}  // namespace trireme::io
