// check_alike: every rank sees the values of all, so all find the same difference and leave alike.
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/comm/group.h"

namespace trireme::comm {

namespace {

using Values = std::map<std::string, std::string>;

void put(std::string& to, const std::string& text) {
  const std::uint64_t length = text.size();
  to.append(reinterpret_cast<const char*>(&length), sizeof length);
  to += text;
}

std::string take(const std::string& from, std::size_t& at) {
  std::uint64_t length = 0;
  std::memcpy(&length, from.data() + at, sizeof length);
  at += sizeof length;
  std::string text = from.substr(at, length);
  at += length;
  return text;
}

Values unpack(const std::string& packed) {
  Values values;
  for (std::size_t at = 0; at < packed.size();) {
    std::string key = take(packed, at);
    values[key] = take(packed, at);
  }
  return values;
}

// A long text (a whole job file) from a little before the place where it differs.
std::string shown(const std::string& text, const std::string& other) {
  constexpr std::size_t most = 120, before = 30;
  if (text.size() <= most) return "'" + text + "'";
  std::size_t differs = 0;
  while (differs < text.size() && differs < other.size() && text[differs] == other[differs]) ++differs;
  const std::size_t from = differs > before ? differs - before : 0;
  const std::string part = text.substr(from, most);
  return fmt::format("'{}{}{}'", from > 0 ? "…" : "", part, from + part.size() < text.size() ? "…" : "");
}

std::string shown(const Values& values, const std::string& key, const Values& others) {
  const auto found = values.find(key);
  if (found == values.end()) return "no such key";
  const auto other = others.find(key);
  return shown(found->second, other == others.end() ? std::string() : other->second);
}

}  // namespace

void check_alike(Group& group, std::span<const std::pair<std::string, std::string>> values) {
  std::string packed;
  for (const auto& [key, value] : values) put(packed, key), put(packed, value);
  const std::vector<std::string> all = group.all_gather_now(packed);
  const Values first = unpack(all[0]);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const Values here = unpack(all[rank]);
    Values either = first;
    either.insert(here.begin(), here.end());
    for (const auto& [key, unused] : either) {
      const auto a = first.find(key), b = here.find(key);
      if (a != first.end() && b != here.end() && a->second == b->second) continue;
      fail(ExitCode::usage,
           "ranks differ in {}: rank 0 has {}, rank {} has {}; start all ranks with the same job, "
           "plugin, data and version",
           key, shown(first, key, here), rank, shown(here, key, first));
    }
  }
}

}  // namespace trireme::comm
