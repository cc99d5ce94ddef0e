// Job files and --set: from TOML to a checked Job. The one includer of toml++.

// A malformed table header ("[.a]") breaks an assumption of toml++ 3.3, which is an abort, or without assertions
// undefined behaviour. Here each broken assumption throws instead. (Macros, for toml++ asks for them.)
namespace trireme {
namespace {
struct BrokenAssumption {};
[[noreturn]] void broken_assumption() { throw BrokenAssumption{}; }
}  // namespace
}  // namespace trireme
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : ::trireme::broken_assumption())
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/job_keys.h"

namespace trireme {
namespace {

using namespace job_table;

constexpr std::size_t largest_file = std::size_t{1} << 20;

// Where values come from: lines of a file, or one --set.
struct Source {
  std::string file;      // as the user named it
  std::string set_text;  // "--set train.batch=x"; empty for the file

  [[nodiscard]] std::string place(const toml::source_region& region) const {
    return set_text.empty() ? fmt::format("{}:{}", file, region.begin.line) : set_text;
  }
};

std::string type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "text";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number";
    case toml::node_type::boolean: return "a boolean";
    default: return "a date or time";
  }
}

std::optional<JobScalar> scalar_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return JobScalar(value->get());
  if (const auto* value = node.as_integer()) return JobScalar(value->get());
  if (const auto* value = node.as_floating_point()) return JobScalar(value->get());
  if (const auto* value = node.as_string()) return JobScalar(value->get());
  return std::nullopt;
}

std::string wanted(const Row& row) {
  std::string text = row.key.type;
  if (row.key.type == "integer") text = "an integer";
  if (row.key.type == "number" || row.key.type == "boolean" || row.key.type == "table of text") text = "a " + text;
  if (row.key.type == "texts") text = "an array of text";
  if (row.key.type == "table") text = "a table [" + row.key.name + "]";
  if (!row.key.range.empty()) text += " (" + row.key.range + (row.key.unit.empty() ? ")" : " " + row.key.unit + ")");
  return text;
}

[[noreturn]] void wrong_type(const std::string& name, const toml::node& node, const std::string& place,
                             const std::string& wanted_text) {
  const auto scalar = scalar_of(node);
  const std::string given = scalar ? " = " + text_of(*scalar) : "";
  fail(ExitCode::usage, "{}: {}{} is {}; {} is wanted", place, name, given, type_of(node), wanted_text);
}

// A near name for an unknown one: the same last part elsewhere, else one of the same section (or on the top
// level), else any.
std::string near_key(const std::string& name) {
  const auto leaf_of = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  const std::string section = name.substr(0, name.rfind('.') + 1);
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> all, neighbours;
  for (const JobKey& key : job_keys()) {
    all.push_back(key.name);
    if (section.empty()) neighbours.push_back(key.name.substr(0, key.name.find('.')));
    if (!section.empty() && key.name.starts_with(section)) neighbours.push_back(leaf_of(key.name));
    if (leaf_of(key.name) != leaf_of(name)) continue;
    const std::size_t distance = edit_distance(key.name, name);
    if (distance < least) least = distance, best = key.name;
  }
  if (!best.empty()) return best;
  if (neighbours.empty()) return nearest(name, all);
  const std::string leaf = nearest(leaf_of(name), neighbours);
  return leaf.empty() ? "" : section + leaf;
}

[[noreturn]] void unknown_key(const std::string& name, const std::string& place) {
  const std::string near = near_key(name);
  fail(ExitCode::usage, "{}: unknown key '{}'{}", place, name,
       near.empty() ? "; `trireme train --help-keys` lists all" : "; did you mean '" + near + "'?");
}

void check_text(const std::string& text, const std::string& name, const std::string& place) {
  if (!valid_utf8(text)) fail(ExitCode::usage, "{}: {} has a NUL or is not valid UTF-8", place, name);
}

