// Paths of a job: variables, and what they are relative to.
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/job_keys.h"

namespace trireme::job_table {
namespace {

bool in_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// "a/./b" → "a/b", but ".." stays: it means something else behind a symbolic link.
std::filesystem::path tidy(const std::filesystem::path& path) {
  for (const auto& part : path) {
    if (part == "..") return path;
  }
  return path.lexically_normal();
}

}  // namespace

std::string expand(std::string_view text, const std::string& place) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      result += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '$') {
      result += '$';
      ++i;
      continue;
    }
    const bool braces = i + 1 < text.size() && text[i + 1] == '{';
    const std::size_t begin = i + (braces ? 2 : 1);
    std::size_t end = begin;
    while (end < text.size() && in_name(text[end])) ++end;
    if (end == begin || (braces && (end == text.size() || text[end] != '}'))) {
      fail(ExitCode::usage, "{}: {} has a $ without a variable; write $NAME, ${{NAME}}, or $$ for the sign itself",
           place, toml_quoted(text));
    }
    const std::string name(text.substr(begin, end - begin));
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) {
      fail(ExitCode::usage, "{}: {} needs the environment variable {}, which is not set", place, toml_quoted(text),
           name);
    }
    result += value;
    i = braces ? end : end - 1;
  }
  return result;
}

std::string resolve(std::string_view text, PathKind kind, const std::filesystem::path& job_file,
                    const std::string& place) {
  const std::string expanded = expand(text, place);
  std::filesystem::path path = expanded;
  if (expanded.empty()) fail(ExitCode::usage, "{}: {} is an empty path", place, toml_quoted(text));
  if (kind == PathKind::plugin && expanded.find('/') == std::string::npos) return expanded;
  const std::filesystem::path current = std::filesystem::current_path();
  path = (current / job_file).parent_path() / path;
  const std::string resolved = tidy(path).string();
  if (!valid_utf8(resolved)) fail(ExitCode::usage, "{}: path {} is not valid UTF-8", place, toml_quoted(text));
  return resolved;
}

}  // namespace trireme::job_table
