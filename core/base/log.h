// The log: rank 0 to the console (info to stdout, the rest to stderr), every rank to its own file, errors of
// every rank to stderr as well. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace trireme::log {

enum class Level { debug, info, warning, error };

// Before this call, and where there is one rank, lines carry no rank; else they look like
// "[rank 3 node17] warning: …". Info lines on the console carry no prefix. The file is appended to, each line
// with its UTC time; debug lines go there alone. Throws Error(io) where the file cannot be opened.
void open(int rank, int world_size, const std::filesystem::path& file);
// Only the console side, for programs without a run directory.
void set_rank(int rank, int world_size);
// One line of rank 0 that overwrites itself on a terminal and is dropped elsewhere unless `keep` (then it stays,
// and goes to the file too).
void progress(std::string_view line, bool keep);
void write(Level level, std::string_view text);
void flush();

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace trireme::log
