// The folder of checkpoints: which stay. Inside io/checkpoint only; rank 0's writer, after a commit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trireme::io {

// Keeps the `keep_last` newest steps and the newest one marked best; of a step saved twice, its newest revision. The
// others are renamed to .trash-… (durably, so that a half deleted one is never listed), then deleted.
void apply_retention(const std::filesystem::path& folder, std::int64_t keep_last, const std::string& attempt);

}  // namespace trireme::io
