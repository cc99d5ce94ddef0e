// A folder of its own for one test, removed with what is in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace trireme {

class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "/trireme-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
      throw std::filesystem::filesystem_error(pattern, std::error_code(errno, std::generic_category()));
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace trireme
