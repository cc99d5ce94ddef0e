// Names and texts of the format that saver and loader share. Inside io/checkpoint only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/range.h"
#include "io/checkpoint/loader.h"

namespace trireme::io {

inline constexpr int format_version = 1;
inline constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20;  // one checksum each
inline constexpr const char* manifest_name = "manifest.json";

// Slice `index` of `count` of an arena: whole tiles, so pieces may be empty.
[[nodiscard]] Range slice_of(std::uint64_t elements, std::uint64_t index, std::uint64_t count);

[[nodiscard]] std::string slice_name(std::uint64_t index, std::uint64_t count);          // "slice-00000-of-00002.h5"
[[nodiscard]] std::string attempt_name(std::uint64_t step, const std::string& attempt);  // ".step-000000000200.ATTEMPT"

// A committed checkpoint's folder. A step saved again after a resume becomes the next revision: one rename commits it,
// and the older revision stays until then.
struct StepName {
  std::uint64_t step = 0, revision = 0;
  auto operator<=>(const StepName&) const = default;
};
[[nodiscard]] std::string text_of(const StepName& name);  // "step-000000000200", "step-….r1"
[[nodiscard]] std::optional<StepName> parse_step_name(const std::string& name);

// The text of manifest.json: its first member is the XXH3-64 of everything behind it, so any changed byte is found.
[[nodiscard]] std::string manifest_text(const Manifest& manifest);

}  // namespace trireme::io
