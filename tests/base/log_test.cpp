// Log lines: which rank writes what where. Each case runs in a child, for the log is one of the process.
#include "core/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/base/folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

struct Output {
  std::string out, error;
};

// What `body` prints.
Output printed_by(const Folder& folder, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    ::dup2(::open((folder / "error").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    int code = 0;
    try {
      body();
    } catch (...) {
      code = 1;
    }
    ::_exit(code);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return {read_file(folder / "out", 1 << 20), read_file(folder / "error", 1 << 20)};
}

void one_of_each() {
  log::debug("value {}", 1);
  log::info("value {}", 2);
  log::warn("value {}", 3);
  log::error("value {}", 4);
}

TEST(Log, BeforeOpenWithoutRank) {
  const Folder folder;
  const Output printed = printed_by(folder, one_of_each);
  EXPECT_EQ(printed.out, "value 2\n");
  EXPECT_EQ(printed.error, "warning: value 3\nerror: value 4\n");
}

TEST(Log, RankZero) {
  const Folder folder;
  const Output printed = printed_by(folder, [&] {
    log::open(0, 4, folder / "logs" / "rank0.log");
    one_of_each();
  });
  EXPECT_EQ(printed.out, "value 2\n");
  EXPECT_THAT(printed.error,
              MatchesRegex("\\[rank 0 [^] .]+\\] warning: value 3\n\\[rank 0 [^] .]+\\] error: value 4\n"));
  const std::string file = read_file(folder / "logs" / "rank0.log", 1 << 20);
  const std::string time = "[0-9-]+T[0-9:]+\\.[0-9]+Z \\[rank 0 [^]]+\\] ";
  EXPECT_THAT(file, MatchesRegex(time + "debug: value 1\n" + time + "info: value 2\n" + time + "warning: value 3\n" +
                                 time + "error: value 4\n"));
}

TEST(Log, OtherRanksPutOnlyErrorsOnTheConsole) {
  const Folder folder;
  const Output printed = printed_by(folder, [&] {
    log::open(3, 4, folder / "rank3.log");
    one_of_each();
    log::progress("step 1", true);
  });
  EXPECT_EQ(printed.out, "");
  EXPECT_THAT(printed.error, MatchesRegex("\\[rank 3 [^] .]+\\] error: value 4\n"));
  EXPECT_THAT(read_file(folder / "rank3.log", 1 << 20),
              AllOf(HasSubstr("info: value 2"), HasSubstr("[rank 3 "), HasSubstr("warning: value 3")));
}

TEST(Log, AResumeAppends) {
  const Folder folder;
  for (const char* const text : {"first", "second"}) {
    (void)printed_by(folder, [&] {
      log::open(0, 1, folder / "log");
      log::info("{}", text);
    });
  }
  EXPECT_THAT(read_file(folder / "log", 1 << 20), MatchesRegex("[^\n]+Z info: first\n[^\n]+Z info: second\n"));
}

TEST(Log, ProgressIsDroppedWithoutATerminalUnlessKept) {
  const Folder folder;
  const Output printed = printed_by(folder, [] {
    log::progress("10 %", false);
    log::progress("100 %", true);
    log::flush();
  });
  EXPECT_EQ(printed.out, "100 %\n");
}

TEST(Log, ProgressOverwritesItselfOnATerminal) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) GTEST_SKIP() << "no pseudo-terminals here";
  const std::string name = ::ptsname(terminal);
  const int held = ::open(name.c_str(), O_RDWR | O_NOCTTY);  // the text stays readable after the child's end
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(held, STDOUT_FILENO);
    log::progress("10 %", false);
    log::progress("20 %", false);
    log::info("news");
    log::progress("30 %", false);
    log::flush();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(terminal, text.data(), text.size()))));
  ::close(held);
  ::close(terminal);
  EXPECT_EQ(text, "\r10 %\x1b[K\r20 %\x1b[K\r\x1b[Knews\r\n\r30 %\x1b[K\r\n");
}

TEST(Log, LinesOfThreadsDontMix) {
  const Folder folder;
  (void)printed_by(folder, [&] {
    log::open(0, 1, folder / "log");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) log::debug("<{}>", std::string(100, static_cast<char>('a' + t)));
      });
    }
    for (auto& one : threads) one.join();
  });
  const std::string file = read_file(folder / "log", 1 << 20);
  std::size_t lines = 0, begin = 0;
  for (std::size_t end; (end = file.find('\n', begin)) != std::string::npos; begin = end + 1, ++lines) {
    const std::string line = file.substr(begin, end - begin);
    const auto open = line.find('<');
    ASSERT_NE(open, std::string::npos) << line;
    ASSERT_EQ(line.substr(open), "<" + std::string(100, line[open + 1]) + ">");
  }
  EXPECT_EQ(lines, 800u);
}

TEST(Log, AFileThatCannotBeOpenedIsAnError) { EXPECT_THROW(log::open(0, 1, "/dev/null/log"), Error); }

TEST(Log, AFullDiskEndsTheLogNotTheRun) {
  const Folder folder;
  const Output printed = printed_by(folder, [] {
    log::open(0, 1, "/dev/full");
    log::info("one");
    log::info("two");
  });
  EXPECT_EQ(printed.out, "one\ntwo\n");
  EXPECT_THAT(printed.error, HasSubstr("warning: the log ends here: /dev/full: cannot be written: No space left"));
}

}  // namespace
}  // namespace trireme
