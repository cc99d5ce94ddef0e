// What forbids a resume, and a rank's share of a checkpoint read into place.
#include "io/checkpoint/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "io/checkpoint/format.h"
#include "io/checkpoint/slice.h"

namespace trireme::io {
namespace {

std::string text_of(const Entry& entry) {
  return fmt::format("{} at [{}, {})", entry.shape.text(), entry.range.begin, entry.range.end);
}

void compare_entries(const Manifest::Arena& saved, const ArenaState& here, std::vector<std::string>& lines) {
  const auto find = [](const std::vector<Entry>& entries, const std::string& name) {
    return std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == name; });
  };
  for (const Entry& entry : saved.entries) {
    const auto other = find(here.entries, entry.name);
    if (other == here.entries.end()) {
      lines.push_back(
          fmt::format("tensor {}/{}: {} in the checkpoint, none here", saved.name, entry.name, entry.shape.text()));
    } else if (other->shape != entry.shape) {
      lines.push_back(fmt::format("tensor {}/{}: {} in the checkpoint, {} here", saved.name, entry.name,
                                  entry.shape.text(), other->shape.text()));
    } else if (other->range != entry.range) {
      lines.push_back(fmt::format("tensor {}/{}: {} in the checkpoint, {} here (another order of tensors)", saved.name,
                                  entry.name, text_of(entry), text_of(*other)));
    }
  }
  for (const Entry& entry : here.entries) {
    if (find(saved.entries, entry.name) == saved.entries.end()) {
      lines.push_back(
          fmt::format("tensor {}/{}: none in the checkpoint, {} here", saved.name, entry.name, entry.shape.text()));
    }
  }
}

}  // namespace

std::vector<std::string> tensor_differences(const Manifest& manifest, std::span<const ArenaState> arenas) {
  std::vector<std::string> lines;
  for (const ArenaState& here : arenas) {
    const auto saved = std::find_if(manifest.arenas.begin(), manifest.arenas.end(),
                                    [&](const auto& a) { return a.name == here.name; });
    if (saved == manifest.arenas.end()) {
      lines.push_back(fmt::format("arena {}: none in the checkpoint, {} tensors here", here.name, here.entries.size()));
      continue;
    }
    const std::size_t before = lines.size();
    if (here.dtype != saved->dtype) {
      lines.push_back(fmt::format("arena {}: {} in the checkpoint, {} here", saved->name, name_of(saved->dtype),
                                  name_of(here.dtype)));
    }
    compare_entries(*saved, here, lines);
    if (lines.size() == before && here.elements() != saved->elements) {
      lines.push_back(fmt::format("arena {}: {} elements in the checkpoint, {} here", saved->name, saved->elements,
                                  here.elements()));
    }
  }
  return lines;
}

std::vector<std::string> differences(const Manifest& manifest, std::span<const ArenaState> arenas,
                                     const std::map<std::string, std::string>& identity) {
  std::vector<std::string> lines = tensor_differences(manifest, arenas);
  for (const Manifest::Arena& saved : manifest.arenas) {
    if (std::none_of(arenas.begin(), arenas.end(), [&](const auto& a) { return a.name == saved.name; })) {
      lines.push_back(
          fmt::format("arena {}: {} tensors in the checkpoint, none here", saved.name, saved.entries.size()));
    }
  }
  for (const auto& [key, value] : manifest.scalars.identity) {
    const auto here = identity.find(key);
    if (here == identity.end()) {
      lines.push_back(fmt::format("{}: {} in the checkpoint, not set here", key, value));
    } else if (here->second != value) {
      lines.push_back(fmt::format("{}: {} in the checkpoint, {} here", key, value, here->second));
    }
  }
  for (const auto& [key, value] : identity) {
    if (!manifest.scalars.identity.contains(key)) {
      lines.push_back(fmt::format("{}: not set in the checkpoint, {} here", key, value));
    }
  }
  return lines;
}

void load_share(const Manifest& manifest, std::span<const ArenaState> arenas, std::uint64_t index,
                std::uint64_t count) {
  const std::uint64_t writers = manifest.slices.size();
  std::vector<std::size_t> saved(arenas.size());  // arena here → its number in the manifest
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    const auto found = std::find_if(manifest.arenas.begin(), manifest.arenas.end(),
                                    [&](const auto& arena) { return arena.name == arenas[i].name; });
    if (found == manifest.arenas.end() || found->dtype != arenas[i].dtype || found->elements != arenas[i].elements()) {
      fail(ExitCode::data, "{}: has no arena {} of {} {}", manifest.folder.string(), arenas[i].name,
           arenas[i].elements(), name_of(arenas[i].dtype));
    }
    saved[i] = static_cast<std::size_t>(found - manifest.arenas.begin());
  }
  for (std::uint64_t writer = 0; writer < writers; ++writer) {
    std::optional<SliceReader> reader;  // opened only where something is needed of it
    for (std::size_t i = 0; i < arenas.size(); ++i) {
      const Range wanted = arenas[i].slice(index, count), there = arenas[i].slice(writer, writers);
      const std::uint64_t begin = std::max(wanted.begin, there.begin), end = std::min(wanted.end, there.end);
      if (begin >= end) continue;
      if (!reader) reader.emplace(manifest, writer);
      const std::size_t size = size_of(arenas[i].dtype);
      reader->read(saved[i], (begin - there.begin) * size,
                   arenas[i].memory.subspan(begin * size, (end - begin) * size));
    }
  }
}

}  // namespace trireme::io
