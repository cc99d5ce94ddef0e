// Reads and completes summary.json.
#include "core/launch/outcome.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"

namespace trireme::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t limit = std::size_t{16} << 20;

std::optional<Json> read(const std::filesystem::path& file) {
  try {
    Json json = Json::parse(read_file(file, limit), nullptr, false);
    if (json.is_object()) return json;
  } catch (const Error&) {
  }
  return std::nullopt;
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::optional<Outcome> read_outcome(const std::filesystem::path& run_directory) {
  const std::optional<Json> json = read(run_directory / "summary.json");
  if (!json) return std::nullopt;
  Outcome outcome{text(*json, "result"), text(*json, "attempt"), text(*json, "launch"), text(*json, "first_cause"), {}};
  const auto code = json->find("exit_code");
  if (code != json->end() && code->is_number_integer()) outcome.exit_code = code->get<int>();
  return outcome;
}

void complete_outcome(const std::filesystem::path& run_directory, int exit_code, const std::string& first_cause) {
  const std::filesystem::path file = run_directory / "summary.json";
  Json json = read(file).value_or(Json::object());
  json["result"] = exit_code == static_cast<int>(ExitCode::lost_peer) ? "died" : "failed";
  json["exit_code"] = exit_code;
  json["first_cause"] = first_cause;
  replace_file(file, json.dump(2) + "\n");
}

}  // namespace trireme::launch
