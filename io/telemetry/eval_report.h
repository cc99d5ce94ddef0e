// What `trireme eval` found, and how it is told.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trireme::io {

struct EvalReport {
  std::string checkpoint;  // its folder
  std::uint64_t step = 0;
  std::int64_t samples = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;
};

// For people, and the JSON document.
[[nodiscard]] std::string lines(const EvalReport& report);
[[nodiscard]] std::string document(const EvalReport& report);

}  // namespace trireme::io
