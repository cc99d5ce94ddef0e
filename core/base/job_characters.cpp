// Which bytes a job may hold, and where.
#include <algorithm>

#include "core/base/job_keys.h"

namespace trireme::job_table {
namespace {

// The end of the string that begins with a quotation mark at `begin` (TOML 1.0, "String"). A string that is not
// closed ends with its line, or where it may span lines with the text.
std::size_t end_of_string(std::string_view toml, std::size_t begin) {
  const char mark = toml[begin];
  const std::string closing(3, mark);
  const bool long_form = toml.substr(begin).starts_with(closing);
  std::size_t i = begin + (long_form ? 3 : 1);
  while (i < toml.size()) {
    if (mark == '"' && toml[i] == '\\') {
      i += 2;
    } else if (!long_form && toml[i] == '\n') {
      return i;
    } else if (!long_form && toml[i] == mark) {
      return i + 1;
    } else if (long_form && toml.substr(i).starts_with(closing)) {
      std::size_t end = i + 3;  // up to two marks more belong to the text before
      while (end < toml.size() && end < i + 5 && toml[end] == mark) ++end;
      return end;
    } else {
      ++i;
    }
  }
  return toml.size();
}

}  // namespace

std::size_t first_outside_ascii(std::string_view toml) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  std::size_t i = toml.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  while (i < toml.size()) {
    const char c = toml[i];
    if (c == '#') {
      i = std::min(toml.find('\n', i), toml.size());
    } else if (c == '"' || c == '\'') {
      i = end_of_string(toml, i);
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return i;
    } else {
      ++i;
    }
  }
  return std::string_view::npos;
}

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. NUL, which would cut a path, is refused.
bool valid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead == 0) return false;
    std::size_t more = 0;
    std::uint32_t code = lead, least = 0;
    if (lead >= 0x80) {
      if (lead >= 0xC2 && lead < 0xE0)
        more = 1, code = lead & 0x1Fu, least = 0x80;
      else if (lead >= 0xE0 && lead < 0xF0)
        more = 2, code = lead & 0x0Fu, least = 0x800;
      else if (lead >= 0xF0 && lead < 0xF5)
        more = 3, code = lead & 0x07u, least = 0x10000;
      else
        return false;
    }
    if (more >= text.size() - i) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0u) != 0x80u) return false;
      code = code << 6 | (next & 0x3Fu);
    }
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace trireme::job_table
