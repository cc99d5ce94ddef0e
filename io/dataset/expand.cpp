// glob(3), sorted independently of the locale, each file once.
#include "io/dataset/expand.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_no_match(const fs::path& pattern) {
  const std::string text = pattern.string();
  const bool plain = text.find_first_of("*?[") == std::string::npos;
  const fs::path folder = pattern.parent_path();
  std::error_code ignored;
  if (!folder.empty() && folder.string().find_first_of("*?[") == std::string::npos && !fs::exists(folder, ignored)) {
    fail(ExitCode::data, "{}: no such file: the folder {} does not exist", text, folder.string());
  }
  if (!plain) fail(ExitCode::data, "{}: no file matches this pattern", text);
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  const std::string near = nearest(pattern.filename().string(), names);
  if (near.empty()) fail(ExitCode::data, "{}: no such file", text);
  fail(ExitCode::data, "{}: no such file; did you mean {}?", text, near);
}

std::vector<fs::path> matches(const fs::path& pattern) {
  std::error_code ignored;
  if (fs::exists(pattern, ignored)) return {pattern};
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<fs::path> paths;
  for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status != 0 && status != GLOB_NOMATCH) fail(ExitCode::io, "{}: its folder cannot be read", pattern.string());
  if (paths.empty()) fail_no_match(pattern);
  std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return paths;
}

}  // namespace

std::vector<fs::path> expand(std::span<const fs::path> patterns) {
  std::vector<fs::path> files;
  std::map<std::pair<dev_t, ino_t>, fs::path> seen;
  for (const fs::path& pattern : patterns) {
    for (fs::path& path : matches(pattern)) {
      struct stat status {};
      if (::stat(path.c_str(), &status) == 0) {
        const auto [other, is_new] = seen.try_emplace({status.st_dev, status.st_ino}, path);
        if (!is_new && other->second == path) {
          fail(ExitCode::data, "{}: two patterns of the job match it; its samples would come twice in each epoch",
               path.string());
        }
        if (!is_new) {
          fail(ExitCode::data, "{} and {} are the same file; its samples would come twice in each epoch",
               other->second.string(), path.string());
        }
      }
      files.push_back(std::move(path));
    }
  }
  return files;
}

}  // namespace trireme::io
