// Loading: shares of any number of readers, what forbids a resume, setting aside, sweeping, inspection.
#include "io/checkpoint/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "io/checkpoint/format.h"
#include "tests/checkpoint/small_run.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using small_run::Folder;
using small_run::load;
using small_run::Ranks;
using small_run::scalars_at;
using small_run::State;

const fs::path first_step = "step-000000000001";

TEST(LoadShare, AnyNumberOfReadersReadsWhatAnyNumberOfWritersWrote) {
  State state({600});  // 9.4 MiB an arena: slices begin and end inside blocks
  state.fill(1);
  for (const int writers : {1, 2, 3, 4, 8}) {
    const Folder folder("loader", testing::TempDir());
    Ranks(folder.path(), writers, "a").save(1, state);
    for (const std::uint64_t readers : {1u, 2u, 3u, 5u}) {
      State loaded({600});
      load(folder.path() / first_step, loaded, readers);
      EXPECT_TRUE(loaded == state) << writers << " writers, " << readers << " readers";
    }
  }
}

TEST(LoadShare, ReadsItsShareAndNothingElse) {
  const Folder folder("loader", testing::TempDir());
  State state;
  state.fill(2);
  Ranks(folder.path(), 2, "a").save(1, state);
  State loaded;
  loaded.clear();
  const Manifest manifest = read_manifest(folder.path() / first_step);
  load_share(manifest, loaded.arenas(), 1, 4);
  const auto arenas = loaded.arenas(), wanted = state.arenas();
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    const Range range = arenas[i].slice(1, 4);
    const std::size_t size = size_of(arenas[i].dtype);
    for (std::size_t byte = 0; byte < arenas[i].memory.size(); ++byte) {
      const bool inside = byte >= range.begin * size && byte < range.end * size;
      ASSERT_EQ(arenas[i].memory[byte], inside ? wanted[i].memory[byte] : std::byte{0})
          << arenas[i].name << " " << byte;
    }
  }
  // Only the first slice is touched: without the second the same share still loads, another does not.
  fs::remove(folder.path() / first_step / "slice-00001-of-00002.h5");
  EXPECT_NO_THROW(load_share(manifest, loaded.arenas(), 1, 4));
  EXPECT_THROW(load_share(manifest, loaded.arenas(), 2, 4), Error);
}

TEST(Differences, NoneForTheSameRun) {
  const Folder folder("loader", testing::TempDir());
  const State state;
  Ranks(folder.path(), 1, "a").save(1, state);
  const Manifest manifest = read_manifest(folder.path() / first_step);
  EXPECT_TRUE(differences(manifest, state.arenas(), scalars_at(1, 1).identity).empty());
  EXPECT_TRUE(differences(manifest, State().arenas(), scalars_at(9, 4).identity).empty());
}

TEST(Differences, EachNamesWhatItIsAndBothValues) {
  const Folder folder("loader", testing::TempDir());
  const State state;
  Ranks(folder.path(), 1, "a").save(1, state);
  const Manifest manifest = read_manifest(folder.path() / first_step);
  auto arenas = state.arenas();
  arenas[0].entries[0].shape = Shape{64, 128};            // another shape
  arenas[0].entries[1].name = "fc9.bias";                 // another name
  std::swap(arenas[2].entries[0], arenas[2].entries[1]);  // order of declaration alone: the same places, no difference
  arenas[3].entries[0].range = {8, 5008};                 // another place
  arenas[1].name = "moment9";
  const auto lines = differences(manifest, arenas, {{"train.batch", "256"}, {"optimizer.kind", "sgd"}});
  EXPECT_THAT(
      lines,
      testing::UnorderedElementsAre(
          "tensor parameters/fc1.weight: (128, 64) in the checkpoint, (64, 128) here",
          "tensor parameters/fc1.bias: (8092,) in the checkpoint, none here",
          "tensor parameters/fc9.bias: none in the checkpoint, (8092,) here",
          "arena moment1: 2 tensors in the checkpoint, none here",
          "arena moment9: none in the checkpoint, 2 tensors here",
          "tensor sums/total: (5000,) at [0, 5000) in the checkpoint, (5000,) at [8, 5008) here (another order "
          "of tensors)",
          "train.batch: 128 in the checkpoint, 256 here", "plugin: small \"quoted\" ü in the checkpoint, not set here",
          "optimizer.kind: not set in the checkpoint, sgd here"));
}

