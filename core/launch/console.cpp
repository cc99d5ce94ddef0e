// Lines of stderr: held while mpirun's frame is open, then passed on or dropped.
#include "core/launch/console.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace trireme::launch {
namespace {

bool is_frame(const std::string& text) {
  return text.size() >= 60 && std::all_of(text.begin(), text.end(), [](char c) { return c == '-'; });
}

bool starts(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

bool only_tells_the_code(const std::vector<std::string>& block) {
  return block.size() > 1 && (starts(block[1], "Primary job  terminated normally, but") ||
                              starts(block[1], "mpirun detected that one or more processes exited"));
}

void write(const std::string& text) {
  const std::string line = text + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t written = ::write(STDERR_FILENO, line.data() + sent, line.size() - sent);
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;  // our own stderr is gone; the ranks' is still read
    if (written > 0) sent += static_cast<std::size_t>(written);
  }
}

}  // namespace

void Console::keep_cause(const std::string& text) {
  if (cause_.empty() && (starts(text, "error: ") || text.find("] error: ") != std::string::npos)) cause_ = text;
  if (noticed_.empty() && (starts(text, "mpirun noticed that") || starts(text, "srun: error:"))) noticed_ = text;
}

void Console::line(const std::string& text) {
  keep_cause(text);
  if (is_frame(text)) {
    const bool closes = !held_.empty();
    held_.push_back(text);
    if (!closes) return;
    if (only_tells_the_code(held_)) {
      held_.clear();
    } else {
      end();
    }
  } else if (!held_.empty() && held_.size() < 40) {
    held_.push_back(text);
  } else {
    end();
    write(text);
  }
}

void Console::end() {
  for (const std::string& text : held_) write(text);
  held_.clear();
}

}  // namespace trireme::launch
