// pack, inspect, plugin and version on small files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "io/hdf5/hdf5.h"
#include "tests/hdf5/raw_hdf5.h"
#include "tests/jobs/make_data.h"
#include "tests/jobs/run_job.h"

namespace trireme::tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// IDX: 0 0 type rank, big-endian extents, values.
void write_idx(const std::filesystem::path& file, std::vector<unsigned> extents, std::size_t values) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const unsigned extent : extents) {
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>((extent >> shift) & 0xffu);
  }
  for (std::size_t i = 0; i < values; ++i) text += static_cast<char>(i % 251);
  std::ofstream(file, std::ios::binary) << text;
}

TEST(Pack, IdxIntoFilesThatInspectShows) {
  const TestFolder folder("cli-pack");
  write_idx(folder.path() / "image.idx", {10, 3, 2}, 60);
  write_idx(folder.path() / "label.idx", {10}, 10);
  const std::vector<std::string> words{
      "pack",    "--field", "image=image.idx", "--field", "label=label.idx", "--output", "out/train",
      "--files", "3",       "--chunk-rows",    "2",       "--deflate",       "1",        "--shuffle-filter"};
  const Finished packed = run_trireme(words, {}, folder.path().string());
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  EXPECT_THAT(packed.output, HasSubstr("packed 10 samples into 3 files"));

  std::int64_t samples = 0;
  for (const char* name : {"00000", "00001", "00002"}) {
    const auto file = folder.path() / "out" / (std::string("train-") + name + "-of-00003.h5");
    const Finished shown = run_trireme({"inspect", file.string(), "--json"});
    ASSERT_EQ(shown.exit_code, 0) << shown.output;
    const json document = json::parse(shown.output);
    const json& image = document.at("datasets").at(0);
    EXPECT_EQ(image.at("path"), "/image");
    EXPECT_EQ(image.at("dtype"), "u8");
    EXPECT_EQ(image.at("chunk_rows"), 2);
    EXPECT_EQ(image.at("filters").size(), 2u);
    EXPECT_EQ(image.at("shape").at(1), 3);
    samples += image.at("shape").at(0).get<std::int64_t>();
  }
  EXPECT_EQ(samples, 10);

  const Finished again = run_trireme(words, {}, folder.path().string());
  EXPECT_EQ(again.exit_code, 64) << again.output;  // existing files are refused
}

TEST(Inspect, TextOfADataFile) {
  const TestFolder folder("cli-inspect");
  make_data(folder.path(), "train", {.files = 1, .samples = 8, .height = 4, .width = 5, .chunk_rows = 0});
  const Finished shown = run_trireme({"inspect", (folder.path() / "train-0.h5").string()});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.output, AllOf(HasSubstr("/image  (8, 4, 5)"), HasSubstr("contiguous"), HasSubstr("/label  (8,)")));
}

