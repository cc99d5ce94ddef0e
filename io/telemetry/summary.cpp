// summary.json: keys in the order they were first set.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "io/telemetry/lines.h"
#include "io/telemetry/recorder.h"

namespace trireme::io {
namespace {

constexpr std::size_t largest_summary = std::size_t{64} << 20;

}  // namespace

Summary::Summary(std::filesystem::path file) : file_(std::move(file)) {}

void Summary::set(const std::string& key, const std::string& text) { set_json(key, json_string(text)); }
void Summary::set(const std::string& key, const char* text) { set_json(key, json_string(text)); }
void Summary::set(const std::string& key, double number) { set_json(key, json_number(number)); }
void Summary::set(const std::string& key, std::int64_t number) { set_json(key, std::to_string(number)); }
void Summary::set(const std::string& key, bool value) { set_json(key, value ? "true" : "false"); }

void Summary::set_json(const std::string& key, const std::string& json) {
  if (!nlohmann::json::accept(json)) fail(ExitCode::internal, "summary key '{}': not JSON: {}", key, json);
  const auto same = [&](const auto& item) { return item.first == key; };
  if (const auto found = std::find_if(items_.begin(), items_.end(), same); found != items_.end()) {
    found->second = json;
  } else {
    items_.emplace_back(key, json);
  }
}

void Summary::write() const {
  std::string text = "{";
  for (const auto& [key, json] : items_) {
    text += (text.size() == 1 ? "\n  " : ",\n  ") + json_string(key) + ": " + json;
  }
  replace_file(file_, text + "\n}\n");
}

std::map<std::string, std::string> Summary::read(const std::filesystem::path& file) {
  const std::string text = read_file(file, largest_summary);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) fail(ExitCode::data, "{}: not a JSON object ({} bytes)", file.string(), text.size());
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : json.items()) {
    values[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return values;
}

}  // namespace trireme::io
