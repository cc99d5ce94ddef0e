// fork and exec with a pipe for stderr and a signalfd; orphans come to us as subreaper, so none is left.
#include "core/launch/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/launch/stop.h"

namespace trireme::launch {
namespace {

constexpr int passed_on[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

// What is ignored from the start stays so (nohup's HUP, INT of a script's job with `&`), here and in the ranks.
sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : passed_on)
    if (!is_ignored(number)) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  return set;
}

// pid → parent of every process, from /proc.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> found;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* const entry = ::readdir(folder)) {
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    pid_t pid = 0;
    if (std::from_chars(entry->d_name, end, pid).ptr != end) continue;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');  // the name may have blanks and brackets
    if (name_end == std::string::npos) continue;
    std::istringstream rest(line.substr(name_end + 1));
    std::string state;
    pid_t parent = 0;
    if (rest >> state >> parent) found[pid] = parent;
  }
  ::closedir(folder);
  return found;
}

std::vector<pid_t> descendants() {
  const std::map<pid_t, pid_t> all = parents();
  std::vector<pid_t> mine;
  for (const auto& [pid, parent] : all) {
    pid_t above = parent;
    while (above > 1 && above != ::getpid()) {
      const auto next = all.find(above);
      above = next == all.end() ? 0 : next->second;
    }
    if (above == ::getpid()) mine.push_back(pid);
  }
  return mine;
}

// In the forked child: only calls that are safe there.
[[noreturn]] void become(char* const* arguments, int stdout_pipe, int stderr_pipe, int report, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  if (::getppid() != parent) ::_exit(1);  // it died before prctl
  const int empty = ::open("/dev/null", O_RDONLY);
  ::dup2(empty, STDIN_FILENO);
  ::dup2(stdout_pipe, STDOUT_FILENO);
  ::dup2(stderr_pipe, STDERR_FILENO);
  ::signal(SIGUSR1, SIG_DFL);  // the launcher's own request
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Child::Child(const std::vector<std::string>& command,
             const std::vector<std::pair<std::string, std::string>>& environment) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t set = watched();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  std::array<int, 2> output{}, lines{}, report{};
  if (signals_ < 0 || ::pipe2(output.data(), O_CLOEXEC) != 0 || ::pipe2(lines.data(), O_CLOEXEC) != 0 ||
      ::pipe2(report.data(), O_CLOEXEC) != 0) {
    fail_errno(errno, "launch: no pipe for " + command.front());
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail_errno(errno, "launch: fork for " + command.front());
  if (pid_ == 0) become(arguments.data(), output[1], lines[1], report[1], parent);
  ::close(output[1]);
  ::close(lines[1]);
  ::close(report[1]);
  stdout_ = output[0];
  stderr_ = lines[0];
  for (const int end : {stdout_, stderr_}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  int error = 0;
  const bool failed = ::read(report[0], &error, sizeof error) == sizeof error;  // end of file where exec worked
  ::close(report[0]);
  if (!failed) return;
  ::waitpid(pid_, nullptr, 0);
  ::close(stdout_);
  ::close(stderr_);
  ::close(signals_);
  fail(ExitCode::usage, "launch: cannot start {}: {}", command.front(), std::strerror(error));
}

Child::~Child() {
  // Whatever outlived the child is ours by now.
  for (int round = 0; round < 500; ++round) {
    signal_all(SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (descendants().empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::close(stdout_);
  ::close(stderr_);
  ::close(signals_);
}

void Child::signal(int number) const {
  if (!ended_) ::kill(pid_, number);
}

void Child::signal_all(int number) const {
  for (const pid_t pid : descendants()) ::kill(pid, number);
}

void Child::pass_on(const std::function<void(const std::string&)>& line) {
  std::array<char, 8192> buffer;
  while (true) {
    const ssize_t got = ::read(stdout_, buffer.data(), buffer.size());
    if (got <= 0) break;
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t written = ::write(STDOUT_FILENO, buffer.data() + sent, static_cast<std::size_t>(got - sent));
      if (written < 0 && errno != EINTR && errno != EAGAIN) break;  // its reader is gone; the child doesn't notice
      if (written > 0) sent += written;
    }
  }
  while (true) {
    const ssize_t got = ::read(stderr_, buffer.data(), buffer.size());
    if (got <= 0) return;
    partial_.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      line(partial_.substr(begin, end - begin));
    }
    partial_.erase(0, begin);
  }
}

int Child::wait(const std::function<void(const std::string&)>& line, const std::function<void(int)>& on_signal) {
  int status = 0;
  while (!ended_) {
    std::array<pollfd, 3> waits{{{stderr_, POLLIN, 0}, {stdout_, POLLIN, 0}, {signals_, POLLIN, 0}}};
    const bool closed =
        ::poll(waits.data(), waits.size(), 1000) > 0 && (waits[0].revents == POLLHUP || waits[1].revents == POLLHUP);
    pass_on(line);
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) on_signal(static_cast<int>(info.ssi_signo));
    }
    // Orphans of it are reaped here too.
    int one = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &one, WNOHANG)) > 0;) {
      if (pid == pid_) status = one, ended_ = true;
    }
    if (closed && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // poll would return at once
  }
  pass_on(line);
  if (!partial_.empty()) line(partial_);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace trireme::launch
