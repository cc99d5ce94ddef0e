// Finding a plugin's file, and its checks before anything of it runs.
#include "core/plugin/search.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/plugin/library.h"

namespace trireme::plugin {
namespace {

namespace fs = std::filesystem;

constexpr const char* suffix = ".so";

#if defined(__x86_64__)
constexpr unsigned machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned machine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr unsigned machine = EM_PPC64;
#else
constexpr unsigned machine = EM_RISCV;
#endif

std::string machine_name(unsigned number) {
  switch (number) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "AArch64";
    case EM_PPC64: return "PowerPC 64";
    case EM_RISCV: return "RISC-V";
    case EM_386: return "x86 (32 bit)";
    default: return "ELF machine " + std::to_string(number);
  }
}

std::string joined(const std::vector<fs::path>& folders) {
  std::string text;
  for (const auto& folder : folders) text += (text.empty() ? "" : ", ") + folder.string();
  return text;
}

// Says who may write `path`; refuses what everybody may.
void check_writers(const fs::path& path, const char* what, bool trust) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) fail_errno(errno, fmt::format("plugin {}: stat", path.string()));
  const auto mode = state.st_mode & 07777u;
  if ((mode & S_IWOTH) != 0 && !trust) {
    fail(ExitCode::usage,
         "plugin {}: this {} is writable for everybody (mode {:04o}), so anybody could run code as you; "
         "chmod o-w it, or set plugin_trust = true",
         path.string(), what, mode);
  }
  if ((mode & S_IWGRP) != 0 && (mode & S_IWOTH) == 0 && !trust) {
    log::warn("plugin {}: this {} is writable for its group (mode {:04o})", path.string(), what, mode);
  }
}

}  // namespace

std::vector<fs::path> search_path() {
  std::vector<fs::path> folders;
  if (const char* path = std::getenv("TRIREME_PLUGIN_PATH")) {
    const std::string text(path);
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(':', begin), text.size());
      if (end > begin) folders.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path above = program.parent_path().parent_path();
    folders.push_back(above / "plugins");                      // of a build tree
    folders.push_back(above / "lib" / "trireme" / "plugins");  // of a prefix
  }
  return folders;
}

std::vector<std::pair<std::string, fs::path>> Library::available() {
  std::vector<std::pair<std::string, fs::path>> found;
  for (const auto& folder : search_path()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != suffix) continue;
      const std::string name = entry.path().stem().string();
      const bool hidden =
          std::any_of(found.begin(), found.end(), [&](const auto& other) { return other.first == name; });
      if (!hidden) found.emplace_back(name, entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

fs::path find_plugin(const std::string& plugin) {
  if (plugin.empty()) fail(ExitCode::usage, "plugin: no name given");
  if (plugin.find('/') != std::string::npos) {
    if (!fs::exists(plugin)) fail(ExitCode::usage, "plugin {}: there is no such file", plugin);
    return plugin;
  }
  const auto folders = search_path();
  for (const auto& folder : folders) {
    fs::path file = folder / (plugin + suffix);
    if (fs::exists(file)) return file;
  }
  std::vector<std::string> names;
  for (const auto& known : Library::available()) names.push_back(known.first);
  const std::string near = nearest(plugin, names);
  fail(ExitCode::usage,
       "plugin '{}': no {}{} in {}{}; add its folder to TRIREME_PLUGIN_PATH, or give the file's path with a '/'",
       plugin, plugin, suffix, joined(folders), near.empty() ? "" : "; did you mean '" + near + "'?");
}

void check_file(const fs::path& file, bool trust) {
  if (fs::is_directory(file))
    fail(ExitCode::usage, "plugin {}: is a folder; the .so file in it is wanted", file.string());
  if (!fs::is_regular_file(file)) fail(ExitCode::usage, "plugin {}: is no regular file", file.string());
  if (::access(file.c_str(), R_OK) != 0) {
    fail(ExitCode::usage, "plugin {}: cannot be read: {}", file.string(), std::strerror(errno));
  }
  check_writers(file, "file", trust);
  check_writers(fs::canonical(file).parent_path(), "folder", trust);
}

void check_elf(const fs::path& file) {
  Elf64_Ehdr header{};
  const File input(file, O_RDONLY);
  const auto size = fs::file_size(file);
  if (size >= EI_NIDENT) {
    input.read_at(std::as_writable_bytes(std::span(&header, 1)).first(std::min<std::size_t>(size, sizeof(header))), 0);
  }
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    fail(ExitCode::usage, "plugin {}: is no shared library (no ELF file, {} bytes)", file.string(), size);
  }
  constexpr auto order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != order || header.e_machine != machine) {
    fail(ExitCode::internal, "plugin {}: was built for {}, this program runs on {}; build it here", file.string(),
         machine_name(header.e_machine), machine_name(machine));
  }
  if (header.e_type != ET_DYN) {
    fail(ExitCode::usage, "plugin {}: is an ELF file but no shared library; link it with -shared", file.string());
  }
}

}  // namespace trireme::plugin
