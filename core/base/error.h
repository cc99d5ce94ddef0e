// The one exception of Trireme. Inside, functions throw it; main turns it into an exit code.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/exit_code.h"

namespace trireme {

// The text names the culprit (rank, file, dataset, index, key, both values) and what to do.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// throw Error with a formatted text: fail(ExitCode::data, "{}: {} samples, fewer than a batch of {}", …).
template <class... Args>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Error of ExitCode::io for a failed system call: "TEXT: <strerror(error)>".
[[noreturn]] void fail_errno(int error, const std::string& text);

// What was thrown, as an Error: of a file system call io, of memory that ran out and of all else internal.
[[nodiscard]] Error as_error(const std::exception_ptr& thrown);

// The candidate nearest to `name` by edit distance (Damerau-Levenshtein), or empty where none is near
// (more than a third of the name differs). For "unknown key 'bacth': did you mean 'batch'?".
template <class Range>
[[nodiscard]] std::string nearest(const std::string& name, const Range& candidates);

[[nodiscard]] std::size_t edit_distance(const std::string& a, const std::string& b);

template <class Range>
std::string nearest(const std::string& name, const Range& candidates) {
  std::string best;
  std::size_t least = name.size() / 3 + 2;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(name, std::string(candidate));
    if (distance < least) least = distance, best = std::string(candidate);
  }
  return best;
}

}  // namespace trireme
