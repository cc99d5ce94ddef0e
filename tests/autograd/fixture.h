// A tape on the CPU with host arrays as leaves and parameters, and ops applied by name.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/tape.h"
#include "core/backend/cpu/cpu.h"
#include "core/base/error.h"
#include "core/device/device.h"

namespace trireme::autograd {

class TapeTest : public testing::Test {
 protected:
  using Floats = std::vector<float>;

  TapeTest() {
    tape.on_op = [this](const OpCall& call) {
      if (!call.ended && call.op != Tape::add_op) log.push_back(name_of_op(call.op, call.backward));
    };
  }

  // Starts a micro-batch; parameters and leaves of the last one are gone.
  void begin(Mode mode = Mode::train) {
    tape.begin(mode, &block, device->compute_stream());
    parameters.clear();
    leaves.clear();
    log.clear();
    ready.clear();
  }
  Handle parameter(const Shape& shape, Floats values) {
    Parameter& p = parameters.emplace_back();
    p.values = std::move(values);
    p.gradient.assign(p.values.size(), poison);
    const auto begin = parameters.size() * 100;
    p.range = {begin, begin + p.values.size()};
    return tape.parameter({p.values.data(), shape, Dtype::f32}, {p.gradient.data(), shape, Dtype::f32}, p.range);
  }
  Handle leaf(const Shape& shape, Floats values) {
    Floats& kept = leaves.emplace_back(std::move(values));
    return tape.leaf({kept.data(), shape, Dtype::f32});
  }
  Handle apply(const std::string& op, std::initializer_list<Handle> in,
               std::initializer_list<std::pair<const char*, double>> attributes = {}) {
    const auto& registry = ops::Registry::get();
    const std::uint32_t id = registry.find(op, 1);
    ops::Attributes with = registry[id].attributes;
    for (const auto& [name, value] : attributes) with.set(name, value);
    Handle out = 0;
    tape.apply(id, {in.begin(), in.size()}, with, {&out, 1});
    return out;
  }
  Handle reshape(Handle x, std::initializer_list<std::int64_t> dims) {
    const auto& registry = ops::Registry::get();
    const std::uint32_t id = registry.find("reshape", 1);
    ops::Attributes with = registry[id].attributes;
    with.set("shape", std::span<const std::int64_t>(dims.begin(), dims.size()));
    Handle out = 0;
    tape.apply(id, {&x, 1}, with, {&out, 1});
    return out;
  }
  void backward(Handle loss, double n = 1) {
    tape.backward(loss, n, [this](Range range) {
      ready.push_back(range);
      log.push_back("ready " + std::to_string(range.begin / 100));
    });
  }
  Floats values(Handle handle) {
    const auto span = tape.value(handle).span<float>();
    return {span.begin(), span.end()};
  }
  double number(Handle handle) { return tape.value(handle).span<double>()[0]; }
  // Gradient of the parameter made `i`-th (from 0).
  const Floats& gradient(std::size_t i) { return parameters[i].gradient; }

  static std::string name_of_op(std::uint32_t op, bool backward) {
    const std::string name = op == Tape::custom_op ? std::string("custom") : std::string(ops::Registry::get()[op].name);
    return (backward ? "d" : "") + name;
  }
  // The text of the error that `work` ends with.
  template <class F>
  static std::string error_of(F&& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  static constexpr float poison = 12345.0f;  // what a gradient holds that was never written
  struct Parameter {
    Floats values, gradient;
    Range range;
  };
  std::shared_ptr<device::Device> device = device::make_cpu();
  device::StepBlock block{.step = 3, .seed = 7};
  Tape tape{backend::cpu_backend(), device};
  std::deque<Parameter> parameters;
  std::deque<Floats> leaves;
  std::vector<std::string> log;
  std::vector<Range> ready;
};

}  // namespace trireme::autograd
