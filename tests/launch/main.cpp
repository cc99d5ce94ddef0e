// The tests, or, started by a launcher under test with "fake …", a rank that does what the words say.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "core/launch/stop.h"

namespace {

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path + ".part") << text;
  std::rename((path + ".part").c_str(), path.c_str());
}

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// fake summary PATH JSON | begin PATH | signals PATH | say TEXT | exit CODE | kill | orphan PIDFILE | save PATH |
// reason | stubborn PATH, one after the other.
int fake_rank(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (word == "summary") {
      const std::string path = next();
      write_file(path, next());
    } else if (word == "begin") {  // as a run does
      write_file(next(), std::string(R"({"result": "running", "attempt": "b", "launch": ")") +
                             std::getenv("TRIREME_LAUNCH") + "\"}");
    } else if (word == "signals") {
      sigset_t set;
      ::sigprocmask(SIG_BLOCK, nullptr, &set);
      int blocked = 0;
      for (int number = 1; number < 32; ++number) blocked += sigismember(&set, number) == 1;
      struct sigaction pipe {};
      ::sigaction(SIGPIPE, nullptr, &pipe);
      write_file(next(), std::to_string(blocked) + " blocked, PIPE " +
                             (pipe.sa_handler == SIG_DFL ? "default" : "not default"));
    } else if (word == "say") {
      std::fprintf(stderr, "%s\n", next().c_str());
    } else if (word == "exit") {
      return std::atoi(next().c_str());
    } else if (word == "kill") {
      ::raise(SIGKILL);
    } else if (word == "orphan") {  // a grandchild in a session of its own, whose parent is gone
      const std::string path = next();
      if (::fork() == 0) {
        ::setsid();
        if (::fork() != 0) ::_exit(0);
        write_file(path, std::to_string(::getpid()));
        sleep_for_ever();
      }
      ::wait(nullptr);
      while (!std::ifstream(path)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } else if (word == "save") {  // until asked to stop; then tells why, and ends as a resumable run
      trireme::launch::catch_stop_requests();
      const std::string path = next();
      write_file(path + ".ready", "");
      while (!trireme::launch::stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      write_file(path, trireme::launch::stop_reason());
      return 75;
    } else if (word == "reason") {  // the number of the signal that asked
      trireme::launch::catch_stop_requests();
      while (!trireme::launch::stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const std::string reason = trireme::launch::stop_reason();
      return reason == "SIGTERM" ? SIGTERM : reason == "SIGINT" ? SIGINT : reason == "SIGUSR1" ? SIGUSR1 : 0;
    } else if (word == "stubborn") {  // hears USR1, goes on
      ::signal(SIGUSR1, SIG_IGN);
      write_file(next() + ".ready", "");
      sleep_for_ever();
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "fake") return fake_rank(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
