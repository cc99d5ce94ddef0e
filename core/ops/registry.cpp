// All ops by name.
#include <array>

#include "core/base/error.h"
#include "core/ops/all.h"

namespace trireme::ops {

Registry::Registry()
    : ops_{linear_op(),    conv2d_op(), batch_norm_op(), relu_op(),     max_pool2d_op(),
           dropout_op(),   add_op(),    mul_op(),        reshape_op(),  flatten_op(),
           sum_op(),       mean_op(),   convert_op(),    accuracy_op(), softmax_cross_entropy_op(),
           avg_pool2d_op()} {
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    ops_[i].attributes.name_op(ops_[i].name);
    for (std::size_t j = 0; j < i; ++j) {
      if (ops_[i].name == ops_[j].name) fail(ExitCode::internal, "op '{}' is registered twice", ops_[i].name);
    }
  }
}

const Registry& Registry::get() {
  static const Registry registry;
  return registry;
}

std::uint32_t Registry::find(std::string_view name, std::uint32_t version) const {
  for (std::uint32_t id = 0; id < ops_.size(); ++id) {
    if (ops_[id].name != name) continue;
    if (ops_[id].version != version) {
      fail(
          ExitCode::internal,
          "op '{}': the plugin wants version {}, this Trireme has version {}; build the plugin with this Trireme's SDK",
          name, version, ops_[id].version);
    }
    return id;
  }
  std::vector<std::string_view> names;
  for (const auto& op : ops_) names.push_back(op.name);
  const std::string near = nearest(std::string(name), names);
  std::string hint = near.empty() ? "known ops:" : fmt::format("did you mean '{}'?", near);
  if (near.empty()) {
    for (const auto known : names) hint += fmt::format(" {}", known);
  }
  fail(ExitCode::internal, "unknown op '{}': {}", name, hint);
}

}  // namespace trireme::ops