TEST(ListCheckpoints, NewestFirstAndNothingElse) {
  const Folder folder("loader", testing::TempDir());
  EXPECT_TRUE(list_checkpoints(folder.path() / "not-there").empty());
  const State state;
  Ranks ranks(folder.path(), 1, "a", 10);
  for (const std::uint64_t step : {5u, 90u, 1000u}) ranks.save(step, state);
  for (const char* name : {".step-000000000007.a", ".trash-step-000000000003.a", "set-aside-step-000000000002",
                           "step-12", "step-0000000000xx", "step-000000002000.tmp", "step-000000002000.r0"}) {
    fs::create_directory(folder.path() / name);
  }
  std::ofstream(folder.path() / "step-000000003000") << "a file";
  EXPECT_EQ(list_checkpoints(folder.path()),
            (std::vector<fs::path>{folder.path() / "step-000000001000", folder.path() / "step-000000000090",
                                   folder.path() / "step-000000000005"}));
}

TEST(SetAside, RenamesWithANoteAndIsNoLongerListed) {
  const Folder folder("loader", testing::TempDir());
  const State state;
  for (int time = 1; time <= 2; ++time) {
    Ranks(folder.path(), 1, "a").save(1, state);
    set_aside(folder.path() / first_step, "block 3 is damaged");
    EXPECT_TRUE(list_checkpoints(folder.path()).empty());
  }
  for (const char* name : {"set-aside-step-000000000001", "set-aside-step-000000000001.2"}) {
    std::ifstream note(folder.path() / name / "why.txt");
    std::string text;
    std::getline(note, text);
    EXPECT_EQ(text, "block 3 is damaged") << name;
    EXPECT_TRUE(fs::exists(folder.path() / name / "manifest.json"));
  }
}

TEST(SetAside, IsListedByName) {
  const Folder folder("loader", testing::TempDir());
  const State state;
  Ranks ranks(folder.path(), 1, "a1");
  for (std::uint64_t step = 1; step <= 3; ++step) ranks.save(step, state);
  EXPECT_TRUE(list_set_aside(folder.path()).empty());
  for (const char* name : {"step-000000000003", "step-000000000001"}) set_aside(folder.path() / name, "test");
  EXPECT_THAT(list_set_aside(folder.path()),
              testing::ElementsAre("set-aside-step-000000000001", "set-aside-step-000000000003"));
  EXPECT_EQ(step_of(folder.path() / "step-000000000002"), 2u);
  EXPECT_EQ(step_of(folder.path() / "step-000000000002.r7"), 2u);
  EXPECT_EQ(step_of(folder.path() / "set-aside-step-000000000003"), 0u);
}

// Manifests whose checksum is right, as another program or an enemy would write them.
TEST(ReadManifest, RefusesWhatNoSaverWrites) {
  const Folder folder("loader", testing::TempDir());
  const State state;
  Ranks(folder.path(), 2, "a1").save(1, state);
  const Manifest sound = read_manifest(folder.path() / first_step);
  const auto refusal = [&](const std::function<void(Manifest&)>& change) -> Error {
    Manifest changed = sound;
    change(changed);
    std::ofstream(folder.path() / first_step / "manifest.json") << manifest_text(changed);
    try {
      (void)read_manifest(folder.path() / first_step);
    } catch (const Error& error) {
      return error;
    }
    return {ExitCode::done, "accepted"};
  };
  EXPECT_STREQ(refusal([](Manifest&) {}).what(), "accepted");
  // Bytes of it would wrap, and with them every check behind.
  const Error large = refusal([](Manifest& m) { m.arenas[0].elements = std::uint64_t{1} << 62; });
  EXPECT_EQ(large.code(), ExitCode::data);
  EXPECT_THAT(large.what(), testing::AllOf(testing::HasSubstr("manifest.json"), testing::HasSubstr("elements")));
  const Error elsewhere = refusal([](Manifest& m) { m.slices[1].file = "../other/slice-00001-of-00002.h5"; });
  EXPECT_EQ(elsewhere.code(), ExitCode::data);
  EXPECT_THAT(elsewhere.what(), testing::HasSubstr("../other"));
  // Sound, of a later version: not to be set aside.
  const Error later = refusal([](Manifest& m) { m.format = 2; });
  EXPECT_EQ(later.code(), ExitCode::usage);
  EXPECT_THAT(later.what(), testing::AllOf(testing::HasSubstr("format 2"), testing::HasSubstr("reads format 1")));
}

TEST(Sweep, RemovesDeadAttemptsAndTrashAlone) {
  const Folder folder("loader", testing::TempDir());
  const State state;
  Ranks dead(folder.path(), 2, "dead");
  dead.snapshot(scalars_at(9, 2), state);
  dead.wait();
  Ranks(folder.path(), 1, "a").save(1, state);
  fs::create_directory(folder.path() / ".trash-step-000000000000.x");
  fs::create_directory(folder.path() / "set-aside-step-000000000000");
  sweep(folder.path());
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder.path())) left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, testing::UnorderedElementsAre("step-000000000001", "set-aside-step-000000000000"));
  sweep(folder.path() / "not-there");
}

