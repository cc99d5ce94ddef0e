// Lines of metrics.jsonl and times.jsonl, and the console line.
#include "io/telemetry/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace trireme::io {
namespace {

// "1,950"
std::string grouped(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

void append_metrics(std::string& to, std::span<const double> metrics, std::span<const std::string> json_names) {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    fmt::format_to(std::back_inserter(to), ",{}:{}", json_names[i], json_number(metrics[i]));
  }
}

// "0.9123": four significant digits, as a person reads them.
void append_readable(std::string& to, std::string_view name, double value) {
  fmt::format_to(std::back_inserter(to), "  {} {:.4g}", name, value);
}

bool stays(std::string_view line, std::uint64_t step, bool evaluation_due) {
  constexpr std::string_view head = "{\"step\":";
  if (!line.starts_with(head)) return false;
  std::uint64_t of = 0;
  const char* const end = line.data() + line.size();
  const auto [behind, error] = std::from_chars(line.data() + head.size(), end, of);
  if (error != std::errc()) return false;
  const std::string_view rest(behind, static_cast<std::size_t>(end - behind));
  if (rest.starts_with(",\"evaluation")) return of < step || (of == step && !evaluation_due);
  if (rest.starts_with(",\"checkpoint")) return of <= step;
  return of < step;
}

}  // namespace

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_metrics_line(std::string& to, const Event& event, std::span<const std::string> json_names) {
  const StepRecord& record = event.record;
  const auto out = std::back_inserter(to);
  if (event.kind == Event::Kind::evaluation) {
    fmt::format_to(out, "{{\"step\":{},\"evaluation\":{{\"loss\":{}", record.step, json_number(record.loss));
    append_metrics(to, record.metrics, json_names);
    fmt::format_to(out, ",\"samples\":{}}}}}\n", event.samples);
    return;
  }
  fmt::format_to(out, "{{\"step\":{},\"epoch\":{},\"loss\":{},\"weight\":{},\"lr\":{},\"grad_norm\":{},\"skipped\":{}",
                 record.step, json_number(record.epoch), json_number(record.loss), json_number(record.weight),
                 json_number(record.lr), json_number(record.grad_norm), record.skipped);
  append_metrics(to, record.metrics, json_names);
  to += "}\n";
}

void append_times_line(std::string& to, const Event& event) {
  const auto out = std::back_inserter(to);
  const StepTimes& times = event.times;
  switch (event.kind) {
    case Event::Kind::step:
      fmt::format_to(out, "{{\"step\":{},\"seconds\":{},\"data_wait\":{},\"comm_wait\":{},\"save_stall\":{}}}\n",
                     event.record.step, json_number(times.seconds), json_number(times.data_wait),
                     json_number(times.comm_wait), json_number(times.save_stall));
      return;
    case Event::Kind::evaluation:
      fmt::format_to(out, "{{\"step\":{},\"evaluation_seconds\":{}}}\n", event.record.step, json_number(times.seconds));
      return;
    case Event::Kind::checkpoint:
      fmt::format_to(out, "{{\"step\":{},\"checkpoint_stall\":{}}}\n", event.record.step,
                     json_number(times.save_stall));
      return;
  }
}

std::string text_of_seconds(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string console_line(const StepRecord& last, const Interval& interval, const RecorderOptions& options) {
  const std::uint64_t done = last.step + 1;
  std::string line =
      options.total_steps > 0 ? fmt::format("step {}/{}", done, options.total_steps) : fmt::format("step {}", done);
  fmt::format_to(std::back_inserter(line), "  epoch {:.2f}", last.epoch);
  append_readable(line, "loss", last.loss);
  for (std::size_t i = 0; i < last.metrics.size(); ++i) append_readable(line, options.metric_names[i], last.metrics[i]);
  const double seconds = interval.times.seconds;
  if (seconds > 0) {
    const auto steps = static_cast<double>(interval.steps);
    fmt::format_to(std::back_inserter(line), "  {} samples/s",
                   grouped(steps * static_cast<double>(options.batch) / seconds));
    if (options.total_steps > done) {
      const auto left = static_cast<double>(options.total_steps - done);
      fmt::format_to(std::back_inserter(line), "  {} left", text_of_seconds(left * seconds / steps));
    }
    fmt::format_to(std::back_inserter(line), "  waits: data {:.1f} %, comm {:.1f} %",
                   100 * interval.times.data_wait / seconds, 100 * interval.times.comm_wait / seconds);
  }
  if (last.skipped) line += "  (skipped)";
  return line;
}

std::string console_line(const Event& evaluation, const RecorderOptions& options) {
  std::string line = fmt::format("evaluation after step {}", evaluation.record.step);
  append_readable(line, "loss", evaluation.record.loss);
  for (std::size_t i = 0; i < evaluation.record.metrics.size(); ++i) {
    append_readable(line, options.metric_names[i], evaluation.record.metrics[i]);
  }
  fmt::format_to(std::back_inserter(line), "  ({} samples in {:.1f} s)",
                 grouped(static_cast<double>(evaluation.samples)), evaluation.times.seconds);
  return line;
}

std::string lines_before(std::string_view text, std::uint64_t step, bool evaluation_due) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end + 1);
    if (stays(line.substr(0, end), step, evaluation_due)) kept += line;
    text.remove_prefix(end + 1);
  }
  return kept;
}

}  // namespace trireme::io
