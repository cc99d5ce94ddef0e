// Crash anywhere: every prefix of the recorded changes, with what was not flushed dropped or kept, must leave the last
// checkpoint that was reported as committed, or a newer one, loadable to the last bit.
#include "tests/checkpoint/replay.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/checkpoint/small_run.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using small_run::Folder;
using small_run::load;
using small_run::Ranks;
using small_run::scalars_at;
using small_run::State;
using trace::Disk;
using trace::Operation;
using trace::Survival;
using trace::Tree;
using Kind = Operation::Kind;

constexpr small_run::Size small{2};

// Save number `number` (from 1) holds the bits of seed `number`.
void save(Ranks& ranks, std::uint64_t step, std::uint64_t number, bool best) {
  State state(small);
  state.fill(number);
  Scalars scalars = scalars_at(step, ranks.size());
  scalars.values["number"] = std::to_string(number);
  ranks.snapshot(scalars, state, best);
  ranks.wait();
  ranks.commit(step);
  trace::mark(number);
}

// Six saves of two starts: retention deletes, a best one stays, a step is saved twice, the world changes.
std::vector<Operation> record(const fs::path& folder) {
  trace::start(folder);
  {
    Ranks ranks(folder, 2, "a1", 2);
    save(ranks, 1, 1, true);
    for (std::uint64_t step = 2; step <= 4; ++step) save(ranks, step, step, false);
  }
  {
    Ranks ranks(folder, 1, "a2", 2);
    save(ranks, 4, 5, false);
    save(ranks, 5, 6, true);
  }
  return trace::stop();
}

// What is wrong with the checkpoints in `folder`; empty where nothing is.
std::string verdict(const fs::path& folder, std::uint64_t reported) {
  std::uint64_t newest = 0;
  for (const fs::path& checkpoint : list_checkpoints(folder)) {
    try {
      State expected(small), loaded(small);
      const Manifest manifest = load(checkpoint, loaded, 2);
      const std::uint64_t number = std::stoull(manifest.scalars.values.at("number"));
      expected.fill(number);
      if (!(loaded == expected)) return checkpoint.filename().string() + " holds other bits than were saved";
      newest = std::max(newest, number);
    } catch (const Error& error) {
      return error.what();
    }
  }
  if (newest < reported) {
    return "save " + std::to_string(reported) + " was reported, the newest there is " + std::to_string(newest);
  }
  return "";
}

std::string fingerprint(const Tree& tree, std::uint64_t reported) {
  std::string text = std::to_string(reported);
  for (const auto& [path, bytes] : tree) {
    text += "\n" + path + " " + std::to_string(bytes.size()) + " " + std::to_string(xxh3(bytes_of(bytes)));
  }
  return text;
}

struct Outcome {
  std::size_t states = 0;          // different ones
  std::vector<std::string> wrong;  // at most a few
};

// All prefixes; `flushed` says whether a sync works (planted faults).
Outcome crash_everywhere(const std::vector<Operation>& operations, const fs::path& folder,
                         const std::function<bool(const Operation&)>& flushed, std::size_t enough = 3) {
  Outcome outcome;
  Disk disk(folder);
  std::set<std::string> seen;
  std::uint64_t reported = 0;
  for (std::size_t done = 0; done <= operations.size(); ++done) {
    if (done > 0) {
      const Operation& operation = operations[done - 1];
      if (operation.kind == Kind::mark) reported = operation.number;
      disk.apply(operation, flushed(operation));
    }
    for (int variant = 0; variant < 16; ++variant) {
      const Survival survival{static_cast<Survival::Files>(variant / 4), variant % 4 >= 2, variant % 2 == 1};
      const Tree tree = disk.after_crash(survival);
      if (!seen.insert(fingerprint(tree, reported)).second) continue;
      ++outcome.states;
      const Folder crashed("crashed", testing::TempDir());
      trace::write_tree(tree, crashed.path());
      const std::string words = verdict(crashed.path(), reported);
      if (words.empty()) continue;
      outcome.wrong.push_back("after operation " + std::to_string(done) + " of " + std::to_string(operations.size()) +
                              ", variant " + std::to_string(variant) + ": " + words);
      if (outcome.wrong.size() >= enough) return outcome;
    }
  }
  return outcome;
}

