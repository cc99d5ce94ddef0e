// A plugin's shared library, found, checked and loaded. Never unloaded.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trireme/abi.h"

namespace trireme::plugin {

// Each refusal has its own message (Error(usage) for what the user names, Error(internal) for what the plugin is):
// not found (with the places searched and the nearest name), a folder, not readable, world-writable file or folder
// unless trusted (group-writable: a warning), not ELF or of another machine, loader errors in the loader's words, no
// symbol, table too short, other ABI major.
class Library {
 public:
  // `plugin`: a file (contains '/'), or a name looked up on TRIREME_PLUGIN_PATH, then in plugins/ beside the program
  // (build tree: <bin>/../plugins; prefix: lib/trireme/plugins).
  [[nodiscard]] static std::shared_ptr<const Library> load(const std::string& plugin, bool trust);
  // Names found on the search path with their files.
  [[nodiscard]] static std::vector<std::pair<std::string, std::filesystem::path>> available();

  [[nodiscard]] const trireme_plugin& table() const { return *table_; }  // shorter tables are padded with nulls
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const std::string& digest() const { return digest_; }  // XXH3 of the file's bytes, hex
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string version() const;
  [[nodiscard]] std::string build() const;

 private:
  Library() = default;
  std::shared_ptr<const trireme_plugin> table_;
  std::filesystem::path path_;
  std::string digest_;
};

}  // namespace trireme::plugin
