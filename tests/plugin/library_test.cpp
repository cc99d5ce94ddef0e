// Finding, checking and loading a plugin's file: each refusal has its own words.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/digest.h"
#include "tests/plugin/fixture.h"

namespace trireme::plugin {
namespace {

namespace fs = std::filesystem;

// A folder of its own, removed at the end.
class LibraryTest : public testing::Test {
 protected:
  LibraryTest() {
    std::string pattern = testing::TempDir() + "trireme-plugin-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder = pattern;
  }
  ~LibraryTest() override {
    unsetenv("TRIREME_PLUGIN_PATH");
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
  }
  fs::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }
  fs::path copy(const std::string& fixture) {
    fs::copy_file(fixture_file(fixture), folder / (fixture + ".so"));
    fs::permissions(folder / (fixture + ".so"), fs::perms(0644));
    return folder / (fixture + ".so");
  }
  static Caught load(const std::string& plugin, bool trust = true) {
    return error_of([&] { (void)Library::load(plugin, trust); });
  }
  fs::path folder;
};

TEST_F(LibraryTest, LoadsAndTellsWhatItIs) {
  const auto library = Library::load(fixture_file("sound"), true);
  EXPECT_EQ(library->name(), "table");
  EXPECT_EQ(library->version(), "2.5");
  EXPECT_EQ(library->build(), "by hand");
  EXPECT_EQ(library->path(), fs::canonical(fixture_file("sound")));
  EXPECT_EQ(library->digest(), xxh3_of_file(fixture_file("sound")));
  EXPECT_EQ(library->digest().size(), 16u);
  EXPECT_NE(library->table().forward, nullptr);
}

TEST_F(LibraryTest, AShorterTableIsLegalAndWhatLiesBehindItIsNotSeen) {
  const auto library = Library::load(fixture_file("short_table"), true);
  EXPECT_NE(library->table().loss, nullptr);
  EXPECT_EQ(library->table().step, nullptr);
  EXPECT_EQ(library->table().predict, nullptr);
  EXPECT_EQ(library->table().summarise, nullptr);
}

TEST_F(LibraryTest, FindsByNameInTheOrderOfTheSearchPath) {
  const fs::path first = folder / "first", second = folder / "second";
  fs::create_directories(first);
  fs::create_directories(second);
  for (const auto& at : {first, second}) fs::copy_file(fixture_file("sound"), at / "mine.so");
  fs::copy_file(fixture_file("regression"), second / "other.so");
  setenv("TRIREME_PLUGIN_PATH", (":" + first.string() + "::" + second.string()).c_str(), 1);
  EXPECT_EQ(Library::load("mine", true)->path(), fs::canonical(first / "mine.so"));
  EXPECT_EQ(Library::load("other", true)->path(), fs::canonical(second / "other.so"));
  std::map<std::string, fs::path> known;
  for (const auto& [name, file] : Library::available()) known[name] = file;
  EXPECT_EQ(known.at("mine"), first / "mine.so");
  EXPECT_EQ(known.at("other"), second / "other.so");
  EXPECT_EQ(known.count("conditional-net"), 1u);  // beside the program
}

TEST_F(LibraryTest, NotFound) {
  setenv("TRIREME_PLUGIN_PATH", folder.c_str(), 1);
  const Caught name = load("conditional-nte");
  EXPECT_EQ(name.code, ExitCode::usage);
  EXPECT_PRED2(contains, name.text, "no conditional-nte.so in " + folder.string());
  EXPECT_PRED2(contains, name.text, "did you mean 'conditional-net'?");
  EXPECT_PRED2(contains, name.text, "TRIREME_PLUGIN_PATH");
  const Caught file = load(folder / "mine.so");
  EXPECT_EQ(file.code, ExitCode::usage);
  EXPECT_PRED2(contains, file.text, "there is no such file");
  EXPECT_PRED2(contains, load("").text, "no name");
}

TEST_F(LibraryTest, AFolder) {
  const Caught caught = load(folder.string() + "/");
  EXPECT_EQ(caught.code, ExitCode::usage);
  EXPECT_PRED2(contains, caught.text, "is a folder");
}

TEST_F(LibraryTest, NoRegularFile) {
  ASSERT_EQ(mkfifo((folder / "pipe.so").c_str(), 0600), 0);
  EXPECT_PRED2(contains, load(folder / "pipe.so").text, "is no regular file");
}

TEST_F(LibraryTest, NotReadable) {
  const fs::path file = copy("sound");
  fs::permissions(file, fs::perms::none);
  fs::permissions(folder, fs::perms(0755));
  const pid_t child = fork();  // as nobody, where the test runs as root, who reads everything
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    _exit(contains(load(file).text, "cannot be read: Permission denied") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(LibraryTest, WhatEverybodyMayWriteIsRefusedUnlessTrusted) {
  const fs::path file = copy("sound");
  EXPECT_EQ(load(file, false).text, "no error");
  fs::permissions(file, fs::perms(0666));
  const Caught caught = load(file, false);
  EXPECT_EQ(caught.code, ExitCode::usage);
  EXPECT_PRED2(contains, caught.text, "this file is writable for everybody (mode 0666)");
  EXPECT_PRED2(contains, caught.text, "plugin_trust");
  EXPECT_EQ(load(file, true).text, "no error");
  fs::permissions(file, fs::perms(0664));  // the group: a warning
  testing::internal::CaptureStderr();
  EXPECT_EQ(load(file, false).text, "no error");
  EXPECT_PRED2(contains, testing::internal::GetCapturedStderr(), "writable for its group (mode 0664)");
  fs::permissions(file, fs::perms(0644));
  fs::permissions(folder, fs::perms(0777));
  EXPECT_PRED2(contains, load(file, false).text, "this folder is writable for everybody (mode 0777)");
}

TEST_F(LibraryTest, NotElf) {
  EXPECT_PRED2(contains, load(write("empty.so", "")).text, "is no shared library (no ELF file, 0 bytes)");
  const Caught caught = load(write("text.so", "#!/bin/sh\necho this is no library at all, is it?\n"));
  EXPECT_EQ(caught.code, ExitCode::usage);
  EXPECT_PRED2(contains, caught.text, "no ELF file");
}

TEST_F(LibraryTest, OfAnotherMachine) {
  std::string bytes(64, '\0');
  bytes.replace(0, 7, "\177ELF\2\1\1");
  bytes[16] = 3;                        // a shared library
  bytes[18] = static_cast<char>(0xF7);  // eBPF
  const Caught caught = load(write("alien.so", bytes));
  EXPECT_EQ(caught.code, ExitCode::internal);
  EXPECT_PRED2(contains, caught.text, "was built for ELF machine 247");
}

TEST_F(LibraryTest, AProgramInsteadOfALibrary) {
  std::string bytes;
  {
    std::ifstream self(fixture_file("sound"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(self), {});
  }
  bytes[16] = 2;  // e_type: an executable at a fixed address
  EXPECT_PRED2(contains, load(write("program.so", bytes)).text, "no shared library; link it with -shared");
}

TEST_F(LibraryTest, TheLoadersOwnWords) {
  const Caught caught = load(fixture_file("missing_symbol"));
  EXPECT_EQ(caught.code, ExitCode::internal);
  EXPECT_PRED2(contains, caught.text, "the loader refused it");
  EXPECT_PRED2(contains, caught.text, "trireme_nobody_has_this");
}

TEST_F(LibraryTest, NoTable) {
  const Caught caught = load(fixture_file("no_symbol"));
  EXPECT_EQ(caught.code, ExitCode::internal);
  EXPECT_PRED2(contains, caught.text, "has no symbol 'trireme_plugin_table'");
}

TEST_F(LibraryTest, TablesThatWillNotDo) {
  const std::pair<const char*, const char*> cases[] = {
      {"tiny_table", "its table has 16 bytes, at least 72 are wanted"},
      {"other_major", "built for ABI 2.0, this program has ABI 1.0"},
      {"no_name", "its table has no name"},
      {"no_create", "its table lacks create"},
      {"no_entries", "its table has neither forward with loss, nor step"},
      {"both_ways", "its table has step besides forward or loss"},
  };
  for (const auto& [name, words] : cases) {
    const Caught caught = load(fixture_file(name));
    EXPECT_EQ(caught.code, ExitCode::internal) << name;
    EXPECT_PRED2(contains, caught.text, words);
    EXPECT_PRED2(contains, caught.text, std::string(name) + ".so");
  }
}

}  // namespace
}  // namespace trireme::plugin
