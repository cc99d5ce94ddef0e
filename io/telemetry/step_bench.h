// What `trireme bench step` measured, and how it is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::io {

// One op at one shape; seconds in a step, all its calls together. Floors: backend/cpu/floor.h.
struct OpBench {
  std::string op, shapes;  // "conv2d", "(128, 28, 28, 1) · (32, 3, 3, 1)"
  std::int64_t calls = 0;  // in a step
  double forward = 0, forward_floor = 0, backward = 0, backward_floor = 0;
};

// Medians over the measured steps of this rank, in seconds of a step; step = forward + backward + update + data_wait +
// comm_wait + glue. forward and backward: kernels alone. glue: everything else, the tape and the plugin included.
struct StepBench {
  std::int64_t steps = 0, batch = 0, ranks = 1, threads = 1;
  std::string device;
  double step = 0, forward = 0, backward = 0, update = 0, data_wait = 0, comm_wait = 0, glue = 0;
  double forward_floor = 0, backward_floor = 0, update_floor = 0;
  std::vector<OpBench> ops;  // dearest first

  [[nodiscard]] double floor() const { return forward_floor + backward_floor + update_floor; }
  [[nodiscard]] double samples_per_second() const { return static_cast<double>(batch) / step; }
};

// For people, and the JSON document (seconds throughout).
[[nodiscard]] std::string table(const StepBench& bench);
[[nodiscard]] std::string document(const StepBench& bench);

}  // namespace trireme::io
