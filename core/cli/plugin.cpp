// `trireme plugin`: the plugins on the search path, and what one of them declares.
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/cli/cli.h"
#include "core/plugin/model.h"

namespace trireme::cli {
namespace {

using Json = nlohmann::ordered_json;

int list(bool json) {
  const auto found = plugin::Library::available();
  Json document = Json::array();
  for (const auto& [name, file] : found) {
    // A file that cannot be loaded stays in the list, with the reason.
    std::string version, fault;
    try {
      version = plugin::Library::load(file.string(), false)->version();
    } catch (const Error& error) {
      fault = error.what();
    }
    Json entry{{"name", name}, {"file", file.string()}};
    entry[fault.empty() ? "version" : "error"] = fault.empty() ? version : fault;
    document.push_back(std::move(entry));
    if (!json) log::info("{:20} {:8} {}", name, fault.empty() ? version : "-", fault.empty() ? file.string() : fault);
  }
  if (json) log::info("{}", document.dump(2));
  if (found.empty() && !json) {
    log::info("no plugins found; TRIREME_PLUGIN_PATH lists the folders to search, with ':' between them");
  }
  return static_cast<int>(ExitCode::done);
}

const char* word_for(plugin::Init init) {
  switch (init) {
    case plugin::Init::zeros: return "zeros";
    case plugin::Init::constant: return "constant";
    case plugin::Init::uniform: return "uniform";
    case plugin::Init::normal: return "normal";
  }
  return "";
}

std::string initial(const plugin::Parameter& parameter) {
  switch (parameter.init) {
    case plugin::Init::zeros: return "zeros";
    case plugin::Init::constant: return fmt::format("{:g}", parameter.a);
    case plugin::Init::uniform: return fmt::format("uniform [{:g}, {:g})", parameter.a, parameter.b);
    case plugin::Init::normal: return fmt::format("normal, mean {:g}, deviation {:g}", parameter.a, parameter.b);
  }
  return "";
}

Json to_json(const plugin::Library& library, const plugin::Description& d) {
  Json keys = Json::array(), parameters = Json::array(), buffers = Json::array(), inputs = Json::array();
  for (const auto& key : d.keys) {
    keys.push_back(
        {{"name", key.name}, {"type", key.type}, {"default", key.fallback}, {"range", key.range}, {"help", key.help}});
  }
  for (const auto& p : d.parameters) {
    parameters.push_back({{"name", p.name},
                          {"shape", p.shape.dims()},
                          {"init", word_for(p.init)},
                          {"a", p.a},
                          {"b", p.b},
                          {"decay", p.decay}});
  }
  for (const auto& b : d.buffers) {
    buffers.push_back({{"name", b.name},
                       {"shape", b.shape.dims()},
                       {"reduce", b.reduce == plugin::Reduce::mean ? "mean" : "max"},
                       {"initial", b.initial}});
  }
  for (const auto& field : d.inputs) {
    inputs.push_back({{"name", field.name}, {"shape", field.shape.dims()}, {"dtype", name_of(field.dtype)}});
  }
  return {{"name", d.name},
          {"version", d.version},
          {"build", d.build},
          {"file", library.path().string()},
          {"digest", library.digest()},
          {"inputs", inputs},
          {"keys", keys},
          {"parameters", parameters},
          {"buffers", buffers}};
}

std::string to_text(const plugin::Library& library, const plugin::Description& d) {
  std::string text =
      fmt::format("{} {}\n  file   {}\n  built  {}\n", d.name, d.version, library.path().string(), d.build);
  if (!d.inputs.empty()) text += "inputs\n";
  for (const auto& field : d.inputs) {
    text += fmt::format("  {:24} {} {}\n", field.name, field.shape.text(), name_of(field.dtype));
  }
  text += "keys of [model]\n";
  if (d.keys.empty()) text += "  none\n";
  for (const auto& key : d.keys) {
    text += fmt::format("  {:24} {}{}, default {}: {}\n", key.name, key.type, key.range.empty() ? "" : " " + key.range,
                        key.fallback, key.help);
  }
  std::int64_t total = 0;
  for (const auto& p : d.parameters) total += p.shape.elements();
  text += fmt::format("parameters: {} values\n", total);
  for (const auto& p : d.parameters) {
    text += fmt::format("  {:24} {:18} {}{}\n", p.name, p.shape.text(), initial(p), p.decay ? "" : "; no decay");
  }
  if (!d.buffers.empty()) text += "buffers\n";
  for (const auto& b : d.buffers) {
    text += fmt::format("  {:24} {:18} starts at {:g}, {} over micro-batches\n", b.name, b.shape.text(), b.initial,
                        b.reduce == plugin::Reduce::mean ? "mean" : "max");
  }
  text.pop_back();
  return text;
}

int describe(const std::string& name, bool trust, bool json) {
  const auto library = plugin::Library::load(name, trust);
  const plugin::Description description = plugin::describe(*library, {});
  log::info("{}", json ? to_json(*library, description).dump(2) : to_text(*library, description));
  return static_cast<int>(ExitCode::done);
}

}  // namespace

void add_plugin(Command program) {
  Command command = program.add("plugin", "List model plugins, or describe one");
  command.footer(
      "Examples:\n"
      "  trireme plugin list\n"
      "  trireme plugin describe convnet --json");
  struct Arguments {
    std::string name;
    bool trust = false, json = false;
  };
  const auto given = std::make_shared<Arguments>();
  Command all = command.add("list", "Plugins on TRIREME_PLUGIN_PATH and beside the program");
  all.footer("Example:\n  TRIREME_PLUGIN_PATH=$HOME/plugins trireme plugin list");
  all.flag("--json", given->json, "print one JSON document");
  all.does([given] { return list(given->json); });

  Command one = command.add("describe", "Inputs, keys, parameters and buffers of a plugin");
  one.footer("Examples:\n  trireme plugin describe convnet\n  trireme plugin describe ./my-net.so --json");
  one.text("plugin", given->name, "a name on the search path, or a file", {.type = "NAME", .required = true});
  one.flag("--trust", given->trust, "load a file that others may write");
  one.flag("--json", given->json, "print one JSON document");
  one.does([given] { return describe(given->name, given->trust, given->json); });
}

}  // namespace trireme::cli
