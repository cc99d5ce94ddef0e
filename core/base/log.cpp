// Log lines as plain writes: each is composed first and leaves in one call, so lines of threads don't mix.
#include "core/base/log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/rank.h"

namespace trireme::log {
namespace {

struct State {
  std::mutex mutex;
  int rank = 0, world_size = 1;
  std::string prefix;  // "[rank 3 node17] "; empty where there is one rank
  std::optional<File> file;
  bool progress_shown = false;
};

State& state() {
  static State* const shared = new State;  // never destroyed: threads may log while the program exits
  return *shared;
}

const char* word_for(Level level) {
  switch (level) {
    case Level::debug: return "debug: ";
    case Level::info: return "";
    case Level::warning: return "warning: ";
    case Level::error: return "error: ";
  }
  return "";
}

std::string now() {
  const auto time = std::chrono::system_clock::now();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)),
                     milliseconds);
}

void print(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

void write_to_file(State& s, Level level, std::string_view text) {
  if (!s.file) return;
  const char* const word = level == Level::info ? "info: " : word_for(level);
  const std::string line = fmt::format("{} {}{}{}\n", now(), s.prefix, word, text);
  try {
    s.file->write(std::as_bytes(std::span(line)));
  } catch (const Error& failure) {  // a full disk must not end the run by way of its log
    s.file.reset();
    print(stderr, fmt::format("{}warning: the log ends here: {}\n", s.prefix, failure.what()));
  }
}

void clear_progress(State& s) {
  if (!s.progress_shown) return;
  print(stdout, "\r\x1b[K");
  s.progress_shown = false;
}

// What `trireme launch` says of its own output counts: ranks under mpirun have a terminal of mpirun's making.
bool on_terminal() {
  const char* const said = std::getenv("TRIREME_TERMINAL");
  return said != nullptr ? std::string_view(said) == "1" : ::isatty(STDOUT_FILENO) == 1;
}

// As much of a line as one row of the terminal holds: a wrapped line could not be overwritten.
std::string_view fitting(std::string_view line) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return line;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(line[i]) & 0xC0u) != 0x80u;
    if (starts_character && ++columns >= size.ws_col) return line.substr(0, i);
  }
  return line;
}

}  // namespace

void set_rank(int rank, int world_size) {
  const std::string host = host_name();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.rank = rank;
  s.world_size = world_size;
  s.prefix = world_size > 1 ? fmt::format("[rank {} {}] ", rank, host.substr(0, host.find('.'))) : "";
}

void open(int rank, int world_size, const std::filesystem::path& file) {
  set_rank(rank, world_size);
  std::error_code ignored;  // File reports what matters
  std::filesystem::create_directories(file.parent_path(), ignored);
  File opened(file, O_WRONLY | O_CREAT | O_APPEND);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.file = std::move(opened);
}

void write(Level level, std::string_view text) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  write_to_file(s, level, text);
  // Errors of every rank reach the console: the run directory may be what failed.
  const bool on_console = level == Level::error || (s.rank == 0 && level != Level::debug);
  if (!on_console) return;
  clear_progress(s);
  if (level == Level::info) {
    print(stdout, fmt::format("{}\n", text));
  } else {
    print(stderr, fmt::format("{}{}{}\n", s.prefix, word_for(level), text));
  }
}

void progress(std::string_view line, bool keep) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (keep) write_to_file(s, Level::info, line);
  if (s.rank != 0) return;
  static const bool terminal = on_terminal();
  if (keep) {
    clear_progress(s);
    print(stdout, fmt::format("{}\n", line));
  } else if (terminal) {
    print(stdout, fmt::format("\r{}\x1b[K", fitting(line)));
    s.progress_shown = true;
  }
}

void flush() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.progress_shown) print(stdout, "\n");
  s.progress_shown = false;
  std::fflush(stdout);
  std::fflush(stderr);
}

}  // namespace trireme::log
