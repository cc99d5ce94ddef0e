// The one table of a job's keys. A new key is a member of Job and a row here.
#include "core/base/job_keys.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/error.h"

namespace trireme::job_table {
namespace {

constexpr std::int64_t two_31 = std::int64_t{1} << 31;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// Where a value lies in Job: Job::member, or Job::section.member.
template <class T>
struct Top {
  T Job::*member;
  const T& operator()(const Job& job) const { return job.*member; }
  T& operator()(Job& job) const { return job.*member; }
};
template <class Section, class T>
struct Inner {
  Section Job::*section;
  T Section::*member;
  const T& operator()(const Job& job) const { return job.*section.*member; }
  T& operator()(Job& job) const { return job.*section.*member; }
};
template <class T>
Top<T> in(T Job::*member) {
  return {member};
}
template <class Section, class T>
Inner<Section, T> in(Section Job::*section, T Section::*member) {
  return {section, member};
}

template <class T>
Value to_value(const T& member) {
  return member;
}
Value to_value(const std::filesystem::path& member) { return member.string(); }
Value to_value(const std::vector<std::filesystem::path>& member) {
  Texts texts;
  for (const auto& path : member) texts.push_back(path.string());
  return texts;
}
template <class T>
void assign(T& member, const Value& value) {
  member = std::get<T>(value);
}
void assign(std::filesystem::path& member, const Value& value) { member = std::get<std::string>(value); }
void assign(std::vector<std::filesystem::path>& member, const Value& value) {
  const auto& texts = std::get<Texts>(value);
  member.assign(texts.begin(), texts.end());
}

const char* type_name(const Value& value) {
  constexpr const char* names[] = {"boolean", "integer", "number", "text", "texts", "table of text", "table"};
  return names[value.index()];
}

std::string no_fault(const Value&) { return ""; }

// The parts that all rows share.
template <class Access>
Row row(const char* name, const char* unit, Effect effect, const Access& access, const char* help) {
  Row made;
  made.get = [access](const Job& job) { return to_value(access(job)); };
  made.set = [access](Job& job, const Value& value) { assign(access(job), value); };
  made.fault = no_fault;
  made.effect = effect;
  made.fallback = made.get(Job{});
  made.key = {name, type_name(made.fallback), unit, text_of(made.fallback), "", help};
  return made;
}

std::string bound_text(std::int64_t bound) {
  if (bound == largest) return "2^63 - 1";
  if (bound > 65536 && (bound & (bound - 1)) == 0) return fmt::format("2^{}", std::llround(std::log2(bound)));
  return fmt::format("{}", bound);
}

template <class Access>
Row integer(const char* name, const char* unit, std::int64_t low, std::int64_t high, Effect effect,
            const Access& access, const char* help) {
  Row made = row(name, unit, effect, access, help);
  made.key.range = bound_text(low) + " … " + bound_text(high);
  made.fault = [low, high](const Value& value) -> std::string {
    const auto given = std::get<std::int64_t>(value);
    return given < low || given > high ? "is out of range" : "";
  };
  return made;
}

struct Limits {
  double low, high;
  bool low_excluded = false, high_excluded = false;
};

template <class Access>
Row number(const char* name, const char* unit, Limits limits, Effect effect, const Access& access, const char* help) {
  Row made = row(name, unit, effect, access, help);
  made.key.range = fmt::format("{}{} … {}{}", limits.low_excluded ? "above " : "", limits.low,
                               limits.high_excluded ? "below " : "", limits.high);
  made.fault = [limits](const Value& value) -> std::string {
    const double given = std::get<double>(value);
    if (!std::isfinite(given)) return "is not a finite number";
    const bool low_enough = limits.high_excluded ? given < limits.high : given <= limits.high;
    const bool high_enough = limits.low_excluded ? given > limits.low : given >= limits.low;
    return low_enough && high_enough ? "" : "is out of range";
  };
  return made;
}

template <class Access>
Row choice(const char* name, const Texts& choices, Effect effect, const Access& access, const char* help) {
  Row made = row(name, "", effect, access, help);
  made.key.range = fmt::format("{}", fmt::join(choices, " | "));
  made.fault = [choices](const Value& value) -> std::string {
    const auto& given = std::get<std::string>(value);
    for (const auto& one : choices) {
      if (one == given) return "";
    }
    const std::string near = nearest(given, choices);
    return near.empty() ? "is not known" : fmt::format("is not known (did you mean \"{}\"?)", near);
  };
  return made;
}

Row required(Row made) {
  made.required = true;
  made.key.fallback = "";
  return made;
}

// A path that may not be empty.
template <class Access>
Row path(const char* name, PathKind kind, Effect effect, const Access& access, const char* help) {
  Row made = row(name, "", effect, access, help);
  made.paths = kind;
  made.fault = [](const Value& value) -> std::string { return std::get<std::string>(value).empty() ? "is empty" : ""; };
  return made;
}

// Texts of which none may be empty.
template <class Access>
Row texts(const char* name, PathKind kind, std::size_t least, Effect effect, const Access& access, const char* help) {
  Row made = row(name, "", effect, access, help);
  made.paths = kind;
  if (least > 0) made.key.range = "at least one";
  made.fault = [least](const Value& value) -> std::string {
    const auto& given = std::get<Texts>(value);
    for (const auto& text : given) {
      if (text.empty()) return "has an empty text";
    }
    return given.size() < least ? "is empty" : "";
  };
  return made;
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  for (const char c : text) {
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '-') return false;
  }
  return true;
}

template <class Access>
Row fields(const Access& access, const char* help) {
  Row made = row("data.fields", "", Effect::bits, access, help);
  made.key.range = "at least one";
  made.fault = [](const Value& value) -> std::string {
    const auto& given = std::get<TextTable>(value);
    for (const auto& [field, dataset] : given) {
      if (!is_name(field))
        return fmt::format("has the field name {}: letters, digits, _ and - only", toml_quoted(field));
      if (dataset.empty()) return fmt::format("has an empty path for field {}", field);
    }
    return given.empty() ? "is empty" : "";
  };
  return made;
}

// "500 steps" → 500; 0 where it is nothing of the kind.
std::int64_t steps_in(std::string_view text) {
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (error != std::errc{} || steps < 1 || steps > two_31) return 0;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  return rest == " steps" || (steps == 1 && rest == " step") ? steps : 0;
}

Row eval_every() {
  Row made;
  made.get = [](const Job& job) -> Value {
    if (job.eval.every_epoch) return std::string("epoch");
    if (job.eval.every_steps == 0) return std::string("never");
    return fmt::format("{} steps", job.eval.every_steps);
  };
  made.set = [](Job& job, const Value& value) {
    const auto& text = std::get<std::string>(value);
    job.eval.every_epoch = text == "epoch";
    job.eval.every_steps = steps_in(text);
  };
  made.fault = [](const Value& value) -> std::string {
    const auto& text = std::get<std::string>(value);
    return text == "epoch" || text == "never" || steps_in(text) != 0 ? "" : "is not known";
  };
  made.fallback = made.get(Job{});
  made.key = {"eval.every", "text", "", text_of(made.fallback), "epoch | N steps | never", "when to evaluate"};
  return made;
}

Row eval_best() {
  Row made;
  made.get = [](const Job& job) -> Value {
    if (job.eval.best_metric.empty()) return std::string();
    return job.eval.best_metric + (job.eval.best_is_max ? ":max" : ":min");
  };
  made.set = [](Job& job, const Value& value) {
    const auto& text = std::get<std::string>(value);
    job.eval.best_metric = text.substr(0, text.rfind(':'));
    job.eval.best_is_max = !text.ends_with(":min");
  };
  made.fault = [](const Value& value) -> std::string {
    const auto& text = std::get<std::string>(value);
    const bool fits = text.size() > 4 && (text.ends_with(":max") || text.ends_with(":min"));
    return text.empty() || fits ? "" : "is not NAME:max or NAME:min";
  };
  made.fallback = made.get(Job{});
  made.key = {
      "eval.best", "text", "", "\"\"", "NAME:max | NAME:min", "metric that checkpoint.keep_best goes by; empty: none"};
  return made;
}

std::vector<Row> build() {
  using enum Effect;
  using Data = Job::Data;
  using Train = Job::Train;
  using Optimizer = Job::Optimizer;
  using Checkpoint = Job::Checkpoint;
  std::vector<Row> made = {
      required(path("plugin", PathKind::plugin, bits, in(&Job::plugin),
                    "the model: a name on TRIREME_PLUGIN_PATH, or with a slash a file")),
      choice("device", {"auto", "cpu", "cuda"}, none, in(&Job::device), "where to compute"),
      choice("precision", {"fp32", "tf32"}, bits, in(&Job::precision),
             "number format of forward and backward; tf32: products on CUDA alone"),
      choice("reproducible", {"any-world", "same-world", "strict"}, bits, in(&Job::reproducible),
             "the same bits on any number of ranks, on this number, or refuse what could change them"),
      row("plugin_trust", "", none, in(&Job::plugin_trust), "load a plugin that other users may write"),

      row("model", "", bits, in(&Job::model), "keys that the plugin declares; `trireme plugin describe` lists them"),

      required(fields(
          in(&Job::data, &Data::fields),
          "field of the plugin → path of its dataset in the data files; \"/path[sample]\" where a file is one sample "
          "and the dataset has no extent of samples")),
      required(texts("data.train", PathKind::beside_job, 1, none, in(&Job::data, &Data::train),
                     "training files; * and ? match names; relative to the job file")),
      texts("data.eval", PathKind::beside_job, 0, none, in(&Job::data, &Data::eval), "evaluation files, likewise"),
      choice("data.shuffle", {"global", "block", "none"}, bits, in(&Job::data, &Data::shuffle),
             "order of samples: any (each rank keeps 8 bytes a sample for it, 16 from 2^32 samples on, besides "
             "memory_mib), "
             "chunks permuted and mixed within a window, or as stored"),
      integer("data.window", "chunks", 1, 1 << 20, bits, in(&Job::data, &Data::window),
              "chunks mixed by shuffle = \"block\""),
      texts("data.transform", PathKind::none, 0, bits, in(&Job::data, &Data::transform),
            "what is done to fields, in order, as \"image: scale 1/255\""),
      integer("data.memory_mib", "MiB", 1, 1 << 24, none, in(&Job::data, &Data::memory_mib),
              "decoded chunks kept in memory, per rank"),
      integer("data.classes", "", 0, two_31, none, in(&Job::data, &Data::classes),
              "labels must be below; 0: not checked"),
      row("data.label", "", none, in(&Job::data, &Data::label), "the field that data.classes is about"),

      integer("train.batch", "samples", 1, two_31, bits, in(&Job::train, &Train::batch),
              "global batch, whatever the number of ranks"),
      integer("train.micro_batches", "", 0, 65536, bits, in(&Job::train, &Train::micro_batches),
              "parts of a batch, the most ranks possible; best a power of two; 0: ranks of the first start"),
      integer("train.epochs", "epochs", 0, 1'000'000, bits, in(&Job::train, &Train::epochs),
              "passes over the data; 0: train.steps decides; --set of one replaces the other"),
      integer("train.steps", "steps", 0, two_31, bits, in(&Job::train, &Train::steps),
              "updates; 0: train.epochs decides; --set of one replaces the other"),
      integer("train.threads", "threads", 0, 1024, none, in(&Job::train, &Train::threads),
              "compute threads per rank; 0: cores ÷ ranks of the machine"),
      integer("train.seed", "", 0, largest, bits, in(&Job::train, &Train::seed), "every random number comes from it"),
      number("train.watchdog_s", "s", {1, 1e6}, none, in(&Job::train, &Train::watchdog_s),
             "a rank without progress for so long hangs; well above the longest step"),
      integer("train.bucket_kib", "KiB", 4, 1 << 20, none, in(&Job::train, &Train::bucket_kib),
              "gradients that travel as one"),

      choice("optimizer.kind", {"sgd", "adamw"}, bits, in(&Job::optimizer, &Optimizer::kind), "update rule"),
      number("optimizer.lr", "", {0, 1000}, bits, in(&Job::optimizer, &Optimizer::lr), "learning rate after warm-up"),
      number("optimizer.momentum", "", {0, 1, false, true}, bits, in(&Job::optimizer, &Optimizer::momentum), "of sgd"),
      row("optimizer.nesterov", "", bits, in(&Job::optimizer, &Optimizer::nesterov), "Nesterov's momentum, of sgd"),
      number("optimizer.beta1", "", {0, 1, false, true}, bits, in(&Job::optimizer, &Optimizer::beta1),
             "decay of the first moment, of adamw"),
      number("optimizer.beta2", "", {0, 1, false, true}, bits, in(&Job::optimizer, &Optimizer::beta2),
             "decay of the second moment, of adamw"),
      number("optimizer.epsilon", "", {1e-30, 1}, bits, in(&Job::optimizer, &Optimizer::epsilon),
             "added to the root of the second moment, of adamw"),
      number("optimizer.weight_decay", "", {0, 1000}, bits, in(&Job::optimizer, &Optimizer::weight_decay),
             "of parameters that the plugin lets decay"),
      choice("optimizer.schedule", {"constant", "cosine"}, bits, in(&Job::optimizer, &Optimizer::schedule),
             "course of the learning rate after warm-up"),
      integer("optimizer.warmup_steps", "steps", 0, two_31, bits, in(&Job::optimizer, &Optimizer::warmup_steps),
              "linear rise of the learning rate from 0"),
      number("optimizer.lr_end", "", {0, 1000}, bits, in(&Job::optimizer, &Optimizer::lr_end),
             "learning rate at the end of cosine"),
      number("optimizer.clip_norm", "", {0, 1e30}, bits, in(&Job::optimizer, &Optimizer::clip_norm),
             "largest global norm of the gradient; 0: not clipped"),

      eval_every(),
      integer("eval.batch", "samples", 0, two_31, none, in(&Job::eval, &Job::Eval::batch),
              "samples of one round; 0: train.batch"),
      eval_best(),

      integer("checkpoint.every_steps", "steps", 0, two_31, none, in(&Job::checkpoint, &Checkpoint::every_steps),
              "0: at the end and on a stop only"),
      integer("checkpoint.keep_last", "", 2, 1'000'000, none, in(&Job::checkpoint, &Checkpoint::keep_last),
              "newest checkpoints kept"),
      row("checkpoint.keep_best", "", none, in(&Job::checkpoint, &Checkpoint::keep_best),
          "keep the one that is best by eval.best, too"),

      path("run.dir", PathKind::beside_job, none, in(&Job::run, &Job::Run::dir),
           "where results go; relative to the job file"),
      integer("run.log_every_steps", "steps", 1, two_31, none, in(&Job::run, &Job::Run::log_every_steps),
              "a line of progress and metrics"),
  };
  for (Row& one : made) {
    if (one.key.name == "run.dir") one.key.fallback = "\"runs/NAME\" beside the job file NAME.toml";
    if (one.key.type == "boolean") one.key.range = "true | false";
  }
  return made;
}

}  // namespace

std::span<const Row> rows() {
  static const std::vector<Row> table = build();
  return table;
}

const Row* find(std::string_view name) {
  for (const Row& one : rows()) {
    if (one.key.name == name) return &one;
  }
  return nullptr;
}

bool is_section(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  for (const Row& one : rows()) {
    if (one.key.name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace trireme::job_table

namespace trireme {

std::span<const JobKey> job_keys() {
  static const std::vector<JobKey> keys = [] {
    std::vector<JobKey> made;
    for (const auto& one : job_table::rows()) made.push_back(one.key);
    return made;
  }();
  return keys;
}

}  // namespace trireme