// One dataset that is no array of numbers hides none of the others.
TEST(Inspect, ADatasetThatCannotBeReadIsSaidSo) {
  const TestFolder folder("cli-inspect-text");
  const std::string file = (folder.path() / "notes.h5").string();
  test::write_unreadable(file, "/notes", "text");
  const Finished alone = run_trireme({"inspect", file});
  EXPECT_EQ(alone.exit_code, 0) << alone.output;
  EXPECT_THAT(alone.output, AllOf(HasSubstr("/notes  not readable: "), HasSubstr("1 datasets")));
  {
    const auto more = io::Hdf5File::append(file);
    more->create_dataset("/image", Shape{8, 4}, Dtype::u8, {});
    more->close();
  }
  EXPECT_THAT(run_trireme({"inspect", file}).output,
              AllOf(HasSubstr("/notes  not readable: "), HasSubstr("/image  (8, 4)")));
  const Finished shown = run_trireme({"inspect", file, "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.output;
  const json datasets = json::parse(shown.output).at("datasets");
  EXPECT_EQ(datasets.at(0).at("path"), "/image");
  EXPECT_EQ(datasets.at(1).at("path"), "/notes");
  EXPECT_TRUE(datasets.at(1).contains("not_readable"));
}

TEST(Inspect, WhatIsNotThereIsNamed) {
  const TestFolder folder("cli-inspect-none");
  EXPECT_EQ(run_trireme({"inspect", "/no/such/file"}).exit_code, 65);
  const Finished empty = run_trireme({"inspect", folder.path().string()});
  EXPECT_EQ(empty.exit_code, 65);
  EXPECT_THAT(empty.output, HasSubstr("neither a checkpoint"));
}

TEST(Plugin, ListAndDescribe) {
  const Finished list = run_trireme({"plugin", "list", "--json"});
  ASSERT_EQ(list.exit_code, 0) << list.output;
  bool found = false;
  for (const json& entry : json::parse(list.output)) found = found || entry.at("name") == "conditional-net";
  EXPECT_TRUE(found) << list.output;

  const Finished described = run_trireme({"plugin", "describe", "conditional-net", "--json"});
  ASSERT_EQ(described.exit_code, 0) << described.output;
  const json document = json::parse(described.output);
  EXPECT_EQ(document.at("name"), "conditional-net");
  EXPECT_EQ(document.at("keys").at(0).at("name"), "hidden");
  EXPECT_EQ(document.at("parameters").size(), 6u);  // three layers of weight and bias
  EXPECT_THAT(run_trireme({"plugin", "describe", "conditional-net"}).output,
              AllOf(HasSubstr("width of the first layer"), HasSubstr("fc1.weight")));

  const Finished missing = run_trireme({"plugin", "describe", "conditonal-net"});
  EXPECT_EQ(missing.exit_code, 64);
  EXPECT_THAT(missing.output, HasSubstr("conditional-net"));
}

TEST(Version, SaysWhatItRunsOn) {
  const Finished shown = run_trireme({"version", "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.output;
  const json document = json::parse(shown.output);
  for (const char* key : {"trireme", "compiler", "mpi", "hdf5", "cpu_backend", "cuda", "cpu"}) {
    EXPECT_FALSE(document.at(key).get<std::string>().empty()) << key;
  }
  EXPECT_THAT(document.at("cpu_backend").get<std::string>(), HasSubstr("oneDNN"));
  EXPECT_THAT(run_trireme({"version"}).output, HasSubstr(document.at("compiler").get<std::string>()));
}

// What is missing is said: the module, the driver or a device. (On a machine with all three this finds nothing to ask.)
TEST(Cuda, AskingForItWithoutOneSaysWhatIsMissing) {
  const json version = json::parse(run_trireme({"version", "--json"}).output);
  const std::string cuda = version.at("cuda").get<std::string>();
  if (cuda.rfind("none: ", 0) != 0) GTEST_SKIP() << "there is a device: " << cuda;
  EXPECT_THAT(cuda, testing::AnyOf(HasSubstr("no module libtrireme_cuda.so"), HasSubstr("no NVIDIA driver"),
                                   HasSubstr("no device")));
  const TestFolder folder("cli-cuda");
  make_data(folder.path() / "data", "train", {.files = 1, .samples = 64});
  std::ofstream(folder.path() / "job.toml") << "plugin = \"conditional-net\"\ndevice = \"cuda\"\n[data]\nfields = { "
                                               "image = \"/image\", label = \"/label\" }\n"
                                               "train = [\"data/train-*.h5\"]\ntransform = [\"image: scale 1/255\"]\n"
                                               "[train]\nbatch = 32\nmicro_batches = 1\nsteps = 2\n";
  const Finished finished = run_trireme({"train", "job.toml"}, {}, folder.path().string());
  EXPECT_EQ(finished.exit_code, 64) << finished.output;
  EXPECT_THAT(finished.output, testing::AnyOf(HasSubstr("no module libtrireme_cuda.so"), HasSubstr("no NVIDIA driver"),
                                              HasSubstr("no device")));
}

}  // namespace
}  // namespace trireme::tests
