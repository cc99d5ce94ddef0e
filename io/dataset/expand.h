// Patterns of a job to data files.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

namespace trireme::io {

// In the order of the patterns, each one's files sorted by the bytes of their names. A path that exists is taken as it
// is, whatever characters it has. Throws Error(data): a pattern that matches nothing, a file that comes twice (also
// under another name: link, symbolic link, "..").
[[nodiscard]] std::vector<std::filesystem::path> expand(std::span<const std::filesystem::path> patterns);

}  // namespace trireme::io
