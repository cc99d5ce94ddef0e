// Lines like "image: normalise 0.286 0.353" to steps.
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/base/error.h"
#include "io/feed/transform_steps.h"

namespace trireme::io {
namespace {

constexpr std::string_view known = "scale A/B | normalise MEAN STD | pad-crop N | flip | to f32";
constexpr std::size_t least_period = 64;
constexpr std::int64_t largest_pad = 1024;

struct Line {
  std::string text;
  std::vector<std::string> words;  // after "field:"
};

[[noreturn]] void fail_line(const std::string& line, const std::string& what) {
  fail(ExitCode::usage, "data.transform \"{}\": {}", line, what);
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

double decimal(const Line& line, std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) {
    fail_line(line.text, fmt::format("'{}' is not a number", word));
  }
  return value;
}

// "0.5" or "1/255"
double number(const Line& line, std::string_view word) {
  const std::size_t slash = word.find('/');
  if (slash == std::string_view::npos) return decimal(line, word);
  const double divisor = decimal(line, word.substr(slash + 1));
  if (divisor == 0) fail_line(line.text, "division by zero");
  return decimal(line, word.substr(0, slash)) / divisor;
}

// "0.5" for all channels, or "0.49,0.48,0.45": one for each of the last extent.
std::vector<double> channels(const Line& line, const std::string& word, const Field& field) {
  std::vector<double> values;
  for (const std::string& part : split(word, ",")) values.push_back(number(line, part));
  const std::int64_t last = field.shape.rank() > 0 ? field.shape[-1] : 1;
  if (values.empty() || (values.size() > 1 && static_cast<std::int64_t>(values.size()) != last)) {
    fail_line(line.text,
              fmt::format("{} values given; a sample of {} has shape {}: give 1, or one for each of its {} channels",
                          values.size(), field.name, field.shape.text(), last));
  }
  return values;
}

void expect_arguments(const Line& line, std::size_t count, std::string_view usage) {
  if (line.words.size() != count + 1) {
    fail_line(line.text, fmt::format("{} argument(s) given, expected \"{}\"", line.words.size() - 1, usage));
  }
}

Picture picture_of(const Line& line, const Field& field) {
  const int rank = field.shape.rank();
  if (rank != 2 && rank != 3) {
    fail_line(line.text, fmt::format("needs a picture of shape (H, W) or (H, W, C); a sample of {} has shape {}",
                                     field.name, field.shape.text()));
  }
  return {static_cast<std::size_t>(field.shape[0]), static_cast<std::size_t>(field.shape[1]),
          static_cast<std::size_t>(rank == 3 ? field.shape[2] : 1) * size_of(field.dtype)};
}

void parse_normalise(const Line& line, const Field& field, TransformStep& step) {
  const std::vector<double> mean = channels(line, line.words[1], field);
  const std::vector<double> deviation = channels(line, line.words[2], field);
  const std::size_t count = std::max(mean.size(), deviation.size());
  // A period of whole rounds of channels, long enough for vector loops.
  const std::size_t period = (least_period + count - 1) / count * count;
  for (std::size_t i = 0; i < period; ++i) {
    const double divisor = deviation[i % deviation.size()];
    if (!(divisor > 0)) fail_line(line.text, fmt::format("standard deviation {} is not above 0", divisor));
    step.mean.push_back(static_cast<float>(mean[i % mean.size()]));
    step.inverse.push_back(static_cast<float>(1 / divisor));
  }
}

void parse_step(const Line& line, const Field& field, TransformStep& step, Field& out) {
  const std::string& name = line.words.front();
  if (name == "scale") {
    expect_arguments(line, 1, "scale 1/255");
    step.kind = TransformStep::Kind::scale;
    step.factor = static_cast<float>(number(line, line.words[1]));
    out.dtype = Dtype::f32;
  } else if (name == "normalise") {
    expect_arguments(line, 2, "normalise MEAN STD");
    step.kind = TransformStep::Kind::normalise;
    parse_normalise(line, field, step);
    out.dtype = Dtype::f32;
  } else if (name == "pad-crop") {
    expect_arguments(line, 1, "pad-crop N");
    step.kind = TransformStep::Kind::pad_crop;
    step.picture = picture_of(line, field);
    const double pad = decimal(line, line.words[1]);
    if (pad != std::floor(pad) || pad < 1 || pad > static_cast<double>(largest_pad)) {
      fail_line(line.text, fmt::format("pads by {} pixels; a whole number from 1 to {} is needed", pad, largest_pad));
    }
    step.pad = static_cast<std::uint32_t>(pad);
  } else if (name == "flip") {
    expect_arguments(line, 0, "flip");
    step.kind = TransformStep::Kind::flip;
    step.picture = picture_of(line, field);
  } else if (name == "to") {
    expect_arguments(line, 1, "to f32");
    if (line.words[1] != "f32") fail_line(line.text, fmt::format("cannot convert to '{}', only to f32", line.words[1]));
    out.dtype = Dtype::f32;
  } else {
    const std::string near = nearest(name, std::vector<std::string>{"scale", "normalise", "pad-crop", "flip", "to"});
    fail_line(line.text, near.empty()
                             ? fmt::format("unknown transform '{}'; known: {}", name, known)
                             : fmt::format("unknown transform '{}', did you mean '{}'? known: {}", name, near, known));
  }
}

}  // namespace

ParsedTransform parse_transform(const std::string& text, std::uint32_t number, std::span<const Field> fields) {
  const std::size_t colon = text.find(':');
  const std::vector<std::string> head = split(std::string_view(text).substr(0, std::min(colon, text.size())), " \t");
  Line line{text, {}};
  if (colon != std::string::npos) line.words = split(std::string_view(text).substr(colon + 1), " \t");
  if (head.size() != 1 || line.words.empty()) {
    fail_line(text, fmt::format("expected \"FIELD: TRANSFORM\", e.g. \"image: scale 1/255\"; transforms: {}", known));
  }
  std::vector<std::string> names;
  ParsedTransform parsed;
  for (const Field& field : fields) {
    if (field.name == head.front()) parsed.field = names.size(), parsed.out = field;
    names.push_back(field.name);
  }
  if (parsed.out.name.empty()) {
    const std::string near = nearest(head.front(), names);
    std::string listed;
    for (const std::string& name : names) listed += (listed.empty() ? "" : ", ") + name;
    fail_line(text, near.empty() ? fmt::format("no field '{}'; the job's fields are {}", head.front(), listed)
                                 : fmt::format("no field '{}', did you mean '{}'?", head.front(), near));
  }
  const Field before = parsed.out;
  parsed.step.line = number;
  parsed.step.from = before.dtype;
  parsed.step.elements = static_cast<std::size_t>(before.shape.elements());
  parse_step(line, before, parsed.step, parsed.out);
  parsed.step.bytes_out = parsed.step.elements * size_of(parsed.out.dtype);
  return parsed;
}

}  // namespace trireme::io
