// The table and the document of `trireme bench step`.
#include "io/telemetry/step_bench.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace trireme::io {

std::string table(const StepBench& b) {
  std::string text =
      fmt::format("{}\n{} rank(s), {} thread(s) each, batch {}, {} steps measured; milliseconds of a step\n\n",
                  b.device, b.ranks, b.threads, b.batch, b.steps);
  const auto line = [&](const char* name, double seconds, double floor) {
    text += fmt::format("{:<12}{:>9.3f}{:>7.1f} %", name, seconds * 1e3, 100 * seconds / b.step);
    text += floor > 0 ? fmt::format("{:>11.3f}{:>9.2f}\n", floor * 1e3, floor / seconds) : "\n";
  };
  text += fmt::format("{:<12}{:>9}{:>9}{:>11}{:>9}\n", "part", "ms", "share", "floor ms", "of it");
  line("forward", b.forward, b.forward_floor);
  line("backward", b.backward, b.backward_floor);
  line("update", b.update, b.update_floor);
  line("data wait", b.data_wait, 0);
  line("comm wait", b.comm_wait, 0);
  line("glue", b.glue, 0);
  line("step", b.step, b.floor());
  text += fmt::format("\n{:<24}{:>6}{:>10}{:>8}{:>11}{:>8}  {}\n", "op", "calls", "forward", "floor", "backward",
                      "floor", "inputs");
  for (const OpBench& op : b.ops)
    text += fmt::format("{:<24}{:>6}{:>10.3f}{:>8.3f}{:>11.3f}{:>8.3f}  {}\n", op.op, op.calls, op.forward * 1e3,
                        op.forward_floor * 1e3, op.backward * 1e3, op.backward_floor * 1e3, op.shapes);
  text += fmt::format("\n{:.0f} samples/s; {:.2f} of the floor", b.samples_per_second(), b.floor() / b.step);
  return text;
}

std::string document(const StepBench& b) {
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const OpBench& op : b.ops)
    ops.push_back({{"op", op.op},
                   {"inputs", op.shapes},
                   {"calls", op.calls},
                   {"forward", op.forward},
                   {"forward_floor", op.forward_floor},
                   {"backward", op.backward},
                   {"backward_floor", op.backward_floor}});
  return nlohmann::ordered_json{{"device", b.device},
                                {"ranks", b.ranks},
                                {"threads", b.threads},
                                {"batch", b.batch},
                                {"steps", b.steps},
                                {"samples_per_second", b.samples_per_second()},
                                {"step", b.step},
                                {"forward", b.forward},
                                {"backward", b.backward},
                                {"update", b.update},
                                {"data_wait", b.data_wait},
                                {"comm_wait", b.comm_wait},
                                {"glue", b.glue},
                                {"floor", b.floor()},
                                {"forward_floor", b.forward_floor},
                                {"backward_floor", b.backward_floor},
                                {"update_floor", b.update_floor},
                                {"of_floor", b.floor() / b.step},
                                {"ops", ops}}
      .dump(2);
}

}  // namespace trireme::io
