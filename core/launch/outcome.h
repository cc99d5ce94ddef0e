// summary.json as the launcher sees it: what the ranks said at last, and its completion where they no longer could.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace trireme::launch {

struct Outcome {
  std::string result, attempt, launch, first_cause;
  std::optional<int> exit_code;
};
// Nothing where there is no file, or none that can be read.
[[nodiscard]] std::optional<Outcome> read_outcome(const std::filesystem::path& run_directory);
// Sets result ("died" with exit code 71, "failed" where a rank still told its error), exit_code and first_cause; all
// else stays.
void complete_outcome(const std::filesystem::path& run_directory, int exit_code, const std::string& first_cause);

}  // namespace trireme::launch
