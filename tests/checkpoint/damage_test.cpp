// Damage: a flipped byte anywhere in any file, truncation, missing files. None may pass unseen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "tests/checkpoint/small_run.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using small_run::Folder;
using small_run::load;
using small_run::Ranks;
using small_run::State;

// Sanitizers make each look many times slower; they look at fewer places.
#ifdef TRIREME_SANITIZED
constexpr std::uint64_t stride = 23;
#else
constexpr std::uint64_t stride = 1;
#endif

class Damage : public testing::Test {
 protected:
  Damage() : folder_("damage", testing::TempDir()), checkpoint_(folder_.path() / "step-000000000001") {
    state_.fill(1);
    Ranks(folder_.path(), 2, "a").save(1, state_);
  }
  // What loading and inspecting say; empty where both accept.
  std::string complaint() {
    std::string words;
    for (const bool whole : {false, true}) {
      try {
        if (whole) {
          (void)inspect(checkpoint_);
        } else {
          State loaded;
          load(checkpoint_, loaded);
        }
        if (!words.empty()) ADD_FAILURE() << "inspect accepts what load refuses: " << words;
        if (whole) return "";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data) << error.what();
        if (whole && words.empty()) ADD_FAILURE() << "load accepts what inspect refuses: " << error.what();
        words = error.what();
      }
    }
    return words;
  }
  void expect_refused(const std::string& named, const std::string& what) {
    const std::string words = complaint();
    EXPECT_FALSE(words.empty()) << what << " is accepted";
    EXPECT_NE(words.find(named), std::string::npos) << what << ": " << words;
  }
  static char exchange(const fs::path& file, std::uint64_t offset, char with) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    const char before = static_cast<char>(stream.get());
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(with);
    EXPECT_TRUE(stream.good()) << file;
    return before;
  }

  const Folder folder_;
  const fs::path checkpoint_;
  State state_;
};

TEST_F(Damage, NoneAtAll) { EXPECT_EQ(complaint(), ""); }

TEST_F(Damage, AFlippedByteAnywhereInTheManifest) {
  const fs::path file = checkpoint_ / "manifest.json";
  for (std::uint64_t offset = 0; offset < fs::file_size(file); offset += 3 * stride) {
    for (const char flip : {'\x01', '\x20', '\x80'}) {
      const char before = exchange(file, offset, 0);
      exchange(file, offset, static_cast<char>(before ^ flip));
      expect_refused("manifest.json", "byte " + std::to_string(offset));
      exchange(file, offset, before);
    }
  }
  EXPECT_EQ(complaint(), "");
}

// Every byte of HDF5's own headers, and a sweep over the data.
TEST_F(Damage, AFlippedByteAnywhereInASlice) {
  for (const char* name : {"slice-00000-of-00002.h5", "slice-00001-of-00002.h5"}) {
    const fs::path file = checkpoint_ / name;
    const std::uint64_t size = fs::file_size(file);
    std::set<std::uint64_t> offsets;
    for (std::uint64_t offset = 0; offset < std::min<std::uint64_t>(size, 3000); offset += 7 * stride)
      offsets.insert(offset);
    for (std::uint64_t offset = 0; offset < size; offset += 401 * stride) offsets.insert(offset);
    for (std::uint64_t back = 1; back <= 64; ++back) offsets.insert(size - back);
    for (const std::uint64_t offset : offsets) {
      const char before = exchange(file, offset, 0);
      exchange(file, offset, static_cast<char>(before ^ 4));
      expect_refused(name, "byte " + std::to_string(offset));
      exchange(file, offset, before);
    }
  }
  EXPECT_EQ(complaint(), "");
}

TEST_F(Damage, ABlockIsNamedWithItsPlace) {
  const Manifest manifest = read_manifest(checkpoint_);
  const std::uint64_t at = manifest.slices[1].offsets.at("moment1") + 100;
  const fs::path file = checkpoint_ / manifest.slices[1].file;
  exchange(file, at, static_cast<char>(~exchange(file, at, 0)));
  EXPECT_THAT(complaint(), testing::AllOf(testing::HasSubstr("slice-00001-of-00002.h5"), testing::HasSubstr("/moment1"),
                                          testing::HasSubstr("block 0")));
}

TEST_F(Damage, TruncatedAndLengthenedFiles) {
  for (const char* name : {"slice-00000-of-00002.h5", "slice-00001-of-00002.h5", "manifest.json"}) {
    const fs::path file = checkpoint_ / name, copy = folder_.path() / "copy";
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    const std::uint64_t size = fs::file_size(file);
    for (const std::uint64_t left : {std::uint64_t{0}, std::uint64_t{1}, size / 2, size - 1, size + 1, size + 4096}) {
      fs::resize_file(file, left);
      expect_refused(name, "of " + std::to_string(size) + " bytes " + std::to_string(left));
      fs::copy_file(copy, file, fs::copy_options::overwrite_existing);
    }
  }
  EXPECT_EQ(complaint(), "");
}

TEST_F(Damage, MissingFiles) {
  for (const char* name : {"slice-00001-of-00002.h5", "slice-00000-of-00002.h5", "manifest.json"}) {
    fs::rename(checkpoint_ / name, folder_.path() / "away");
    expect_refused(name, "missing");
    fs::rename(folder_.path() / "away", checkpoint_ / name);
  }
}

TEST_F(Damage, SlicesExchangedOrOfAnotherCheckpoint) {
  fs::rename(checkpoint_ / "slice-00000-of-00002.h5", folder_.path() / "away");
  fs::copy_file(checkpoint_ / "slice-00001-of-00002.h5", checkpoint_ / "slice-00000-of-00002.h5");
  expect_refused("slice-00000-of-00002.h5", "slice 1 under the name of slice 0");
  State other;
  other.fill(2);
  Ranks(folder_.path(), 2, "b").save(2, other);
  fs::copy_file(folder_.path() / "step-000000000002/slice-00000-of-00002.h5", checkpoint_ / "slice-00000-of-00002.h5",
                fs::copy_options::overwrite_existing);
  expect_refused("slice-00000-of-00002.h5", "slice of another step");
}

// Damage before the commit: rank 0 must not commit it.
TEST(DamageBeforeCommit, RankZeroRefusesASliceOfWrongSize) {
  const Folder folder("damage", testing::TempDir());
  const State state;
  Ranks ranks(folder.path(), 2, "a");
  ranks.snapshot(small_run::scalars_at(1, 2), state);
  ranks.wait();
  const fs::path file = folder.path() / ".step-000000000001.a/slice-00001-of-00002.h5";
  fs::resize_file(file, fs::file_size(file) / 2);
  try {
    ranks.commit(1);
    FAIL() << "committed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("slice-00001-of-00002.h5"));
  }
  EXPECT_TRUE(list_checkpoints(folder.path()).empty());
}

}  // namespace
}  // namespace trireme::io
