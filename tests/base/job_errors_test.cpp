// What a job file may not say, and the words in which each is refused: place, key, value, range, nearest name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/job.h"
#include "core/base/job_keys.h"
#include "tests/base/folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* least_lines =
    "plugin = \"p\"\n"
    "data.fields = { x = \"/x\" }\n"
    "data.train = [\"a.h5\"]\n"
    "train.steps = 5\n";

// The text with which a job is refused; the code must be usage.
std::string refusal(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    (void)parse_job(text, "job.toml", sets);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "(accepted)";
}
std::string with(const std::string& lines) { return refusal(least_lines + lines); }  // `lines` begin on line 5
std::string set(const std::string& assignment) { return refusal(least_lines, {assignment}); }

TEST(UnknownKey, NamesTheNearest) {
  EXPECT_EQ(with("train.bacth = 3\n"), "job.toml:5: unknown key 'train.bacth'; did you mean 'train.batch'?");
  EXPECT_EQ(with("[optimizer]\nmomentun = 0.5\n"),
            "job.toml:6: unknown key 'optimizer.momentun'; did you mean 'optimizer.momentum'?");
  EXPECT_EQ(with("batch = 3\n"), "job.toml:5: unknown key 'batch'; did you mean 'eval.batch'?");
  EXPECT_EQ(with("plugn = \"x\"\n"), "job.toml:5: unknown key 'plugn'; did you mean 'plugin'?");
  EXPECT_EQ(with("[optimiser]\nlr = 1\n"), "job.toml:5: unknown key 'optimiser'; did you mean 'optimizer'?");
  EXPECT_EQ(with("[train.deeper]\nx = 1\n"),
            "job.toml:5: unknown key 'train.deeper'; `trireme train --help-keys` lists all");
  EXPECT_EQ(set("train.bacth=3"), "--set train.bacth=3: unknown key 'train.bacth'; did you mean 'train.batch'?");
  EXPECT_EQ(set("lr=3"), "--set lr=3: unknown key 'lr'; did you mean 'optimizer.lr'?");
  EXPECT_THAT(set("model.=3"), HasSubstr("unknown key 'model.'"));
}

TEST(WrongType, NamesWhatIsWanted) {
  EXPECT_EQ(with("train.batch = \"x\"\n"),
            "job.toml:5: train.batch = \"x\" is text; an integer (1 … 2^31 samples) is wanted");
  EXPECT_EQ(with("train.batch = 1.5\n"),
            "job.toml:5: train.batch = 1.5 is a number; an integer (1 … 2^31 samples) is wanted");
  EXPECT_EQ(set("train.batch=x"),
            "--set train.batch=x: train.batch = \"x\" is text; an integer (1 … 2^31 samples) is wanted");
  EXPECT_EQ(with("optimizer.nesterov = 1\n"),
            "job.toml:5: optimizer.nesterov = 1 is an integer; a boolean (true | false) is wanted");
  EXPECT_EQ(with("optimizer.lr = \"0.1\"\n"),
            "job.toml:5: optimizer.lr = \"0.1\" is text; a number (0 … 1000) is wanted");
  EXPECT_EQ(with("device = 3\n"), "job.toml:5: device = 3 is an integer; text (auto | cpu | cuda) is wanted");
  EXPECT_EQ(with("data.eval = \"a.h5\"\n"), "job.toml:5: data.eval = \"a.h5\" is text; an array of text is wanted");
  EXPECT_EQ(with("data.eval = [\"a.h5\",\n 3]\n"), "job.toml:6: data.eval[1] = 3 is an integer; text is wanted");
  EXPECT_EQ(with("eval = 3\n"), "job.toml:5: eval = 3 is an integer; a table [eval] is wanted");
  EXPECT_EQ(with("model = 3\n"), "job.toml:5: model = 3 is an integer; a table [model] is wanted");
  EXPECT_EQ(with("train.batch = 2024-01-01\n"),
            "job.toml:5: train.batch is a date or time; an integer (1 … 2^31 samples) is wanted");
  EXPECT_EQ(with("[train.batch]\n"), "job.toml:5: train.batch is a table; an integer (1 … 2^31 samples) is wanted");
  EXPECT_THAT(refusal("plugin = \"p\"\n[data]\ntrain=[\"a\"]\nfields = { x = 3 }\n"),
              StartsWith("job.toml:4: data.fields.x = 3 is an integer; text is wanted"));
}

