// What a disk may hold after a crash: recorded operations replayed onto a model that knows what was flushed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/checkpoint/trace.h"

namespace trireme::trace {

// Which changes survive a crash though nobody flushed them. Of files: none, all, or those of every second file. Of
// folders: their entries (made, renamed, removed) in the traced folder itself, and in those below.
struct Survival {
  enum class Files { none, all, even, odd } files = Files::none;
  bool top_entries = false, lower_entries = false;
};

// path → bytes; folders end in '/'.
using Tree = std::map<std::string, std::string>;

class Disk {
 public:
  explicit Disk(std::filesystem::path folder);
  // `flushed` false: a sync that does nothing (a planted fault).
  void apply(const Operation& operation, bool flushed = true);
  [[nodiscard]] Tree after_crash(const Survival& survival) const;
  [[nodiscard]] Tree now() const { return after_crash({Survival::Files::all, true, true}); }

 private:
  struct Node {
    bool folder = false;
    std::string bytes, flushed_bytes;
    std::map<std::string, std::size_t> entries, flushed_entries;
  };
  [[nodiscard]] std::size_t find(const std::filesystem::path& path) const;
  Node& parent_of(const std::filesystem::path& path);
  void collect(std::size_t node, const std::string& prefix, const Survival& survival, Tree& tree) const;

  std::filesystem::path folder_;
  std::vector<Node> nodes_;  // 0: the traced folder; it exists
  std::map<int, std::size_t> open_;
};

// Makes `tree` real below `folder`, which must be empty; and reads one back.
void write_tree(const Tree& tree, const std::filesystem::path& folder);
[[nodiscard]] Tree read_tree(const std::filesystem::path& folder);

}  // namespace trireme::trace