JobValue model_value(const std::string& name, const toml::node& node, const std::string& place) {
  const auto scalar = scalar_of(node);
  if (!scalar) wrong_type(name, node, place, "a boolean, integer, number or text");
  if (const auto* number = std::get_if<double>(&*scalar); number != nullptr && !std::isfinite(*number)) {
    fail(ExitCode::usage, "{}: {} = {} is not a finite number", place, name, text_of(*scalar));
  }
  if (const auto* text = std::get_if<std::string>(&*scalar)) check_text(*text, name, place);
  return {*scalar, place};
}

std::string text_value(const std::string& name, const toml::node& node, const std::string& place,
                       const std::string& wanted_text) {
  const auto* text = node.as_string();
  if (text == nullptr) wrong_type(name, node, place, wanted_text);
  check_text(text->get(), name, place);
  return text->get();
}

// The node as the row's type.
Value convert(const Row& row, const toml::node& node, const Source& source) {
  const std::string place = source.place(node.source());
  const std::string& name = row.key.name;
  if (std::holds_alternative<bool>(row.fallback)) {
    if (const auto* value = node.as_boolean()) return value->get();
  } else if (std::holds_alternative<std::int64_t>(row.fallback)) {
    if (const auto* value = node.as_integer()) return value->get();
  } else if (std::holds_alternative<double>(row.fallback)) {
    if (const auto* value = node.as_floating_point()) return value->get();
    if (const auto* value = node.as_integer()) return static_cast<double>(value->get());
  } else if (std::holds_alternative<std::string>(row.fallback)) {
    return text_value(name, node, place, wanted(row));
  } else if (std::holds_alternative<Texts>(row.fallback)) {
    if (const auto* array = node.as_array()) {
      Texts texts;
      for (const toml::node& one : *array) {
        const std::string element = fmt::format("{}[{}]", name, texts.size());
        texts.push_back(text_value(element, one, source.place(one.source()), "text"));
      }
      return texts;
    }
  } else if (const auto* table = node.as_table()) {
    TextTable texts;
    Scalars scalars;
    for (const auto& [key, one] : *table) {
      const std::string inner = name + "." + std::string(key.str());
      const std::string inner_place = source.place(one.source());
      check_text(std::string(key.str()), inner, inner_place);
      if (std::holds_alternative<Scalars>(row.fallback)) {
        scalars[std::string(key.str())] = model_value(inner, one, inner_place);
      } else {
        texts[std::string(key.str())] = text_value(inner, one, inner_place, "text");
      }
    }
    if (std::holds_alternative<Scalars>(row.fallback)) return scalars;
    return texts;
  }
  wrong_type(name, node, place, wanted(row));
}

// The line, from 1, at which toml++ met what it took as impossible: the shortest beginning of the text, in whole
// lines, that has the same effect.
std::size_t malformed_line(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' || i + 1 == text.size()) ends.push_back(i + 1);
  }
  const auto harmless = [&](std::size_t end) {
    try {
      const toml::table ignored = toml::parse(text.substr(0, end));
    } catch (const toml::parse_error&) {  // the beginning may cut a value
    } catch (const BrokenAssumption&) {
      return false;
    }
    return true;
  };
  const auto first = std::partition_point(ends.begin(), ends.end(), harmless);
  return static_cast<std::size_t>(first - ends.begin()) + 1;
}

class Parser {
 public:
  explicit Parser(const std::filesystem::path& file) : file_(file), given_(rows().size()) {}