// The digest, computed here once more from its definition.
std::string expected_sha256(const State& state, const Scalars& scalars) {
  Sha256 digest;
  std::map<std::string, std::pair<ArenaState, Entry>> tensors;
  for (const ArenaState& arena : state.arenas()) {
    for (const Entry& entry : arena.entries) tensors.insert({arena.name + "/" + entry.name, {arena, entry}});
  }
  for (const auto& [name, where] : tensors) {
    const auto& [arena, entry] = where;
    const std::size_t size = size_of(arena.dtype);
    digest.add(bytes_of(name + " " + std::string(name_of(arena.dtype)) + " " + entry.shape.text() + "\n"));
    digest.add(arena.memory.subspan(entry.range.begin * size, entry.range.size() * size));
  }
  std::ostringstream rest;
  rest << "\nstep " << scalars.step << "\ncursor " << scalars.cursor << "\n";
  for (const auto& [key, value] : scalars.values) rest << key << "=" << value << "\n";
  digest.add(bytes_of(rest.str()));
  return digest.hex();
}

std::string sha256_of(const State& state, const Scalars& scalars, int world_size) {
  const Folder folder("loader", testing::TempDir());
  Ranks ranks(folder.path(), world_size, "a");
  ranks.snapshot(scalars, state);
  ranks.wait();
  ranks.commit(scalars.step);
  return inspect(list_checkpoints(folder.path()).front()).state_sha256;
}

TEST(Inspect, TheSameStateHasTheSameHashWhateverTheNumberOfRanks) {
  State state;
  state.fill(3);
  const std::string expected = expected_sha256(state, scalars_at(4, 1));
  for (const int world_size : {1, 2, 3, 4, 7}) {
    Scalars scalars = scalars_at(4, static_cast<std::uint64_t>(world_size));
    scalars.identity["train.batch"] = std::to_string(world_size);  // no state
    EXPECT_EQ(sha256_of(state, scalars, world_size), expected) << world_size;
  }
}

TEST(Inspect, EveryPartOfTheStateChangesTheHash) {
  State state;
  state.fill(3);
  const Scalars scalars = scalars_at(4, 1);
  const std::string before = sha256_of(state, scalars, 1);
  for (const char* arena : {"parameters", "moment1", "buffers", "sums"}) {
    State other;
    other.fill(3);
    other.memory(arena)[17] ^= std::byte{1};
    EXPECT_NE(sha256_of(other, scalars, 1), before) << arena;
  }
  State padded;
  padded.fill(3);
  padded.memory("parameters").back() ^= std::byte{1};
  EXPECT_EQ(sha256_of(padded, scalars, 1), before);  // padding is no state
  Scalars other = scalars;
  other.cursor += 1;
  EXPECT_NE(sha256_of(state, other, 1), before);
  other = scalars;
  other.values["updates"] = "5";
  EXPECT_NE(sha256_of(state, other, 1), before);
}

TEST(Inspect, TellsWhatThereIs) {
  const Folder folder("loader", testing::TempDir());
  State state;
  state.fill(3);
  Ranks(folder.path(), 2, "a").save(1, state, true);
  const Inspection inspection = inspect(folder.path() / first_step);
  std::uint64_t bytes = 0;
  for (const SliceFile& slice : inspection.manifest.slices)
    bytes += fs::file_size(folder.path() / first_step / slice.file);
  EXPECT_EQ(inspection.bytes, bytes);
  EXPECT_TRUE(inspection.manifest.best);
  const std::string json = to_json(inspection);
  EXPECT_THAT(json, testing::HasSubstr("\"state_sha256\": \"" + inspection.state_sha256 + "\""));
  EXPECT_THAT(json, testing::HasSubstr("\"ok\": true"));
  EXPECT_THAT(json, testing::HasSubstr("\"step\": 1,"));
  EXPECT_THAT(json, testing::HasSubstr("\"cursor\": 135,"));
  EXPECT_THAT(json, testing::HasSubstr("\"name\": \"moment1/fc1.weight\""));
  const std::string text = to_text(inspection);
  EXPECT_THAT(text, testing::HasSubstr(inspection.state_sha256));
  EXPECT_THAT(text, testing::ContainsRegex("parameters/fc1.weight +f32 +\\(128, 64\\)"));
}

}  // namespace
}  // namespace trireme::io
