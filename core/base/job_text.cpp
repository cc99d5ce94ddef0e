// A job as text: TOML, the identity that ranks and checkpoints compare, and the two pages of help.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/job_keys.h"

namespace trireme::job_table {
namespace {

std::string text_of_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);  // shortest that reads back the same, whatever the locale
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// A key as TOML takes it: bare where it may be.
std::string key_text(const std::string& key) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), bare) ? key : toml_quoted(key);
}

struct TextOf {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return text_of_number(value); }
  std::string operator()(const std::string& value) const { return toml_quoted(value); }
  std::string operator()(const Texts& value) const {
    std::string text = "[";
    for (const auto& one : value) text += (text.size() > 1 ? ", " : "") + toml_quoted(one);
    return text + "]";
  }
  std::string operator()(const TextTable& value) const {
    std::string text;
    for (const auto& [key, one] : value) {
      text += (text.empty() ? " " : ", ") + key_text(key) + " = " + toml_quoted(one);
    }
    return "{" + text + (text.empty() ? "}" : " }");
  }
  std::string operator()(const Scalars& value) const {
    std::string text;
    for (const auto& [key, one] : value) {
      text += (text.empty() ? " " : ", ") + key_text(key) + " = " + text_of(one.value);
    }
    return "{" + text + (text.empty() ? "}" : " }");
  }
};

std::string with_dollars_doubled(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '$' ? "$$" : std::string(1, c);
  return result;
}

std::string section_of(const std::string& name) {
  const auto dot = name.find('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

}  // namespace

std::string toml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': result += "\\\""; break;
      case '\\': result += "\\\\"; break;
      case '\n': result += "\\n"; break;
      case '\t': result += "\\t"; break;
      case '\r': result += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
        } else {
          result += c;
        }
    }
  }
  return result + "\"";
}

std::string text_of(const Value& value) { return std::visit(TextOf{}, value); }
std::string text_of(const JobScalar& value) { return std::visit(TextOf{}, value); }

Value written_value(const Row& row, const Job& job) {
  Value value = row.get(job);
  if (row.paths == PathKind::none) return value;
  if (auto* text = std::get_if<std::string>(&value)) *text = with_dollars_doubled(*text);
  if (auto* list = std::get_if<Texts>(&value)) {
    for (auto& text : *list) text = with_dollars_doubled(text);
  }
  return value;
}

}  // namespace trireme::job_table

namespace trireme {

using namespace job_table;

std::string to_toml(const Job& job) {
  std::string text, section;
  for (const Row& row : rows()) {
    if (row.key.name == "model") {
      text += "\n[model]\n";
      for (const auto& [key, one] : job.model) text += key_text(key) + " = " + text_of(one.value) + "\n";
      continue;
    }
    const std::string in = section_of(row.key.name);
    if (in != section) text += fmt::format("\n[{}]\n", in);
    section = in;
    const std::string leaf = section.empty() ? row.key.name : row.key.name.substr(section.size() + 1);
    text += leaf + " = " + text_of(written_value(row, job)) + "\n";
  }
  return text;
}

std::map<std::string, std::string> identity(const Job& job) {
  std::map<std::string, std::string> result;
  for (const Row& row : rows()) {
    if (row.effect != Effect::bits) continue;
    const Value value = row.get(job);
    if (row.key.name == "plugin") {
      // The name, wherever the file lies: its bytes are compared by themselves.
      result["plugin"] = toml_quoted(std::filesystem::path(job.plugin).stem().string());
    } else if (const auto* scalars = std::get_if<Scalars>(&value)) {
      for (const auto& [key, one] : *scalars) result[row.key.name + "." + key] = text_of(one.value);
    } else if (const auto* table = std::get_if<TextTable>(&value)) {
      for (const auto& [key, one] : *table) result[row.key.name + "." + key] = toml_quoted(one);
    } else {
      result[row.key.name] = text_of(value);
    }
  }
  return result;
}

std::string help_keys() {
  std::string text =
      "Keys of a job file (TOML). --set KEY=VALUE replaces one. $NAME and ${NAME} are expanded in paths;\n"
      "paths are relative to the job file.\n";
  std::string section = "none yet";
  for (const Row& row : rows()) {
    const std::string in = row.key.name == "model" ? "model" : section_of(row.key.name);
    if (in != section) text += "\n";
    section = in;
    std::string about = row.key.type;
    if (!row.key.unit.empty() && row.key.unit != row.key.name) about += ", " + row.key.unit;
    if (!row.key.range.empty()) about += ", " + row.key.range;
    text += fmt::format("{:<24}{}; {}\n{:24}{}\n", row.key.name, about,
                        row.required ? "required" : "default " + row.key.fallback, "", row.key.help);
  }
  return text;
}

std::string reference_page() {
  const auto cell = [](std::string_view words) {  // a bar would end the cell
    std::string result;
    for (const char c : words) result += c == '|' ? "\\|" : std::string(1, c);
    return result;
  };
  std::string text =
      "# Keys of a job file\n\n"
      "A job file is TOML. An unknown key, a wrong type and a value out of range are refused with file and line.\n"
      "`--set KEY=VALUE` replaces one key. `$NAME` and `${NAME}` are expanded in paths, `$$` is the sign itself.\n"
      "Paths are relative to the job file.\n";
  std::string section = "none yet";
  for (const Row& row : rows()) {
    const std::string in = row.key.name == "model" ? "model" : section_of(row.key.name);
    if (in != section) {
      text += in.empty() ? "\n## Top level\n" : fmt::format("\n## `[{}]`\n", in);
      text += "\n| key | type | unit | default | range | meaning |\n|---|---|---|---|---|---|\n";
    }
    section = in;
    const std::string fallback = row.required ? "required" : fmt::format("`{}`", cell(row.key.fallback));
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", row.key.name, row.key.type, row.key.unit, fallback,
                        cell(row.key.range), cell(row.key.help));
  }
  return text;
}

}  // namespace trireme
