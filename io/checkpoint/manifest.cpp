// manifest.json: what a checkpoint holds, with a checksum over itself.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "io/checkpoint/format.h"
#include "io/checkpoint/loader.h"

namespace trireme::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t largest_manifest = std::size_t{256} << 20;
constexpr std::string_view head = "{\n  \"checksum\": \"";
constexpr std::string_view neck = "\",";
constexpr std::size_t digits = 16;
constexpr std::uint64_t most_elements = std::uint64_t{1} << 56;  // of an arena: bytes and sums of them never wrap

Json to_json(const Manifest::Arena& arena) {
  Json entries = Json::array();
  for (const Entry& entry : arena.entries) {
    entries.push_back({{"name", entry.name},
                       {"shape", std::vector<std::int64_t>(entry.shape.dims().begin(), entry.shape.dims().end())},
                       {"begin", entry.range.begin},
                       {"end", entry.range.end}});
  }
  return {{"name", arena.name},
          {"dtype", std::string(name_of(arena.dtype))},
          {"elements", arena.elements},
          {"entries", std::move(entries)}};
}

Manifest::Arena arena_from(const Json& json) {
  Manifest::Arena arena;
  arena.name = json.at("name").get<std::string>();
  const auto dtype = json.at("dtype").get<std::string>();
  const auto known = dtype_named(dtype);
  if (!known) fail(ExitCode::data, "arena {} has the unknown type '{}'", arena.name, dtype);
  arena.dtype = *known;
  arena.elements = json.at("elements").get<std::uint64_t>();
  if (arena.elements > most_elements) {
    fail(ExitCode::data, "arena {} has {} elements; none has more than {}", arena.name, arena.elements, most_elements);
  }
  for (const Json& entry : json.at("entries")) {
    const auto dims = entry.at("shape").get<std::vector<std::int64_t>>();
    arena.entries.push_back({entry.at("name").get<std::string>(), Shape(std::span(dims)),
                             Range{entry.at("begin").get<std::uint64_t>(), entry.at("end").get<std::uint64_t>()}});
    const Entry& added = arena.entries.back();
    if (added.range.begin > added.range.end || added.range.end > arena.elements ||
        added.range.size() != static_cast<std::uint64_t>(added.shape.elements())) {
      fail(ExitCode::data, "tensor {}/{} of shape {} stands at [{}, {}) of {} elements", arena.name, added.name,
           added.shape.text(), added.range.begin, added.range.end, arena.elements);
    }
  }
  return arena;
}

// Extents inside the file, so that a reader need not ask again.
void check_slice(const Manifest& manifest, std::uint64_t index) {
  const SliceFile& slice = manifest.slices[index];
  if (const std::string name = slice_name(index, manifest.slices.size()); slice.file != name) {
    fail(ExitCode::data, "slice {} is called '{}'; its name is {}", index, slice.file, name);
  }
  const auto check = [&](const std::string& dataset, std::uint64_t bytes) {
    if (bytes == 0) return;
    const auto at = slice.offsets.find(dataset);
    if (at == slice.offsets.end()) fail(ExitCode::data, "{} has no dataset /{}", slice.file, dataset);
    if (at->second > slice.bytes || bytes > slice.bytes - at->second) {
      fail(ExitCode::data, "{}: /{} of {} bytes at {} does not fit into a file of {} bytes", slice.file, dataset, bytes,
           at->second, slice.bytes);
    }
  };
  std::uint64_t blocks = 0;
  for (const Manifest::Arena& arena : manifest.arenas) {
    const std::uint64_t bytes = slice_of(arena.elements, index, manifest.slices.size()).size() * size_of(arena.dtype);
    blocks += (bytes + block_bytes - 1) / block_bytes;
    check(arena.name, bytes);
  }
  check("blocks", blocks * sizeof(std::uint64_t));
}

