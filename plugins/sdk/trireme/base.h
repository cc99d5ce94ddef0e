// base.h: the base of models. A complete one (model.h includes all it needs):
//
//   #include <trireme/model.h>
//   using namespace trireme;
//
//   class Softmax final : public Model {
//    public:
//     explicit Softmax(Config& c) : head_(*this, "head", c.integer("inputs", 784, "extent of a sample"), 10) {}
//     Outputs forward(const Batch& batch) override { return {{"logits", head_(batch["image"].flatten(1))}}; }
//     Loss loss(const Outputs& out, const Batch& batch) override {
//       return cross_entropy(out["logits"], batch["label"]);
//     }
//    private:
//     Linear head_;
//   };
//   TRIREME_MODEL(Softmax, "softmax", "1.0")
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch.h"
#include "losses.h"

namespace trireme {
inline namespace sdk {

// How the core draws a parameter at the start: from the job's seed and the parameter's name alone.
struct Init {
  trireme_init kind = TRIREME_ZEROS;
  double a = 0, b = 0;
  static Init zeros() { return {}; }
  static Init constant(double value) { return {TRIREME_CONSTANT, value, 0}; }
  static Init uniform(double low, double high) { return {TRIREME_UNIFORM, low, high}; }
  static Init normal(double mean, double deviation) { return {TRIREME_NORMAL, mean, deviation}; }
};

// What Model and RawModel share: declarations, made in the constructor and sent to the core after it.
class Declarations {
 public:
  Declarations() = default;
  Declarations(const Declarations&) = delete;
  Declarations& operator=(const Declarations&) = delete;
  virtual ~Declarations() = default;

  // Declares a trained f32 tensor; without decay, weight decay leaves it alone (biases, norms). Its index.
  std::size_t parameter(std::string name, std::initializer_list<std::int64_t> dims, Init init, bool decay = true) {
    parameters_.push_back({std::move(name), detail::shape_of(dims), init, decay});
    return parameters_.size() - 1;
  }
  // Declares f32 state that is not trained (running statistics): read-only in a step, which writes new values; the
  // micro-batches' mean becomes the buffer (TRIREME_MAX comes with a later version). Its index.
  std::size_t buffer(std::string name, std::initializer_list<std::int64_t> dims, double initial,
                     trireme_reduce reduce = TRIREME_MEAN) {
    buffers_.push_back({std::move(name), detail::shape_of(dims), initial, reduce});
    return buffers_.size() - 1;
  }
  // Says what a field must be; one sample, without the batch dimension; -1: any extent. Checked before step 1.
  void input(std::string name, std::initializer_list<std::int64_t> dims, trireme_dtype dtype) {
    inputs_.push_back({std::move(name), detail::shape_of(dims), dtype});
  }

 protected:
  [[nodiscard]] bool training() const { return context().call().mode == TRIREME_TRAIN; }
  [[nodiscard]] std::int64_t rows() const { return context().call().rows; }
  [[nodiscard]] Tensor parameter(std::size_t index) const { return {context(), context().call().parameters[index]}; }
  [[nodiscard]] Tensor buffer(std::size_t index) const { return {context(), context().call().buffers[index]}; }
  // Adds a metric of this micro-batch: the same names in the same order every time.
  void report(std::string_view name, const Metric& m) {
    detail::Context& c = context();
    c.check(c.host().report(c.core(), detail::to_c(name), m.sum.id(), m.weight.id()));
  }
  // Activation memory, not zeroed, without gradient.
  [[nodiscard]] Tensor allocate(std::initializer_list<std::int64_t> dims, trireme_dtype dtype = TRIREME_F32) {
    const trireme_shape shape = detail::shape_of(dims);
    trireme_tensor id = 0;
    detail::Context& c = context();
    c.check(c.host().allocate(c.core(), dtype, &shape, &id));
    return {c, id};
  }
  [[nodiscard]] detail::Context& context() const {
    if (!context_) throw Error("training, rows, parameter, buffer, report and allocate are not for a constructor");
    return *context_;
  }

 private:
  friend class Entry;
  struct Parameter {
    std::string name;
    trireme_shape shape;
    Init init;
    bool decay;
  };
  struct Buffer {
    std::string name;
    trireme_shape shape;
    double initial;
    trireme_reduce reduce;
  };
  struct Input {
    std::string name;
    trireme_shape shape;
    trireme_dtype dtype;
  };
  std::vector<Parameter> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<Input> inputs_;
  std::unique_ptr<detail::Context> context_;
};

// Base of models. One object a process; nothing in it may change from step to step: the core owns all state.
class Model : public Declarations {
 public:
  virtual Outputs forward(const Batch& batch) = 0;
  virtual Loss loss(const Outputs& outputs, const Batch& batch) = 0;
  virtual Outputs predict(const Batch& batch) { return forward(batch); }

 private:
  friend class Entry;
  Outputs outputs_;  // of the micro-batch between forward and loss
};

}  // namespace sdk
}  // namespace trireme
