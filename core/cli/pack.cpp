// `trireme pack`: IDX or HDF5 into the data files of a job.
#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/cli/cli.h"
#include "io/dataset/pack.h"

namespace trireme::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// "packing [###...]  50 %  30000 of 60000 samples"
std::string bar(std::int64_t done, std::int64_t total) {
  constexpr std::int64_t width = 30;
  const std::int64_t filled = total == 0 ? width : done * width / total;
  std::string text = "packing [";
  for (std::int64_t i = 0; i < width; ++i) text += i < filled ? "#" : ".";
  return fmt::format("{}] {:3} %  {} of {} samples", text, total == 0 ? 100 : done * 100 / total, done, total);
}

std::map<std::string, std::string> fields_of(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> fields;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      fail(ExitCode::usage, "--field {}: write NAME=FILE, as in --field image=train-images-idx3-ubyte.gz", text);
    }
    if (!fields.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      fail(ExitCode::usage, "--field {}: the field '{}' is given twice", text, text.substr(0, equals));
    }
  }
  return fields;
}

int pack_all(const io::PackOptions& options) {
  const Clock::time_point start = Clock::now();
  Clock::time_point shown = start - std::chrono::hours(1);
  std::int64_t samples = 0;
  const std::vector<std::filesystem::path> files = io::pack(options, [&](std::int64_t done, std::int64_t total) {
    samples = total;
    if (Clock::now() - shown < std::chrono::milliseconds(100) && done != total) return;
    shown = Clock::now();
    log::progress(bar(done, total), false);
  });
  std::uintmax_t bytes = 0;
  for (const std::filesystem::path& file : files) bytes += std::filesystem::file_size(file);
  log::progress(fmt::format("packed {} samples into {} file{}, {:.1f} MB, in {:.1f} s: {}{}", samples, files.size(),
                            files.size() == 1 ? "" : "s", static_cast<double>(bytes) / 1e6, seconds_since(start),
                            files.front().string(), files.size() == 1 ? "" : " …"),
                true);
  return static_cast<int>(ExitCode::done);
}

}  // namespace

void add_pack(Command program) {
  Command command = program.add("pack", "Pack IDX or HDF5 into HDF5 data files");
  command.footer(
      "Each file is written under a temporary name and renamed when it is whole.\n"
      "Examples:\n"
      "  trireme pack --field image=train-images-idx3-ubyte.gz --field label=train-labels-idx1-ubyte.gz \\\n"
      "               --output fashion/train --files 4\n"
      "  trireme pack --field image=photos.h5:/pixels --output photos/train --files 16 --deflate 4 --shuffle-filter");
  struct Arguments {
    io::PackOptions options;
    std::vector<std::string> fields;
    std::string output;
    std::int64_t deflate = 0, seed = 1;
  };
  const auto given = std::make_shared<Arguments>();
  io::PackOptions& options = given->options;
  command.texts("--field", given->fields, "a field and where it comes from: an IDX file (.gz too) or FILE.h5:/dataset",
                {.type = "NAME=FILE", .required = true});
  command.text("--output", given->output, "start of the files' names: OUTPUT-00000-of-00004.h5",
               {.type = "PATH", .required = true});
  command.integer("--files", options.files, 1, 1 << 20, "number of files");
  command.integer("--chunk-rows", options.chunk_rows, 0, 1 << 30, "samples of a chunk; 0: contiguous datasets");
  command.integer("--deflate", given->deflate, 0, 9, "compression level; 0: none");
  command.flag("--shuffle-filter", options.shuffle, "HDF5's byte shuffle before compression");
  command.flag("--fletcher32", options.fletcher32, "a checksum for each chunk");
  command.flag("--shuffle", options.shuffle_samples, "put the samples in a random order");
  command.integer("--seed", given->seed, 0, std::numeric_limits<std::int64_t>::max(), "of that order");
  command.flag("--overwrite", options.overwrite, "replace files that exist");
  command.does([given] {
    given->options.fields = fields_of(given->fields);
    given->options.output = given->output;
    given->options.deflate = static_cast<int>(given->deflate);
    given->options.seed = static_cast<std::uint64_t>(given->seed);
    return pack_all(given->options);
  });
}

}  // namespace trireme::cli
