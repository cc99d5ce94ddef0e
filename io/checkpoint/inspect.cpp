// Verifies a whole checkpoint and tells what it holds.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "io/checkpoint/format.h"
#include "io/checkpoint/loader.h"
#include "io/checkpoint/slice.h"

namespace trireme::io {
namespace {

using Json = nlohmann::ordered_json;

// A tensor of the state under its full name, "moment1/fc1.weight".
struct Tensor {
  std::string name;
  std::size_t arena = 0;
  const Entry* entry = nullptr;
};

std::vector<Tensor> tensors_of(const Manifest& manifest) {
  std::vector<Tensor> tensors;
  for (std::size_t arena = 0; arena < manifest.arenas.size(); ++arena) {
    for (const Entry& entry : manifest.arenas[arena].entries) {
      tensors.push_back({manifest.arenas[arena].name + "/" + entry.name, arena, &entry});
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  return tensors;
}

std::uint64_t bytes_of_tensor(const Manifest& manifest, const Tensor& tensor) {
  return tensor.entry->range.size() * size_of(manifest.arenas[tensor.arena].dtype);
}

// Reads a whole arena, every block and the gaps between tensors too.
std::vector<std::byte> read_arena(const Manifest& manifest, std::vector<SliceReader>& readers, std::size_t number) {
  const Manifest::Arena& arena = manifest.arenas[number];
  const std::size_t size = size_of(arena.dtype);
  std::vector<std::byte> memory(arena.elements * size);
  for (std::uint64_t index = 0; index < readers.size(); ++index) {
    const Range range = slice_of(arena.elements, index, readers.size());
    if (!range.empty())
      readers[index].read(number, 0, std::span(memory).subspan(range.begin * size, range.size() * size));
  }
  return memory;
}

void add(Sha256& digest, const std::string& text) { digest.add(bytes_of(text)); }

}  // namespace

Inspection inspect(const std::filesystem::path& checkpoint) {
  Inspection inspection;
  inspection.manifest = read_manifest(checkpoint);
  const Manifest& manifest = inspection.manifest;
  std::vector<SliceReader> readers;
  readers.reserve(manifest.slices.size());
  for (std::uint64_t index = 0; index < manifest.slices.size(); ++index) {
    readers.emplace_back(manifest, index);
    inspection.bytes += manifest.slices[index].bytes;
  }
  Sha256 digest;
  std::size_t loaded = manifest.arenas.size();
  std::vector<bool> seen(manifest.arenas.size());
  std::vector<std::byte> memory;  // one arena at a time: names sort by arena first
  const auto load = [&](std::size_t arena) {
    if (loaded == arena) return;
    memory = read_arena(manifest, readers, arena);
    loaded = arena;
    seen[arena] = true;
  };
  for (const Tensor& tensor : tensors_of(manifest)) {
    const Manifest::Arena& arena = manifest.arenas[tensor.arena];
    load(tensor.arena);
    add(digest, fmt::format("{} {} {}\n", tensor.name, name_of(arena.dtype), tensor.entry->shape.text()));
    digest.add(
        std::span(memory).subspan(tensor.entry->range.begin * size_of(arena.dtype), bytes_of_tensor(manifest, tensor)));
  }
  for (std::size_t arena = 0; arena < seen.size(); ++arena) {
    if (!seen[arena]) load(arena);  // one without tensors is checked all the same
  }
  add(digest, fmt::format("\nstep {}\ncursor {}\n", manifest.scalars.step, manifest.scalars.cursor));
  for (const auto& [key, value] : manifest.scalars.values) add(digest, fmt::format("{}={}\n", key, value));
  inspection.state_sha256 = digest.hex();
  return inspection;
}

std::string to_text(const Inspection& inspection) {
  const Manifest& manifest = inspection.manifest;
  const Scalars& scalars = manifest.scalars;
  std::string text = fmt::format(
      "{}\n"
      "  step           {}\n"
      "  next sample    {}\n"
      "  written by     {} rank{}, {} micro-batches{}{}\n"
      "  size           {} bytes in {} file{}, every checksum verified\n"
      "  state_sha256   {}\n",
      manifest.folder.string(), scalars.step, scalars.cursor, scalars.world_size, scalars.world_size == 1 ? "" : "s",
      scalars.micro_batches, manifest.best ? ", best so far" : "", scalars.evaluation_due ? ", evaluation due" : "",
      inspection.bytes, manifest.slices.size(), manifest.slices.size() == 1 ? "" : "s", inspection.state_sha256);
  const auto list = [&](const char* title, const std::map<std::string, std::string>& values) {
    if (values.empty()) return;
    text += fmt::format("\n{}\n", title);
    for (const auto& [key, value] : values) text += fmt::format("  {:<32} {}\n", key, value);
  };
  text += "\nTensors\n";
  for (const Tensor& tensor : tensors_of(manifest)) {
    text += fmt::format("  {:<40} {:<5} {}\n", tensor.name, name_of(manifest.arenas[tensor.arena].dtype),
                        tensor.entry->shape.text());
  }
  list("State", scalars.values);
  list("Job", scalars.identity);
  list("Notes", scalars.notes);
  return text;
}

std::string to_json(const Inspection& inspection) {
  const Manifest& manifest = inspection.manifest;
  const Scalars& scalars = manifest.scalars;
  Json json = {{"checkpoint", manifest.folder.string()},
               {"ok", true},
               {"state_sha256", inspection.state_sha256},
               {"step", scalars.step},
               {"cursor", scalars.cursor},
               {"bytes", inspection.bytes},
               {"format", manifest.format},
               {"world_size", scalars.world_size},
               {"micro_batches", scalars.micro_batches},
               {"evaluation_due", scalars.evaluation_due},
               {"best", manifest.best},
               {"values", scalars.values},
               {"notes", scalars.notes},
               {"identity", scalars.identity},
               {"tensors", Json::array()}};
  for (const Tensor& tensor : tensors_of(manifest)) {
    json["tensors"].push_back(
        {{"name", tensor.name},
         {"dtype", std::string(name_of(manifest.arenas[tensor.arena].dtype))},
         {"shape", std::vector<std::int64_t>(tensor.entry->shape.dims().begin(), tensor.entry->shape.dims().end())},
         {"bytes", bytes_of_tensor(manifest, tensor)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trireme::io
