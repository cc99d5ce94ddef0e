// Texts of system errors, and the distance behind "did you mean".
#include "core/base/error.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>
#include <vector>

namespace trireme {

void fail_errno(int error, const std::string& text) {
  throw Error(ExitCode::io, text + ": " + std::generic_category().message(error));
}

Error as_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().string();
    return {ExitCode::io, fmt::format("{}{}{}", path, path.empty() ? "" : ": ", error.code().message())};
  } catch (const std::bad_alloc&) {
    return {ExitCode::internal, "out of memory on the host: use a smaller batch, model or data.memory_mib"};
  } catch (const std::exception& error) {
    return {ExitCode::internal, error.what()};
  } catch (...) {
    return {ExitCode::internal, "an exception that is no std::exception"};
  }
}

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours, each at cost 1.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace trireme
