// `trireme inspect`: what a checkpoint, a data file or a run directory holds; checkpoints are verified.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/cli/cli.h"
#include "io/checkpoint/loader.h"
#include "io/hdf5/hdf5.h"

namespace trireme::cli {
namespace {

using Json = nlohmann::ordered_json;
using std::filesystem::path;

int inspect_checkpoint(const path& checkpoint, bool json) {
  const io::Inspection inspection = io::inspect(checkpoint);
  log::info("{}", json ? io::to_json(inspection) : io::to_text(inspection));
  return static_cast<int>(ExitCode::done);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

int inspect_data(const path& file, bool json) {
  const auto opened = io::Hdf5File::open(file);
  Json datasets = Json::array();
  std::string text = fmt::format("{}: {} bytes, {} datasets", file.string(), std::filesystem::file_size(file),
                                 opened->datasets().size());
  const auto creator = opened->attribute("creator");
  if (creator) text += fmt::format(", by {}", *creator);
  for (const std::string& name : opened->datasets()) {
    io::DatasetInfo info;
    try {
      info = opened->info(name);
    } catch (const Error& error) {  // text, a compound type: of no use in a job, no reason to hide the others
      datasets.push_back({{"path", name}, {"not_readable", error.what()}});
      text += fmt::format("\n  {}  not readable: {}", name, error.what());
      continue;
    }
    datasets.push_back({{"path", info.path},
                        {"shape", info.shape.dims()},
                        {"dtype", name_of(info.dtype)},
                        {"stored_type", info.stored_type},
                        {"chunk_rows", info.chunk_rows},
                        {"filters", info.filters}});
    const std::string stored = info.chunked ? fmt::format("chunks of {} rows", info.chunk_rows) : "contiguous";
    text += fmt::format("\n  {}  {}  {} (read as {})  {}{}", info.path, info.shape.text(), info.stored_type,
                        name_of(info.dtype), stored, info.filters.empty() ? "" : ", " + joined(info.filters));
  }
  Json document{{"file", file.string()}, {"bytes", std::filesystem::file_size(file)}};
  if (creator) document["creator"] = *creator;
  document["datasets"] = std::move(datasets);
  log::info("{}", json ? document.dump(2) : text);
  return static_cast<int>(ExitCode::done);
}

int inspect(const path& what, bool json) {
  if (!std::filesystem::exists(what)) {
    fail(ExitCode::data, "{}: no such file or directory; give a checkpoint, an HDF5 file or a run directory",
         what.string());
  }
  if (!std::filesystem::is_directory(what)) return inspect_data(what, json);
  if (std::filesystem::exists(what / "manifest.json")) return inspect_checkpoint(what, json);
  const path folder = std::filesystem::is_directory(what / "checkpoints") ? what / "checkpoints" : what;
  const std::vector<path> checkpoints = io::list_checkpoints(folder);
  if (checkpoints.empty()) {
    fail(ExitCode::data, "{}: neither a checkpoint (no manifest.json) nor a folder with committed checkpoints",
         what.string());
  }
  return inspect_checkpoint(checkpoints.front(), json);
}

}  // namespace

void add_inspect(Command program) {
  Command command = program.add("inspect", "Show and verify a checkpoint; list the datasets of an HDF5 file");
  command.footer(
      "Examples:\n"
      "  trireme inspect runs/quickstart                       its newest checkpoint\n"
      "  trireme inspect runs/quickstart/checkpoints/step-000000000200 --json\n"
      "  trireme inspect fashion/train-00000-of-00004.h5");
  struct Arguments {
    std::string what;
    bool json = false;
  };
  const auto given = std::make_shared<Arguments>();
  command.text("path", given->what, "checkpoint, HDF5 file or run directory", {.type = "PATH", .required = true});
  command.flag("--json", given->json, "print one JSON document (a checkpoint's has state_sha256)");
  command.does([given] { return inspect(given->what, given->json); });
}

}  // namespace trireme::cli