TEST(OutOfRange, EveryIntegerAndNumberHasTwoEnds) {
  int checked = 0;
  for (const auto& row : job_table::rows()) {
    const bool integer = row.key.type == "integer";
    if (!integer && row.key.type != "number") continue;
    const std::vector<std::string> beyond =
        integer ? std::vector<std::string>{"-1"} : std::vector<std::string>{"-1.0", "1e300", "inf", "-inf", "nan"};
    for (const auto& value : beyond) {
      EXPECT_THAT(set(row.key.name + "=" + value),
                  AllOf(StartsWith("--set " + row.key.name + "=" + value + ": " + row.key.name + " = "),
                        HasSubstr(row.key.range)));
      ++checked;
    }
    if (integer && row.key.name != "train.seed") {
      EXPECT_THAT(set(row.key.name + "=9223372036854775807"), HasSubstr("is out of range; wanted: an integer ("));
      ++checked;
    }
  }
  EXPECT_GT(checked, 60);
  EXPECT_EQ(with("train.batch = 0\n"),
            "job.toml:5: train.batch = 0 is out of range; wanted: an integer (1 … 2^31 samples)");
  EXPECT_EQ(with("optimizer.beta1 = 1\n"),
            "job.toml:5: optimizer.beta1 = 1.0 is out of range; wanted: a number (0 … below 1)");
  EXPECT_EQ(with("train.batch = 2147483649\n"),
            "job.toml:5: train.batch = 2147483649 is out of range; wanted: an integer (1 … 2^31 samples)");
  EXPECT_EQ(with("checkpoint.keep_last = 1\n"),
            "job.toml:5: checkpoint.keep_last = 1 is out of range; wanted: an integer (2 … 1000000)");
  EXPECT_EQ(with("optimizer.lr = nan\n"),
            "job.toml:5: optimizer.lr = nan is not a finite number; wanted: a number (0 … 1000)");
  EXPECT_THAT(with("train.batch = 99999999999999999999\n"), StartsWith("job.toml:5: "));  // beyond 64 bits
  EXPECT_EQ(with("[model]\nx = inf\n"), "job.toml:6: model.x = inf is not a finite number");
}

TEST(Choice, NamesTheChoicesAndTheNearest) {
  EXPECT_EQ(with("device = \"cpuu\"\n"),
            "job.toml:5: device = \"cpuu\" is not known (did you mean \"cpu\"?); wanted: text (auto | cpu | cuda)");
  EXPECT_EQ(with("optimizer.schedule = \"Cosine\"\n"),
            "job.toml:5: optimizer.schedule = \"Cosine\" is not known (did you mean \"cosine\"?); wanted: text "
            "(constant | cosine)");
  EXPECT_THAT(with("precision = \"bf16\"\n"), HasSubstr("wanted: text (fp32 | tf32)"));
  for (const char* const key : {"device", "precision", "reproducible", "data.shuffle", "optimizer.kind",
                                "optimizer.schedule", "eval.every", "eval.best"}) {
    EXPECT_THAT(set(std::string(key) + "=zzz"), StartsWith(std::string("--set ") + key + "=zzz: " + key + " = "))
        << key;
  }
}

TEST(EvalKeys, RefuseOtherForms) {
  for (const char* const every : {"0 steps", "-1 steps", "3 epochs", "steps", "3steps", "3 steps ", " 3 steps", "",
                                  "99999999999 steps", "2 step", "3.5 steps"}) {
    EXPECT_THAT(with(std::string("eval.every = \"") + every + "\"\n"),
                HasSubstr("is not known; wanted: text (epoch | N steps | never)"))
        << every;
  }
  for (const char* const best : {"accuracy", ":max", "accuracy:most", "accuracy:"}) {
    EXPECT_THAT(with(std::string("eval.best = \"") + best + "\"\n"), HasSubstr("is not NAME:max or NAME:min")) << best;
  }
  EXPECT_EQ(
      with("eval.every = \"epoch\"\n"),
      "job.toml:5: eval.every = \"epoch\", but data.eval names no file; name some, or set eval.every = \"never\"");
}

