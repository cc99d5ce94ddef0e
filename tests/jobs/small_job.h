// Jobs of a second or two, and what every test asks of their ends.
#pragma once

#include <string>
#include <vector>

#include "tests/jobs/run_job.h"

namespace trireme::tests {

// 228 samples to train on (7.1 batches of 32) and 100 to evaluate on, made once for a test program.
[[nodiscard]] const std::filesystem::path& small_data();

// conditional-net with dropout, V = 4, 30 steps, AdamW, several buckets; saves every 8 steps, evaluates after each
// epoch.
[[nodiscard]] TestJob small_job(const std::filesystem::path& folder, std::vector<std::string> arguments = {},
                                std::vector<std::string> sets = {});
// convnet with dropout and batch norm, V = 4, 60 steps, AdamW with all its keys; evaluates at the end.
[[nodiscard]] TestJob small_convnet(const std::filesystem::path& folder, std::vector<std::string> sets = {});

// The words of `trireme train` on the job, whose file is written.
[[nodiscard]] std::vector<std::string> train_words(const TestJob& job);

[[nodiscard]] std::string metrics_of(const JobResult& result);  // metrics.jsonl
// A value of summary.json as text (texts without quotes); empty where there is none.
[[nodiscard]] std::string summary_of(const JobResult& result, const std::string& key);
[[nodiscard]] std::size_t lines_of(const std::string& text);

// Ended with 0, the same bits and the same metrics.jsonl, and nothing left behind.
void expect_same_end(const JobResult& result, const JobResult& undisturbed);
// Ended with `code`, all of it gone within 10 s of the first fault.
void expect_gone(const JobResult& result, int code);

}  // namespace trireme::tests
