// Commands and options on CLI11, and what is said about a mistake in the command line.
#include "core/cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/base/error.h"
#include "core/base/log.h"

namespace trireme::cli {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// Long options, with their dashes.
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown(const char* what, const std::string& name, const std::vector<std::string>& known) {
  return fmt::format("unknown {} '{}'{}", what, name, suggestion(name, known));
}

// "unknown command 'trian'; did you mean 'train'?" where a word of the command line explains the mistake.
std::optional<std::string> explain(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  for (const std::string& word : words) {
    if (word.rfind("--", 0) == 0) {
      const std::vector<std::string> options = options_of(*app);
      const std::string name = word.substr(0, word.find('='));
      if (std::find(options.begin(), options.end(), name) == options.end()) return unknown("option", name, options);
      continue;
    }
    const std::vector<std::string> commands = commands_of(*app);
    if (word.rfind('-', 0) == 0 || commands.empty()) continue;
    if (std::find(commands.begin(), commands.end(), word) == commands.end()) return unknown("command", word, commands);
    app = app->get_subcommand(word);
    if (app->get_prefix_command()) return std::nullopt;  // what follows is another command's
  }
  return std::nullopt;
}

const CLI::App& chosen(const CLI::App& program) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

// "trireme plugin describe", as far as the words were understood.
std::string path_of(const CLI::App& program) {
  std::string path = program.get_name();
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    path += " " + app->get_name();
  }
  return path;
}

// Widths of all help texts.
class Wide : public CLI::Formatter {
 public:
  Wide() { column_width(34); }
};

class OwnUsage final : public Wide {
 public:
  explicit OwnUsage(const char* text) : text_(text) {}
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: " + text_ + "\n"; }

 private:
  std::string text_;
};

std::string what_is_missing(const CLI::App& app, const CLI::ParseError& error) {
  const bool command = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
                       app.get_subcommands().empty() && app.get_require_subcommand_min() > 0;
  if (!command) return error.what();
  return fmt::format("no command given; known: {}", fmt::join(commands_of(app), ", "));
}

CLI::Option* with(CLI::Option* option, const Command::How& how) {
  option->type_name(how.type);
  if (*how.shown_default != '\0') option->default_str(how.shown_default);
  if (how.required) option->required();
  return option;
}

}  // namespace

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

Command Command::add(const char* name, const char* help) {
  app_->require_subcommand(1);
  return {app_->add_subcommand(name, help), run_};
}

void Command::usage(const char* text) { app_->formatter(std::make_shared<OwnUsage>(text)); }

void Command::footer(const char* text) { app_->footer(text); }

void Command::text(const char* names, std::string& into, const char* help, const How& how) {
  with(app_->add_option(names, into, help), how);
}

void Command::texts(const char* names, std::vector<std::string>& into, const char* help, const How& how) {
  with(app_->add_option(names, into, help), how)->allow_extra_args(false);
}

void Command::integer(const char* names, std::int64_t& into, std::int64_t least, std::int64_t most, const char* help) {
  const auto within = [least, most](const std::string& text) -> std::string {
    std::int64_t value = 0;
    if (!CLI::detail::lexical_cast(text, value)) return fmt::format("'{}' is not a whole number", text);
    if (value >= least && value <= most) return "";
    return fmt::format("{} is not in {} … {}", value, least, most);
  };
  app_->add_option(names, into, help)->check(within)->type_name("N")->default_str(std::to_string(into));
}

void Command::flag(const char* names, bool& into, const char* help) { app_->add_flag(names, into, help); }

void Command::rest(std::vector<std::string>& into) {
  app_->prefix_command();
  app_->parse_complete_callback([app = app_, &into] { into = app->remaining(); });
}

void Command::does(Run run) {
  app_->final_callback([to = run_, run = std::move(run)] { *to = run; });
}

Program::Program(const char* name, const char* help) : app_(std::make_unique<CLI::App>(help, name)) {
  app_->formatter(std::make_shared<Wide>());
}
Program::~Program() = default;

Command Program::root() { return {app_.get(), &run_}; }

std::optional<int> Program::parse(const std::vector<std::string>& words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  try {
    app_->parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app_->exit(error);  // --help
    log::error("{}\n{} --help shows how it is used",
               explain(*app_, words).value_or(what_is_missing(chosen(*app_), error)), path_of(*app_));
    return static_cast<int>(ExitCode::usage);
  }
  return std::nullopt;
}

}  // namespace trireme::cli
