// The rows behind job_keys(): each key of a job with its place in Job, its limits and its effect.
// Seen by job_*.cpp and their tests alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/job.h"

namespace trireme::job_table {

using Texts = std::vector<std::string>;
using TextTable = std::map<std::string, std::string>;
using Scalars = std::map<std::string, JobValue>;
using Value = std::variant<bool, std::int64_t, double, std::string, Texts, TextTable, Scalars>;

// Does the key change the trained bits, and so belong to identity()?
enum class Effect { none, bits };
// Texts that are paths: relative to the job file, or a plugin's name or file.
enum class PathKind { none, beside_job, plugin };

struct Row {
  JobKey key;
  Value fallback;  // its alternative is the key's type
  Effect effect = Effect::none;
  PathKind paths = PathKind::none;
  bool required = false;
  std::function<Value(const Job&)> get;
  std::function<void(Job&, const Value&)> set;     // takes what `fault` accepts
  std::function<std::string(const Value&)> fault;  // what is wrong with a value; empty: nothing
};

[[nodiscard]] std::span<const Row> rows();
[[nodiscard]] const Row* find(std::string_view name);
// Has some row the name "SECTION.…"?
[[nodiscard]] bool is_section(std::string_view name);

// Text in TOML: `"text"` with escapes, `1.0`, `["a", "b"]`, `{ a = "b" }`.
[[nodiscard]] std::string toml_quoted(std::string_view text);
[[nodiscard]] std::string text_of(const Value& value);
[[nodiscard]] std::string text_of(const JobScalar& value);
// The row's value of a job as it stands in a job file ($ in paths doubled).
[[nodiscard]] Value written_value(const Row& row, const Job& job);

// Replaces $VAR and ${VAR} by the environment's values and $$ by $. Throws Error(usage) beginning with `place`.
[[nodiscard]] std::string expand(std::string_view text, const std::string& place);
// A path of a job made absolute, or a plugin's name as it is.
[[nodiscard]] std::string resolve(std::string_view text, PathKind kind, const std::filesystem::path& job_file,
                                  const std::string& place);
// UTF-8 without NUL?
[[nodiscard]] bool valid_utf8(std::string_view text);
// The first byte above ASCII outside of strings and comments of a TOML text, where none may be; npos: there is none.
[[nodiscard]] std::size_t first_outside_ascii(std::string_view toml);

}  // namespace trireme::job_table
