// The lock, and HDF5's error stack as one line of text.
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "io/hdf5/handle.h"
#include "io/hdf5/hdf5.h"

namespace trireme::io {
namespace {

std::recursive_mutex& process_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t collect(unsigned /*depth*/, const H5E_error2_t* error, void* words) {
  auto& found = *static_cast<std::vector<std::string>*>(words);
  const std::string text = error->desc != nullptr ? error->desc : "";
  if (!text.empty() && std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
  return 0;
}

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(process_mutex()) {
  // HDF5's own clean-up at exit flushes again what could not be written (a full disk) and crashes on it; handles are
  // ours.
  static const bool own_end = H5dont_atexit() >= 0;
  (void)own_end;
  // A thread-safe build keeps an error stack, and whether it prints, for each thread.
  thread_local bool quiet = false;
  if (!quiet) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    quiet = true;
  }
}

Hdf5Words hdf5_words() {
  std::vector<std::string> words;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &words);
  // The cause is innermost; the outer calls repeat it in vaguer words.
  constexpr std::size_t kept = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kept); ++i) text += (i == 0 ? "" : "; ") + words[i];
  if (text.empty()) return {"HDF5 gives no reason"};
  // "file write failed: time = …, filename = …, errno = 28, error message = 'No space left on device', buf = …": what
  // failed, and the system's own words.
  constexpr std::string_view key = "error message = '";
  const std::size_t found = text.find(key), begin = found + key.size();
  if (found == std::string::npos) return {text};
  const std::size_t details = std::min({text.find(": time = "), text.find(", errno = "), text.find(", name = ")});
  return {fmt::format("{}: {}", text.substr(0, details), text.substr(begin, text.find('\'', begin) - begin)), true};
}

void fail_hdf5(const std::string& where, const std::string& what) {
  const auto [words, of_system_call] = hdf5_words();
  fail(of_system_call ? ExitCode::io : ExitCode::data, "{}: {}: {}", where, what, words);
}

std::string hdf5_version() {
  const Hdf5Lock lock;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace trireme::io