TEST(MissingKeys, AreNamed) {
  EXPECT_EQ(refusal(""), "job.toml: plugin is missing; it must be text");
  EXPECT_EQ(refusal("plugin = \"p\"\n"), "job.toml: data.fields is missing; it must be a table of text (at least one)");
  EXPECT_EQ(refusal("plugin = \"p\"\ndata.fields = { x = \"/x\" }\n"),
            "job.toml: data.train is missing; it must be an array of text (at least one)");
  EXPECT_THAT(with("plugin_trust = false\n[data.more]\n"), HasSubstr("unknown key 'data.more'"));
  EXPECT_THAT(set("data.train=[]"), HasSubstr("data.train = [] is empty; wanted: an array of text (at least one)"));
  EXPECT_THAT(set("data.train=[\"\"]"), HasSubstr("has an empty text"));
  EXPECT_THAT(set("data.fields={}"), HasSubstr("data.fields = {} is empty"));
  EXPECT_THAT(set("data.fields.2x=/x"), HasSubstr("field name \"2x\""));
  EXPECT_THAT(set("data.fields.x="), HasSubstr("empty path for field x"));
  EXPECT_THAT(set("plugin="), HasSubstr("plugin = \"\" is empty"));
}

TEST(Together, EpochsOrSteps) {
  EXPECT_EQ(with("train.epochs = 2\n"),
            "job.toml:5: train.epochs = 2 and train.steps = 5 (job.toml:4); give one of them");
  EXPECT_THAT(set("train.steps=0"), HasSubstr("train.epochs or train.steps is missing; give one of them"));
  EXPECT_THAT(refusal(least_lines, {"train.steps=3", "train.epochs=2"}),
              AllOf(HasSubstr("--set train.epochs=2: "), HasSubstr("(--set train.steps=3)")));
}

TEST(Together, MicroBatchesAndMomentum) {
  EXPECT_THAT(with("train.micro_batches = 65537\n"), HasSubstr("train.micro_batches = 65537 is out of range"));
  EXPECT_EQ(with("train.micro_batches = 8\ntrain.batch = 12\n"),
            "job.toml:6: train.batch = 12 is no multiple of train.micro_batches = 8");
  EXPECT_EQ(with("optimizer.nesterov = true\noptimizer.momentum = 0\n"),
            "job.toml:5: optimizer.nesterov = true needs optimizer.momentum above 0");
}

