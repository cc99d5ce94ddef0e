// Where plugins are looked for, and what is checked of a file before it is loaded.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace trireme::plugin {

// The folders, in order: TRIREME_PLUGIN_PATH's, then those beside the program.
[[nodiscard]] std::vector<std::filesystem::path> search_path();
// The file of a plugin's name, or of a path (contains '/'). Throws Error(usage) with the places searched.
[[nodiscard]] std::filesystem::path find_plugin(const std::string& plugin);
// A regular, readable file. World-writable (it or its folder) is refused unless trusted. Throws Error(usage).
void check_file(const std::filesystem::path& file, bool trust);
// An ELF shared library of this machine. Throws Error(usage) where it is none, Error(internal) for another machine's.
void check_elf(const std::filesystem::path& file);

}  // namespace trireme::plugin
