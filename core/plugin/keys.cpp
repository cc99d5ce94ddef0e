// Types, ranges and choices of [model]'s keys.
#include "core/plugin/keys.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace trireme::plugin {
namespace {

std::string text_of(const JobScalar& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return '"' + *text + '"';
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  return fmt::format("{}", std::get<double>(value));
}

std::string range_of(const trireme_key& key) {
  const bool low = std::isfinite(key.low), high = std::isfinite(key.high);
  if (low && high) {
    return fmt::format("{}{}, {}{}", key.low_open != 0 ? '(' : '[', key.low, key.high, key.high_open != 0 ? ')' : ']');
  }
  if (low) return fmt::format("{} {}", key.low_open != 0 ? ">" : "≥", key.low);
  if (high) return fmt::format("{} {}", key.high_open != 0 ? "<" : "≤", key.high);
  return "";
}

bool inside(const trireme_key& key, double value) {
  return (key.low_open != 0 ? value > key.low : value >= key.low) &&
         (key.high_open != 0 ? value < key.high : value <= key.high);
}

[[noreturn]] void wrong(const trireme_key& key, const JobValue& given, const std::string& wanted) {
  fail(ExitCode::usage, "{}: model.{} = {}: {} is wanted ({})", given.place, view(key.name), text_of(given.value),
       wanted, view(key.help));
}

void check_range(const trireme_key& key, const JobValue* given, double value, const char* type) {
  if (inside(key, value)) return;
  if (given != nullptr) wrong(key, *given, fmt::format("{} in the range {}", type, range_of(key)));
  fail(ExitCode::internal, "key '{}': its default {} lies outside of its own range {}", view(key.name), value,
       range_of(key));
}

}  // namespace

const JobValue* Keys::declare(const trireme_key& key, const char* type, std::string range, std::string fallback) {
  const std::string name(view(key.name));
  if (name.empty()) fail(ExitCode::internal, "a key of [model] without a name was asked for");
  const auto found = given_.find(name);
  const JobValue* given = found == given_.end() ? nullptr : &found->second;
  const auto known =
      std::find_if(declared_.begin(), declared_.end(), [&](const ModelKey& other) { return other.name == name; });
  if (known == declared_.end()) {
    const std::string value = given == nullptr ? fallback : text_of(given->value);
    declared_.push_back({name, std::string(view(key.help)), type, std::move(range), std::move(fallback), value});
  } else if (known->type != type) {
    fail(ExitCode::internal, "key '{}' is asked for as {} and as {}", name, known->type, type);
  }
  return given;
}

std::int64_t Keys::integer(const trireme_key& key, std::int64_t fallback) {
  const JobValue* given = declare(key, "integer", range_of(key), std::to_string(fallback));
  std::int64_t value = fallback;
  if (given != nullptr) {
    const auto* integer = std::get_if<std::int64_t>(&given->value);
    if (integer == nullptr) wrong(key, *given, "an integer");
    value = *integer;
  }
  check_range(key, given, static_cast<double>(value), "an integer");
  return value;
}

double Keys::number(const trireme_key& key, double fallback) {
  const JobValue* given = declare(key, "number", range_of(key), fmt::format("{}", fallback));
  double value = fallback;
  if (given != nullptr) {
    if (const auto* integer = std::get_if<std::int64_t>(&given->value)) {
      value = static_cast<double>(*integer);
    } else if (const auto* number = std::get_if<double>(&given->value)) {
      value = *number;
    } else {
      wrong(key, *given, "a number");
    }
  }
  check_range(key, given, value, "a number");
  return value;
}

bool Keys::boolean(const trireme_key& key, bool fallback) {
  const JobValue* given = declare(key, "boolean", "", fallback ? "true" : "false");
  if (given == nullptr) return fallback;
  const auto* flag = std::get_if<bool>(&given->value);
  if (flag == nullptr) wrong(key, *given, "true or false");
  return *flag;
}

std::string_view Keys::text(const trireme_key& key, std::string_view fallback,
                            std::span<const trireme_string> choices) {
  std::vector<std::string> known;
  std::string range;
  for (const auto& choice : choices) {
    known.emplace_back(view(choice));
    range += (range.empty() ? "" : " | ") + known.back();
  }
  const auto is_known = [&](std::string_view value) {
    return known.empty() || std::find(known.begin(), known.end(), value) != known.end();
  };
  const JobValue* given = declare(key, "text", range, '"' + std::string(fallback) + '"');
  if (given == nullptr) {
    if (!is_known(fallback)) {
      fail(ExitCode::internal, "key '{}': its default '{}' is none of its own choices {}", view(key.name), fallback,
           range);
    }
    return texts_.emplace_back(fallback);
  }
  const auto* text = std::get_if<std::string>(&given->value);
  if (text == nullptr) wrong(key, *given, known.empty() ? "a text" : "one of " + range);
  if (!is_known(*text)) {
    const std::string near = nearest(*text, known);
    wrong(key, *given, "one of " + range + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  return texts_.emplace_back(*text);
}

void Keys::refuse_unknown() const {
  std::vector<std::string> names;
  for (const auto& key : declared_) names.push_back(key.name);
  for (const auto& [name, value] : given_) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = nearest(name, names);
    std::string hint = near.empty() ? "the plugin has" : fmt::format("did you mean 'model.{}'?", near);
    if (near.empty()) {
      for (const auto& known : names) hint += fmt::format(" '{}'", known);
      if (names.empty()) hint += " no keys";
    }
    fail(ExitCode::usage, "{}: unknown key 'model.{}': {}", value.place, name, hint);
  }
}

}  // namespace trireme::plugin
