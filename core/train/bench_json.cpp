// The document of `trireme bench step --json`. Seconds throughout.
#include <nlohmann/json.hpp>

#include "core/train/bench.h"

namespace trireme::train {

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

}  // namespace trireme::train
