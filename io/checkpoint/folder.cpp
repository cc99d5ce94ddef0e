// The folder of checkpoints: names in it, what is listed, kept, set aside and swept.
#include "io/checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "io/checkpoint/format.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-", attempt_prefix = ".step-", trash_prefix = ".trash-",
                           aside_prefix = "set-aside-";

// Names of the folders inside `folder`; none where it is not there.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code gone;  // deleted meanwhile
    if (at->is_directory(gone)) names.push_back(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail_errno(error.value(), folder.string() + ": cannot be listed");
  }
  return names;
}

void remove_tree(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) log::warn("{}: cannot be removed: {}; delete it by hand", folder.string(), error.message());
}

// Digits alone, all of `text`.
std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<StepName> committed_in(const fs::path& folder) {
  std::vector<StepName> steps;
  for (const std::string& name : folders_in(folder)) {
    if (const auto step = parse_step_name(name)) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

enum class Best { no, yes, unknown };

// A damaged one is no best; one that cannot be read now (a network file system that hiccups, no descriptor left) may
// be.
Best is_best(const fs::path& checkpoint) {
  try {
    return read_manifest(checkpoint).best ? Best::yes : Best::no;
  } catch (const Error& failure) {
    log::warn("retention: {}", failure.what());
    return failure.code() == ExitCode::data ? Best::no : Best::unknown;
  }
}

}  // namespace

std::string slice_name(std::uint64_t index, std::uint64_t count) {
  return fmt::format("slice-{:05}-of-{:05}.h5", index, count);
}

std::string attempt_name(std::uint64_t step, const std::string& attempt) {
  return fmt::format("{}{:012}.{}", attempt_prefix, step, attempt);
}

std::string text_of(const StepName& name) {
  return name.revision == 0 ? fmt::format("{}{:012}", step_prefix, name.step)
                            : fmt::format("{}{:012}.r{}", step_prefix, name.step, name.revision);
}

std::optional<StepName> parse_step_name(const std::string& name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const std::string_view rest = std::string_view(name).substr(step_prefix.size());
  const std::size_t dot = rest.find(".r");
  const auto step = number_in(rest.substr(0, dot));
  const auto revision =
      dot == std::string_view::npos ? std::optional<std::uint64_t>(0) : number_in(rest.substr(dot + 2));
  if (!step || !revision || text_of({*step, *revision}) != name) return std::nullopt;
  return StepName{*step, *revision};
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> checkpoints;
  for (const StepName& name : committed_in(folder)) checkpoints.push_back(folder / text_of(name));
  return checkpoints;
}

void apply_retention(const fs::path& folder, std::int64_t keep_last, const std::string& attempt,
                     const StepName& committed) {
  std::int64_t kept = 0;
  bool best_kept = false;
  std::optional<std::uint64_t> previous;
  for (const StepName& name : committed_in(folder)) {
    const fs::path checkpoint = folder / text_of(name);
    const bool superseded = previous == name.step;
    previous = name.step;
    const Best best = superseded || best_kept ? Best::no : is_best(checkpoint);
    best_kept = best_kept || best == Best::yes;
    if (name == committed || (!superseded && (kept < keep_last || best != Best::no))) {
      ++kept;
      continue;
    }
    const fs::path trash = folder / fmt::format("{}{}.{}", trash_prefix, text_of(name), attempt);
    durable_rename(checkpoint, trash);
    remove_tree(trash);
  }
}

std::uint64_t step_of(const fs::path& checkpoint) {
  const auto name = parse_step_name(checkpoint.filename().string());
  return name ? name->step : 0;
}

std::vector<std::string> list_set_aside(const fs::path& folder) {
  std::vector<std::string> names;
  for (const std::string& name : folders_in(folder)) {
    if (name.starts_with(aside_prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void set_aside(const fs::path& checkpoint, const std::string& why) {
  const fs::path folder = checkpoint.parent_path();
  const std::string name = fmt::format("{}{}", aside_prefix, checkpoint.filename().string());
  fs::path to = folder / name;
  std::error_code error;
  for (int i = 2; fs::exists(to, error); ++i) to = folder / fmt::format("{}.{}", name, i);
  try {
    replace_file(checkpoint / "why.txt", why + "\n");
  } catch (const Error& failure) {  // a full disk: the name says enough
    log::warn("{}", failure.what());
  }
  durable_rename(checkpoint, to);
}

void sweep(const fs::path& folder) {
  for (const std::string& name : folders_in(folder)) {
    if (name.starts_with(attempt_prefix) || name.starts_with(trash_prefix)) remove_tree(folder / name);
  }
}

}  // namespace trireme::io
