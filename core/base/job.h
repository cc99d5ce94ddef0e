// A job: what `trireme train job.toml` is told. One table (job_keys) holds every key with type, unit, default,
// range and help; parsing, checks, --help-keys and the reference page come from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trireme {

// A value as the job file has it, with its place: "job.toml:12" or "--set train.batch".
using JobScalar = std::variant<bool, std::int64_t, double, std::string>;
struct JobValue {
  JobScalar value;
  std::string place;
};

struct Job {
  std::string plugin;                      // a name on TRIREME_PLUGIN_PATH, or a file
  std::string device = "auto";             // auto | cpu | cuda
  std::string precision = "fp32";          // fp32; tf32 on CUDA
  std::string reproducible = "any-world";  // any-world | same-world | strict
  bool plugin_trust = false;               // load a plugin that others may write
  std::map<std::string, JobValue> model;   // [model], checked by the plugin's declarations

  struct Data {
    std::map<std::string, std::string> fields;       // field → HDF5 path
    std::vector<std::filesystem::path> train, eval;  // patterns made absolute, $VAR expanded
    std::string shuffle = "global";                  // global | block | none
    std::int64_t window = 64;                        // chunks mixed by shuffle = "block"
    std::vector<std::string> transform;              // "image: scale 1/255"
    std::int64_t memory_mib = 2048;                  // decoded chunks kept, per rank
    std::int64_t classes = 0;                        // labels must be below; 0: not checked
    std::string label = "label";                     // the field that `classes` is about
  } data;

  struct Train {
    std::int64_t batch = 128;            // global batch, samples
    std::int64_t micro_batches = 0;      // V; 0: world size of the first start
    std::int64_t epochs = 0, steps = 0;  // one of them
    std::int64_t threads = 0;            // compute threads per rank; 0: cores ÷ local ranks
    std::int64_t seed = 1;
    double watchdog_s = 600;  // a step without progress is a hang
    std::int64_t bucket_kib = 1024;
  } train;

  struct Optimizer {
    std::string kind = "sgd";  // sgd | adamw
    double lr = 0.1;
    double momentum = 0.9;
    bool nesterov = false;
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double weight_decay = 0;
    std::string schedule = "constant";  // constant | cosine
    std::int64_t warmup_steps = 0;
    double lr_end = 0;     // end of cosine
    double clip_norm = 0;  // 0: none
  } optimizer;

  struct Eval {
    std::int64_t every_steps = 0;  // "500 steps"
    bool every_epoch = false;      // "epoch"
    std::int64_t batch = 0;        // samples per round; 0: train.batch
    std::string best_metric;       // "accuracy:max"
    bool best_is_max = true;
  } eval;

  struct Checkpoint {
    std::int64_t every_steps = 0;  // 0: at the end and on stop only
    std::int64_t keep_last = 3;
    bool keep_best = true;
  } checkpoint;

  struct Run {
    std::filesystem::path dir;  // default: runs/NAME beside NAME.toml
    std::int64_t log_every_steps = 50;
  } run;

  std::filesystem::path file;  // where it was read from
};

// Where a key stands and what it may be; one row of the table.
struct JobKey {
  std::string name;      // "train.batch"
  std::string type;      // "integer", "number", "boolean", "text", "texts", "table of text"
  std::string unit;      // "samples", "s", "" …
  std::string fallback;  // as written in TOML
  std::string range;     // "1 … 2^31", "fp32 | bf16", ""
  std::string help;      // one line
};
[[nodiscard]] std::span<const JobKey> job_keys();

// Reads, checks and resolves a job file; `sets` are KEY=VALUE of --set, applied in order (VALUE as in TOML; a bare
// word is text). Throws Error(usage) naming file:line, key, value, range, and the nearest known key.
[[nodiscard]] Job read_job(const std::filesystem::path& file, std::span<const std::string> sets);
[[nodiscard]] Job parse_job(std::string_view toml, const std::filesystem::path& file,
                            std::span<const std::string> sets);

// The resolved job as TOML: every key, all paths absolute. parse_job of it gives the same job.
[[nodiscard]] std::string to_toml(const Job& job);
// key → value as text for every key that changes the trained bits (so not run.dir, logging, bucket sizes,
// memory, checkpoint cadence, threads); what ranks must agree on and what a checkpoint records.
[[nodiscard]] std::map<std::string, std::string> identity(const Job& job);

// The table for `--help-keys`, and as a Markdown page.
[[nodiscard]] std::string help_keys();
[[nodiscard]] std::string reference_page();

}  // namespace trireme
