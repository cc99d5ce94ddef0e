// A command with its options, on CLI11, which is seen by command.cpp alone: it is slow to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace trireme::cli {

// What the chosen subcommand does; returns an exit code. Throws Error.
using Run = std::function<int()>;

// A handle; cheap to copy. Variables that options write to must live until the program has run: keep them in what
// does() is given. `help` of an option says what its variable holds at the start only where that matters.
class Command {
 public:
  Command(CLI::App* app, Run* run) : app_(app), run_(run) {}
  Command add(const char* name, const char* help);  // a subcommand; one of them must be given
  void usage(const char* text);                     // instead of the one made up from the options
  void footer(const char* text);                    // notes and examples, below the options

  // `type` stands for the value in the help text. `names`: "--output", "-n,--ranks", or "job" for a positional.
  struct How {
    const char* type = "TEXT";
    const char* shown_default = "";
    bool required = false;
  };
  void text(const char* names, std::string& into, const char* help, const How& how);
  void texts(const char* names, std::vector<std::string>& into, const char* help, const How& how);  // repeatable
  void integer(const char* names, std::int64_t& into, std::int64_t least, std::int64_t most, const char* help);
  void flag(const char* names, bool& into, const char* help);
  // All words from the first that is no option of this command on.
  void rest(std::vector<std::string>& into);
  void does(Run run);

 private:
  CLI::App* app_;
  Run* run_;
};

// "; did you mean 'train'?" where a known word is near, else nothing.
[[nodiscard]] std::string suggestion(const std::string& word, const std::vector<std::string>& known);

// A whole command line.
class Program {
 public:
  Program(const char* name, const char* help);
  ~Program();
  [[nodiscard]] Command root();
  // Words without the program's name. The exit code where parsing ends it: a mistake (64, told with the nearest command
  // or option) or --help.
  [[nodiscard]] std::optional<int> parse(const std::vector<std::string>& words);
  [[nodiscard]] int run() { return run_(); }

 private:
  std::unique_ptr<CLI::App> app_;
  Run run_;
};

}  // namespace trireme::cli
