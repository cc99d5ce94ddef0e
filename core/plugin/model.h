// The loaded plugin as the core sees it: declarations and arenas, one call for forward and loss, one for backward.
// One per process; compute thread only. Exceptions of the plugin arrive as Error(internal) with plugin, and text.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/tape.h"
#include "core/base/field.h"
#include "core/base/job.h"
#include "core/base/mode.h"
#include "core/plugin/layout.h"
#include "core/plugin/library.h"

namespace trireme::plugin {

// A key of [model] as the plugin declared it, with the value in force.
struct ModelKey {
  std::string name, help, type, range, fallback, value;
};

// Sum over the micro-batch and its weight, both one f64 on the device.
struct Weighted {
  std::string name;
  autograd::Handle sum = 0, weight = 0;
};
struct Loss {
  autograd::Handle sum = 0, weight = 0;
  double n = 0;  // weight of one full micro-batch with nothing ignored
};
struct Output {
  std::string name;
  autograd::Handle value = 0;
};

class Model {
 public:
  // Creates the plugin's model: keys of [model] checked against its declarations (unknown: Error(usage) with the
  // nearest and the place), layout placed, arenas allocated on the device and initialised from `seed`.
  Model(std::shared_ptr<const Library> library, const ops::Backend& backend, std::shared_ptr<device::Device> device,
        const std::map<std::string, JobValue>& config, std::span<const Field> fields, std::uint64_t seed);
  ~Model();

  [[nodiscard]] const Library& library() const;
  [[nodiscard]] const Layout& layout() const;
  [[nodiscard]] std::span<const ModelKey> keys() const;
  [[nodiscard]] std::span<float> parameters() const;  // device arena
  [[nodiscard]] std::span<float> buffers() const;     // device arena; read-only within a step

  // Where a training micro-batch writes: one gradient arena (+ new buffers behind it in an arena of their own).
  struct Destination {
    std::span<float> gradients, new_buffers;
  };
  // One pass of forward, loss and backward on zeros of one micro-batch: fixes outputs and metric names, which every
  // later call is checked against, meets every op that the backend lacks, and maps the memory that steps will use.
  // Before step 1.
  void shape_pass(std::int64_t rows);

  // Runs forward and loss (raw plugins: their step) on `fields`, (rows, …) each, in the order of the constructor.
  // In evaluate `to` is empty. The stream, block and memory of `to` must live until reset().
  Loss run(Mode mode, std::span<const tensor::Tensor> fields, const device::StepBlock* block, device::Stream& stream,
           const Destination& to);
  // Backward of the micro-batch that run() left. Parameters' gradients are in `to` of run(). Raw plugins wrote theirs
  // in run(); the ranges that they announced are passed on here, since buckets may leave only after the scalars.
  void backward(const Loss& loss, const autograd::Tape::Ready& ready);
  // Forward without tape for prediction; outputs() then has the results until reset().
  void predict(std::span<const tensor::Tensor> fields, const device::StepBlock* block, device::Stream& stream);
  // Ends the micro-batch: handles and activations are gone.
  void reset();

  [[nodiscard]] std::span<const Weighted> metrics() const;  // of this micro-batch, in fixed order
  [[nodiscard]] std::span<const Output> outputs() const;
  [[nodiscard]] const tensor::Tensor& value(autograd::Handle handle);
  [[nodiscard]] std::vector<std::string> metric_names() const;  // after shape_pass
  // First parameter overlapping a range, for messages ("fc1.weight").
  [[nodiscard]] const Parameter& parameter_at(std::uint64_t element) const;
  [[nodiscard]] bool raw() const;
  [[nodiscard]] std::size_t activation_bytes() const;
  [[nodiscard]] autograd::Tape& tape();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What `trireme plugin describe` prints: a dry create (no data, no memory).
struct Description {
  std::string name, version, build;
  std::vector<ModelKey> keys;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Field> inputs;
};
[[nodiscard]] Description describe(const Library& library, const std::map<std::string, JobValue>& config);

}  // namespace trireme::plugin