Manifest manifest_from(const Json& json) {
  Manifest manifest;
  manifest.format = json.at("format").get<int>();
  if (manifest.format != format_version) {
    // Sound, only not for us: not to be set aside.
    fail(ExitCode::usage, "format {}; this program reads format {}: use the version that wrote it", manifest.format,
         format_version);
  }
  Scalars& scalars = manifest.scalars;
  scalars.step = json.at("step").get<std::uint64_t>();
  scalars.cursor = json.at("cursor").get<std::uint64_t>();
  scalars.world_size = json.at("world_size").get<std::uint64_t>();
  scalars.micro_batches = json.at("micro_batches").get<std::uint64_t>();
  scalars.evaluation_due = json.at("evaluation_due").get<bool>();
  manifest.best = json.at("best").get<bool>();
  scalars.values = json.at("values").get<std::map<std::string, std::string>>();
  scalars.notes = json.at("notes").get<std::map<std::string, std::string>>();
  scalars.identity = json.at("identity").get<std::map<std::string, std::string>>();
  for (const Json& arena : json.at("arenas")) manifest.arenas.push_back(arena_from(arena));
  for (const Json& slice : json.at("slices")) {
    manifest.slices.push_back({slice.at("file").get<std::string>(), slice.at("blocks_hash").get<std::string>(),
                               slice.at("bytes").get<std::uint64_t>(),
                               slice.at("offsets").get<std::map<std::string, std::uint64_t>>(),
                               slice.at("rest_hash").get<std::string>()});
  }
  if (manifest.slices.empty()) fail(ExitCode::data, "no slices");
  for (std::uint64_t index = 0; index < manifest.slices.size(); ++index) check_slice(manifest, index);
  return manifest;
}

std::string checksum_of(std::string_view text) { return fmt::format("{:016x}", xxh3(std::as_bytes(std::span(text)))); }

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const Scalars& scalars = manifest.scalars;
  Json json = {{"format", manifest.format},
               {"step", scalars.step},
               {"cursor", scalars.cursor},
               {"world_size", scalars.world_size},
               {"micro_batches", scalars.micro_batches},
               {"evaluation_due", scalars.evaluation_due},
               {"best", manifest.best},
               {"values", scalars.values},
               {"notes", scalars.notes},
               {"identity", scalars.identity},
               {"arenas", Json::array()},
               {"slices", Json::array()}};
  for (const Manifest::Arena& arena : manifest.arenas) json["arenas"].push_back(to_json(arena));
  for (const SliceFile& slice : manifest.slices) {
    json["slices"].push_back({{"file", slice.file},
                              {"bytes", slice.bytes},
                              {"blocks_hash", slice.blocks_hash},
                              {"rest_hash", slice.rest_hash},
                              {"offsets", slice.offsets}});
  }
  std::string body;
  try {
    body = json.dump(2).substr(1);  // without the opening brace, which comes before the checksum
  } catch (const Json::exception& failure) {
    fail(ExitCode::internal, "manifest of step {}: a name or value is no UTF-8 text: {}", scalars.step, failure.what());
  }
  body += '\n';
  return fmt::format("{}{}{}{}", head, checksum_of(body), neck, body);
}

Manifest read_manifest(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / manifest_name;
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    fail(ExitCode::data, "{}: missing; the checkpoint is not complete", file.string());
  }
  const std::string text = read_file(file, largest_manifest);
  const std::size_t body_at = head.size() + digits + neck.size();
  const std::string_view view = text;
  if (view.size() < body_at || view.substr(0, head.size()) != head ||
      view.substr(head.size() + digits, neck.size()) != neck) {
    fail(ExitCode::data, "{}: does not begin as a manifest does ({} bytes)", file.string(), text.size());
  }
  const std::string_view recorded = view.substr(head.size(), digits), body = view.substr(body_at);
  const std::string computed = checksum_of(body);
  if (recorded != computed) {
    fail(ExitCode::data, "{}: checksum {} recorded, {} computed over {} bytes; the file was changed or torn",
         file.string(), recorded, computed, body.size());
  }
  try {
    Manifest manifest = manifest_from(Json::parse(text));
    manifest.folder = checkpoint;
    return manifest;
  } catch (const Json::exception& failure) {
    fail(ExitCode::data, "{}: {}", file.string(), failure.what());
  } catch (const Error& failure) {
    const ExitCode code = failure.code() == ExitCode::usage ? ExitCode::usage : ExitCode::data;
    throw Error(code, fmt::format("{}: {}", file.string(), failure.what()));
  }
}

}  // namespace trireme::io
