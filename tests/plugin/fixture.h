// A model from a plugin of this build, a micro-batch for it, and its gradients.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/cpu/cpu.h"
#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/device/device.h"
#include "core/plugin/model.h"

namespace trireme::plugin {

using Config = std::map<std::string, JobValue>;
// What the fixture plugins are told to get wrong.
inline Config fault(const std::string& what) { return {{"fault", {what, "job.toml:12"}}}; }

// Text and code of the error that `work` ends with.
struct Caught {
  std::string text = "no error";
  ExitCode code = ExitCode::done;
};
template <class F>
Caught error_of(F&& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.what(), error.code()};
  }
  return {};
}

// A fixture plugin (tests/plugin/fixtures) as a file.
inline std::string fixture_file(const std::string& name) { return fmt::format("{}/{}.so", TRIREME_FIXTURES, name); }

// For EXPECT_PRED2, which shows both.
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Micro {
 public:
  Micro(const std::string& plugin, const Config& config, std::vector<Field> fields, std::int64_t batch,
        std::uint64_t seed = 1)
      : fields_(std::move(fields)), rows(batch) {
    model = std::make_unique<Model>(Library::load(plugin, true), backend::cpu_backend(), device, config, fields_, seed);
    for (const Field& field : fields_) {
      tensor::Tensor tensor{nullptr, field.shape.batched(rows), field.dtype};
      memory_.emplace_back(device, std::max<std::size_t>(tensor.bytes(), 1));
      tensor.data = memory_.back().data();
      data.push_back(tensor);
    }
    gradients.assign(model->layout().parameter_elements, 0);
    new_buffers.assign(model->layout().buffer_elements, 0);
    draw();
  }
  // Pictures uniform in [0, 1) and labels below 10, from a fixed stream.
  void draw() {
    const RandomKey key = random_key(99, Purpose::transform, 0, 0, 0);
    std::uint64_t at = 0;
    for (auto& tensor : data) {
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        const std::uint32_t bits = random_bits(key, at++);
        const auto n = static_cast<std::size_t>(i);
        if (tensor.dtype == Dtype::f32) tensor.span<float>()[n] = to_uniform(bits);
        if (tensor.dtype == Dtype::u8) tensor.span<std::uint8_t>()[n] = static_cast<std::uint8_t>(to_below(bits, 10));
        if (tensor.dtype == Dtype::i64) tensor.span<std::int64_t>()[n] = to_below(bits, 10);
      }
    }
  }
  Loss forward(Mode mode = Mode::train) {
    const bool trains = mode == Mode::train;
    return model->run(mode, data, &block, stream,
                      trains ? Model::Destination{gradients, new_buffers} : Model::Destination{});
  }
  double number(autograd::Handle handle) { return model->value(handle).span<double>()[0]; }
  double loss_sum(Mode mode = Mode::train) {
    const double sum = number(forward(mode).sum);
    model->reset();
    return sum;
  }
  // One micro-batch with backward; the ranges announced.
  std::vector<Range> train() {
    std::vector<Range> ready;
    const Loss loss = forward();
    model->backward(loss, [&](Range range) { ready.push_back(range); });
    model->reset();
    return ready;
  }
  const Parameter& parameter(const std::string& name) const {
    for (const auto& p : model->layout().parameters) {
      if (p.name == name) return p;
    }
    throw std::runtime_error("no parameter " + name);
  }

 private:
  std::vector<Field> fields_;
  std::vector<device::Buffer> memory_;

 public:
  std::int64_t rows;
  std::shared_ptr<device::Device> device = device::make_cpu();
  device::Stream stream = device->compute_stream();
  device::StepBlock block{.step = 5, .seed = 3};
  std::unique_ptr<Model> model;
  std::vector<tensor::Tensor> data;
  std::vector<float> gradients, new_buffers;
};

inline std::vector<Field> image_fields(Dtype image = Dtype::f32, Shape shape = {28, 28}) {
  return {{"image", shape, image}, {"label", Shape{}, Dtype::u8}};
}

}  // namespace trireme::plugin
