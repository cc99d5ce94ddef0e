// The texts of the recorder: lines of metrics.jsonl and times.jsonl, the console line. Inside io/telemetry only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/telemetry/ring.h"

namespace trireme::io {

// The shortest decimal that reads back as the same double; NaN and infinities, which JSON lacks: null.
[[nodiscard]] std::string json_number(double value);
[[nodiscard]] std::string json_string(std::string_view text);

// Names are escaped once: json_names[i] is "\"accuracy\"".
void append_metrics_line(std::string& to, const Event& event, std::span<const std::string> json_names);
void append_times_line(std::string& to, const Event& event);

// Steps since the last console line.
struct Interval {
  std::uint64_t steps = 0;
  StepTimes times;
};
[[nodiscard]] std::string console_line(const StepRecord& last, const Interval& interval,
                                       const RecorderOptions& options);
[[nodiscard]] std::string console_line(const Event& evaluation, const RecorderOptions& options);
[[nodiscard]] std::string text_of_seconds(double seconds);  // "48 s", "3 min 05 s", "2 h 10 min"

// Lines that stay when a run goes on from `step`; what ends without a newline is torn and goes too.
[[nodiscard]] std::string lines_before(std::string_view text, std::uint64_t step, bool evaluation_due);

}  // namespace trireme::io
