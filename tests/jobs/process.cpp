// fork, exec, poll; a tag in the environment marks what belongs to a run.
#include "tests/jobs/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace trireme::tests {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* tag_name = "TRIREME_TEST_RUN";

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string fresh_tag() {
  static int counter = 0;
  return std::to_string(::getpid()) + "-" + std::to_string(++counter) + "-" +
         std::to_string(Clock::now().time_since_epoch().count());
}

[[noreturn]] void become(const ProcessOptions& options, const std::string& tag, int output) {
  ::setpgid(0, 0);
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(126);
  ::setenv(tag_name, tag.c_str(), 1);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

void kill_all(const std::string& tag) {
  for (const pid_t pid : processes_with(tag_name, tag)) ::kill(pid, SIGKILL);
}

// Reads what is there; false at the end of file.
bool take(int from, std::string& partial, std::string& all, const std::function<void(const std::string&)>& line) {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    all.append(buffer.data(), static_cast<std::size_t>(got));
    partial.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
      line(partial.substr(begin, end - begin));
    }
    partial.erase(0, begin);
  }
}

}  // namespace

std::vector<pid_t> processes_with(const std::string& name, const std::string& value) {
  std::vector<pid_t> found;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return found;
  const std::string wanted = name + "=" + value;
  while (const dirent* const entry = ::readdir(folder)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == ::getpid()) continue;
    std::ostringstream text;  // of a zombie it is empty
    text << std::ifstream("/proc/" + std::to_string(pid) + "/environ").rdbuf();
    const std::string environment = '\0' + text.str() + '\0';
    if (environment.find('\0' + wanted + '\0') != std::string::npos) found.push_back(pid);
  }
  ::closedir(folder);
  return found;
}

Finished run_process(const ProcessOptions& options) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  const std::string tag = fresh_tag();
  const Clock::time_point start = Clock::now();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) become(options, tag, pipe[1]);
  ::close(pipe[1]);
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);

  Finished finished;
  std::string partial;
  const auto line = [&](const std::string& text) {
    if (options.on_line) options.on_line(text, pid);
  };
  int status = 0;
  for (bool ended = false, open = true; !ended;) {
    pollfd wait{pipe[0], POLLIN, 0};
    if (open) {
      ::poll(&wait, 1, 20);
      open = take(pipe[0], partial, finished.output, line);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ended = ::waitpid(pid, &status, WNOHANG) == pid;
    if (!ended && !finished.timed_out && since(start) > options.timeout_s) {
      finished.timed_out = true;
      kill_all(tag);
    }
  }
  finished.seconds = since(start);
  while (!processes_with(tag_name, tag).empty() && since(start) < finished.seconds + 20) {
    take(pipe[0], partial, finished.output, line);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  finished.gone_after_s = since(start);
  finished.left_behind = processes_with(tag_name, tag);
  kill_all(tag);
  take(pipe[0], partial, finished.output, line);
  ::close(pipe[0]);
  finished.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return finished;
}

}  // namespace trireme::tests