TEST(Toml, FaultsOfTheFileNameTheLine) {
  EXPECT_THAT(with("train.batch = \n"), StartsWith("job.toml:5: "));
  EXPECT_THAT(with("device = \"cpu\"\ndevice = \"cpu\"\n"), AllOf(StartsWith("job.toml:6: "), HasSubstr("device")));
  EXPECT_THAT(with("device = \"cpu\n"), StartsWith("job.toml:5: "));
  EXPECT_THAT(with("x = \"\xff\"\n"), StartsWith("job.toml:5: "));
  EXPECT_THAT(with("data.label = \"a\\u0000b\"\n"), StartsWith("job.toml:5: data.label has a NUL"));
  // No overflow of the stack.
  EXPECT_THAT(refusal("x = " + std::string(100'000, '[')), StartsWith("job.toml:1: "));
  EXPECT_THAT(refusal("x = " + std::string(100'000, '{')), StartsWith("job.toml:1: "));
  for (const char* const header : {"[.a]", "[=]", "[[[a]]]", "[[.a]]", "[+]", "[\x01]"}) {
    EXPECT_EQ(with(std::string("\n") + header + "\nx = 1\n"), "job.toml:6: malformed table header; [NAME] is wanted")
        << header;
  }
  EXPECT_EQ(refusal(std::string(100'000, '[')), "job.toml:1: malformed table header; [NAME] is wanted");
}

TEST(Set, FaultsOfForm) {
  EXPECT_EQ(set("train.batch"), "--set train.batch: KEY=VALUE is wanted");
  EXPECT_EQ(set("=3"), "--set =3: KEY=VALUE is wanted");
  EXPECT_EQ(set(""), "--set : KEY=VALUE is wanted");
  EXPECT_THAT(set("plugin=\"open"), StartsWith("--set plugin=\"open: "));
  EXPECT_THAT(set("data.train=[1"), StartsWith("--set data.train=[1: "));
  EXPECT_THAT(set("model.x=[1, 2]"), HasSubstr("model.x is an array; a boolean, integer, number or text is wanted"));
  EXPECT_THAT(set("train.batch=8\ntrain.steps=9"), HasSubstr("is text; an integer"));  // one value, not two keys
  EXPECT_THAT(set("train.batch=8\n[.a]"), HasSubstr("is text; an integer"));
  EXPECT_THAT(set("plugin=\xff"), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(set("train.batch="), HasSubstr("train.batch = \"\" is text; an integer"));
}

TEST(Paths, FaultsOfVariables) {
  ::unsetenv("TRIREME_TEST_UNSET");
  EXPECT_EQ(set("data.train=$TRIREME_TEST_UNSET/a.h5"),
            "--set data.train=$TRIREME_TEST_UNSET/a.h5: \"$TRIREME_TEST_UNSET/a.h5\" needs the environment variable "
            "TRIREME_TEST_UNSET, which is not set");
  EXPECT_THAT(with("run.dir = \"${TRIREME_TEST_UNSET}\"\n"),
              AllOf(StartsWith("job.toml:5: "), HasSubstr("variable TRIREME_TEST_UNSET, which is not set")));
  for (const char* const path : {"a$", "$/x", "${", "${}", "${A", "${A-B}"}) {
    EXPECT_THAT(set(std::string("run.dir=") + path), HasSubstr("has a $ without a variable")) << path;
  }
  ::setenv("TRIREME_TEST_EMPTY", "", 1);
  EXPECT_THAT(set("run.dir=$TRIREME_TEST_EMPTY"), HasSubstr("is an empty path"));
  ::setenv("TRIREME_TEST_BYTES", "/\xc3", 1);
  EXPECT_THAT(set("run.dir=$TRIREME_TEST_BYTES"), HasSubstr("is not valid UTF-8"));
  ::unsetenv("TRIREME_TEST_EMPTY");
  ::unsetenv("TRIREME_TEST_BYTES");
}

TEST(ReadJob, RefusesWhatIsNoJobFile) {
  const Folder folder;
  const auto refused = [&](const char* name) {
    try {
      (void)read_job(folder / name, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return std::string(error.what());
    }
    return std::string("(accepted)");
  };
  EXPECT_THAT(refused("missing.toml"), HasSubstr("missing.toml: there is no such job file"));
  std::filesystem::create_directory(folder / "folder.toml");
  EXPECT_THAT(refused("folder.toml"), HasSubstr("is a folder; a job file is wanted"));
  replace_file(folder / "large.toml", std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(refused("large.toml"), HasSubstr("larger than 1 MiB"));
  replace_file(folder / "most.toml", std::string(1 << 20, '#'));
  EXPECT_THAT(refused("most.toml"), HasSubstr("plugin is missing"));
  std::filesystem::create_symlink(folder / "loop.toml", folder / "loop.toml");
  EXPECT_THROW((void)read_job(folder / "loop.toml", {}), Error);
}

TEST(Toml, OutsideOfAsciiOnlyInTextAndComments) {
  EXPECT_EQ(with("\n[\xc3\xa9]\n"),
            "job.toml:6: a character outside of ASCII (byte 0xC3); such stand in quoted text only");
  EXPECT_THAT(with("train.batch =\xc2\xa0 8\n"), StartsWith("job.toml:5: a character outside of ASCII (byte 0xC2)"));
  using job_table::first_outside_ascii;
  for (const char* const good :
       {"", "# é", "a = \"é\"", "a = 'é'", "a = \"\"\"é\n\\\"é\"\"\"\"\"# é", "a = '''é\n''é'''", "\"é\" = \"\\\"é\"",
        "a = '\\' # é", "a = \"\" # é", "\xEF\xBB\xBF# é", "a = \"#\" # é"}) {
    EXPECT_EQ(first_outside_ascii(good), std::string_view::npos) << good;
  }
  EXPECT_EQ(first_outside_ascii("a = \"b\" é"), 8u);
  EXPECT_EQ(first_outside_ascii("a = '\\' é"), 8u);
  EXPECT_EQ(first_outside_ascii("# é\né"), 5u);
  EXPECT_EQ(first_outside_ascii("a = \"b\né"), 7u);
  EXPECT_EQ(first_outside_ascii("\"\"\"\"\"\"é"), 6u);
}

TEST(Utf8, FollowsRfc3629) {
  using job_table::valid_utf8;
  for (const char* const good : {"", "a", "é", "€", "😀", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    EXPECT_TRUE(valid_utf8(good)) << good;
  }
  for (const char* const bad : {"\x80", "\xc0\x80", "\xc3", "\xe2\x82", "\xe0\x80\x80", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x80\x80\x80", "\xc3\x28"}) {
    EXPECT_FALSE(valid_utf8(bad)) << testing::PrintToString(bad);
  }
  EXPECT_FALSE(valid_utf8(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace trireme