class Replay : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<Folder>("replay", testing::TempDir());
    fs::create_directory(folder_->path() / "checkpoints");
    operations_ = record(folder_->path() / "checkpoints");
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static fs::path checkpoints() { return folder_->path() / "checkpoints"; }

  inline static std::unique_ptr<Folder> folder_;
  inline static std::vector<Operation> operations_;
};

// Were a call missed, the model would differ from the real folder.
TEST_F(Replay, TheTraceHoldsEveryChange) {
  Disk disk(checkpoints());
  for (const Operation& operation : operations_) disk.apply(operation);
  const Tree modelled = disk.now(), real = trace::read_tree(checkpoints());
  ASSERT_EQ(modelled.size(), real.size());
  EXPECT_TRUE(modelled == real);
  for (const auto& [path, bytes] : real) {
    ASSERT_TRUE(modelled.contains(path)) << path;
    EXPECT_TRUE(modelled.at(path) == bytes) << path;  // not printed: binary
  }
  EXPECT_EQ(verdict(checkpoints(), 6), "");
  EXPECT_EQ(list_checkpoints(checkpoints()).size(), 2u);
}

TEST_F(Replay, EveryPrefixLeavesTheLastCommitOrANewerOne) {
  const Outcome outcome = crash_everywhere(operations_, checkpoints(), [](const Operation&) { return true; });
  for (const std::string& words : outcome.wrong) ADD_FAILURE() << words;
  EXPECT_GT(outcome.states, 100u);
  RecordProperty("operations", static_cast<int>(operations_.size()));
  RecordProperty("states", static_cast<int>(outcome.states));
}

// So that a crash right after the start leaves the run directory that holds all that follows.
TEST(ReplayFolders, EachParentIsFlushed) {
  const Folder folder("replay", testing::TempDir());
  trace::start(folder.path());
  make_folders(folder.path() / "runs/a/checkpoints");
  make_folders(folder.path() / "runs/a/logs/");
  Disk disk(folder.path());
  for (const Operation& operation : trace::stop()) disk.apply(operation);
  const Tree tree = disk.after_crash({Survival::Files::none, false, false});
  for (const char* name : {"runs/", "runs/a/", "runs/a/checkpoints/", "runs/a/logs/"})
    EXPECT_TRUE(tree.contains(name)) << name;
}

// The test's own test: without any one of the flushes of the protocol some crash loses a checkpoint.
TEST_F(Replay, EachFlushIsNeeded) {
  const auto is_slice = [](const Operation& o) { return o.path.extension() == ".h5"; };
  const auto is_manifest = [](const Operation& o) { return o.path.filename() == "manifest.json"; };
  const auto is_attempt = [](const Operation& o) { return o.path.filename().string().starts_with(".step-"); };
  const auto is_top = [](const Operation& o) { return o.path == checkpoints(); };
  const std::map<std::string, std::function<bool(const Operation&)>> kinds{{"slices", is_slice},
                                                                           {"manifest", is_manifest},
                                                                           {"attempt's folder", is_attempt},
                                                                           {"checkpoints' folder", is_top}};
  for (const auto& [name, kind] : kinds) {
    std::size_t syncs = 0;
    for (const Operation& operation : operations_) syncs += operation.kind == Kind::sync && kind(operation) ? 1 : 0;
    EXPECT_GE(syncs, 6u) << name;
    const Outcome outcome = crash_everywhere(
        operations_, checkpoints(), [&kind = kind](const Operation& o) { return !kind(o); }, 1);
    EXPECT_FALSE(outcome.wrong.empty()) << "no crash shows that the " << name << " were not flushed";
  }
}

}  // namespace
}  // namespace trireme::io