  void read(std::string_view text) {
    const Source source{file_.string(), ""};
    // toml++ 3.3 takes such a character for one of certain spaces; for others its behaviour is undefined.
    if (const std::size_t at = first_outside_ascii(text); at != std::string_view::npos) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      fail(ExitCode::usage, "{}:{}: a character outside of ASCII (byte 0x{:02X}); such stand in quoted text only",
           source.file, line, static_cast<unsigned char>(text[at]));
    }
    toml::table table;
    try {
      table = toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail(ExitCode::usage, "{}: {}", source.place(error.source()), error.description());
    } catch (const BrokenAssumption&) {
      fail(ExitCode::usage, "{}:{}: malformed table header; [NAME] is wanted", source.file, malformed_line(text));
    }
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (const Row* row = find(name)) {
        take(*row, node, source);
      } else if (!is_section(name)) {
        unknown_key(name, source.place(key.source()));
      } else if (const auto* section = node.as_table()) {
        read_section(name, *section, source);
      } else {
        wrong_type(name, node, source.place(node.source()), "a table [" + name + "]");
      }
    }
  }

  // KEY=VALUE of --set.
  void set(const std::string& assignment) {
    const Source source{file_.string(), "--set " + assignment};
    check_text(assignment, "this", source.set_text);
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      fail(ExitCode::usage, "{}: KEY=VALUE is wanted", source.set_text);
    }
    const std::string name = assignment.substr(0, equals), written = assignment.substr(equals + 1);
    const toml::table parsed = parse_value(written, source);
    const toml::node& node = *parsed.get("value");
    if (const Row* row = find(name)) {
      set_row(*row, node, written, source);
    } else if (name.starts_with("model.") && name.size() > 6) {
      job_.model[name.substr(6)] = model_value(name, node, source.set_text);
    } else if (name.starts_with("data.fields.") && name.size() > 12) {
      const Row& fields = *find("data.fields");
      auto table = std::get<TextTable>(fields.get(job_));
      table[name.substr(12)] = node.is_string() ? node.as_string()->get() : written;
      store(fields, table, source.set_text, source.set_text);
    } else {
      unknown_key(name, source.set_text);
    }
  }

  Job finish() {
    for (const Row& row : rows()) {
      if (row.required && place_of(row).empty()) {
        fail(ExitCode::usage, "{}: {} is missing; it must be {}", file_.string(), row.key.name, wanted(row));
      }
    }
    const std::string& run_place = place_of(*find("run.dir"));
    if (run_place.empty()) {
      job_.run.dir = std::filesystem::absolute(file_).parent_path() / "runs" / file_.stem();
    }
    job_.file = std::filesystem::absolute(file_);
    check_together();
    return job_;
  }

 private:
  struct Given {
    std::string place;  // empty: the default holds
    bool by_set = false;
  };

  [[nodiscard]] Given& given(const Row& row) { return given_[static_cast<std::size_t>(&row - rows().data())]; }
  [[nodiscard]] const std::string& place_of(const Row& row) { return given(row).place; }
  // Where a key was given, or that it was not.
  [[nodiscard]] std::string origin(const char* name) {
    const std::string& place = place_of(*find(name));
    return place.empty() ? file_.string() : place;
  }

  void read_section(const std::string& section, const toml::table& table, const Source& source) {
    for (const auto& [key, node] : table) {
      const std::string name = section + "." + std::string(key.str());
      const Row* const row = find(name);
      if (row == nullptr) unknown_key(name, source.place(key.source()));
      take(*row, node, source);
    }
  }

  void take(const Row& row, const toml::node& node, const Source& source) {
    store(row, convert(row, node, source), source.place(node.source()), source.set_text);
  }

  void store(const Row& row, Value value, const std::string& place, const std::string& set_text) {
    if (const std::string fault = row.fault(value); !fault.empty()) {
      const std::string range = row.key.range.empty() ? "" : "; wanted: " + wanted(row);
      fail(ExitCode::usage, "{}: {} = {} {}{}", place, row.key.name, text_of(value), fault, range);
    }
    if (row.paths != PathKind::none) {
      if (auto* text = std::get_if<std::string>(&value)) *text = resolve(*text, row.paths, file_, place);
      if (auto* texts = std::get_if<Texts>(&value)) {
        for (auto& text : *texts) text = resolve(text, row.paths, file_, place);
      }
    }
    row.set(job_, value);
    given(row) = {place, !set_text.empty()};
  }

  // VALUE of --set as TOML, or as text where it is none.
  static toml::table parse_value(const std::string& written, const Source& source) {
    if (first_outside_ascii(written) != std::string_view::npos) return toml::table{{"value", written}};
    try {
      toml::table parsed = toml::parse("value = " + written);
      if (parsed.size() == 1 && parsed.contains("value")) return parsed;
    } catch (const toml::parse_error& error) {
      if (!written.empty() && std::string_view("\"'[{").find(written[0]) != std::string_view::npos) {
        fail(ExitCode::usage, "{}: {}", source.set_text, error.description());
      }
    } catch (const BrokenAssumption&) {  // further lines with a malformed header: no value, so text
    }
    return toml::table{{"value", written}};
  }

  void set_row(const Row& row, const toml::node& node, const std::string& written, const Source& source) {
    // Text needs no quotes on a command line, even where TOML sees a number or a date.
    if (std::holds_alternative<std::string>(row.fallback) && !node.is_string()) {
      take(row, toml::value<std::string>(written), source);
    } else if (std::holds_alternative<Texts>(row.fallback) && node.is_string()) {
      take(row, toml::array{node.as_string()->get()}, source);
    } else {
      take(row, node, source);
    }
    for (const auto& [one, other] :
         {std::pair("train.epochs", "train.steps"), std::pair("train.steps", "train.epochs")}) {
      if (row.key.name == one && !given(*find(other)).by_set) find(other)->set(job_, std::int64_t{0});
    }
  }

  // Rules about several keys at once.
  void check_together() {
    const auto& train = job_.train;
    if (train.epochs > 0 && train.steps > 0) {
      fail(ExitCode::usage, "{}: train.epochs = {} and train.steps = {} ({}); give one of them", origin("train.epochs"),
           train.epochs, train.steps, origin("train.steps"));
    }
    if (train.epochs == 0 && train.steps == 0) {
      fail(ExitCode::usage, "{}: train.epochs or train.steps is missing; give one of them", origin("train.epochs"));
    }
    const std::int64_t parts = train.micro_batches;
    if (parts != 0 && train.batch % parts != 0) {
      fail(ExitCode::usage, "{}: train.batch = {} is no multiple of train.micro_batches = {}", origin("train.batch"),
           train.batch, parts);
    }
    if (job_.optimizer.nesterov && job_.optimizer.momentum == 0) {
      fail(ExitCode::usage, "{}: optimizer.nesterov = true needs optimizer.momentum above 0",
           origin("optimizer.nesterov"));
    }
    if ((job_.eval.every_epoch || job_.eval.every_steps > 0) && job_.data.eval.empty()) {
      fail(ExitCode::usage,
           "{}: eval.every = {}, but data.eval names no file; name some, or set eval.every = \"never\"",
           origin("eval.every"), text_of(find("eval.every")->get(job_)));
    }
  }

  std::filesystem::path file_;
  Job job_;
  std::vector<Given> given_;  // by row
};

}  // namespace

Job parse_job(std::string_view toml, const std::filesystem::path& file, std::span<const std::string> sets) {
  Parser parser(file);
  parser.read(toml);
  for (const auto& assignment : sets) parser.set(assignment);
  return parser.finish();
}

Job read_job(const std::filesystem::path& file, std::span<const std::string> sets) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored) && !ignored) {
    fail(ExitCode::usage, "{}: there is no such job file", file.string());
  }
  if (std::filesystem::is_directory(file, ignored)) {
    fail(ExitCode::usage, "{}: is a folder; a job file is wanted", file.string());
  }
  std::string text;
  try {
    text = read_file(file, largest_file);
  } catch (const Error& error) {
    if (error.code() != ExitCode::data) throw;
    fail(ExitCode::usage, "{}: larger than 1 MiB, so not a job file", file.string());
  }
  return parse_job(text, file, sets);
}

}  // namespace trireme
