// The lines and the document of `trireme eval`.
#include "io/telemetry/eval_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace trireme::io {

std::string lines(const EvalReport& e) {
  std::string text = fmt::format("checkpoint  {}\nsamples     {}\nloss        {:.6f}", e.checkpoint, e.samples, e.loss);
  for (const auto& [name, value] : e.metrics) text += fmt::format("\n{:<11} {:.6f}", name, value);
  return text;
}

std::string document(const EvalReport& e) {
  nlohmann::ordered_json document{
      {"checkpoint", e.checkpoint}, {"step", e.step}, {"samples", e.samples}, {"loss", e.loss}};
  for (const auto& [name, value] : e.metrics) document[name] = value;
  return document.dump(2);
}

}  // namespace trireme::io
