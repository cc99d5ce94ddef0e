// The lock, and HDF5's error stack as one line of text.
#include <algorithm>
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
  // HDF5's own clean-up at exit flushes again what could not be written (a full disk) and crashes on it; handles are ours.
  static const bool own_end = H5dont_atexit() >= 0;
  (void)own_end;
  // A thread-safe build keeps an error stack, and whether it prints, for each thread.
  thread_local bool quiet = false;
  if (!quiet) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    quiet = true;
  }
}

std::string hdf5_words() {
  std::vector<std::string> words;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &words);
  // The cause is innermost; the outer calls repeat it in vaguer words.
  constexpr std::size_t kept = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kept); ++i) text += (i == 0 ? "" : "; ") + words[i];
  return text.empty() ? "HDF5 gives no reason" : text;
}

bool tells_of_system_call(const std::string& words) { return words.find("errno = ") != std::string::npos; }

void fail_hdf5(const std::string& where, const std::string& what) {
  const std::string words = hdf5_words();
  const ExitCode code = tells_of_system_call(words) ? ExitCode::io : ExitCode::data;
  fail(code, "{}: {}: {}", where, what, words);
}

std::string hdf5_version() {
  const Hdf5Lock lock;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace trireme::io
