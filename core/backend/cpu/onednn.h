// oneDNN primitives made once for each shape, run on memory given by each call. Compute thread only: every thread has
// its own primitives.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

#include "core/tensor/arena.h"

namespace trireme::backend {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
inline constexpr auto f32 = dnnl::memory::data_type::f32;

[[nodiscard]] dnnl::engine& onednn_engine();

// A primitive with the memory objects of its arguments.
class Primitive {
 public:
  struct Argument {
    int name;  // DNNL_ARG_…
    Desc desc;
  };
  // `scratchpad`: what the primitive descriptor asks for in user mode.
  Primitive(const dnnl::primitive& primitive, const Desc& scratchpad, std::initializer_list<Argument> arguments);
  // Memory for each argument, in their order.
  void run(std::initializer_list<const void*> memory, tensor::Arena& scratch);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memory_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::size_t scratchpad_bytes_;
};

// Attributes that take the scratchpad from the caller.
[[nodiscard]] dnnl::primitive_attr user_scratchpad();
// Throws Error(internal) where oneDNN offers only its reference code, hundreds of times slower.
void refuse_reference(const dnnl::primitive_desc_base& descriptor, const std::string& what);
// Changes the layout of one array.
[[nodiscard]] Primitive make_reorder(const Desc& from, const Desc& to);

// By shape. The thread number belongs into the key: primitives are cut for it.
using ShapeKey = std::array<std::int64_t, 16>;
[[nodiscard]] std::int64_t onednn_threads();
struct ShapeHash {
  [[nodiscard]] std::size_t operator()(const ShapeKey& key) const noexcept;
};
template <class Value>
class ShapeCache {
 public:
  template <class Make>
  [[nodiscard]] Value& get(const ShapeKey& key, const Make& make) {
    const auto found = map_.find(key);
    if (found != map_.end()) return *found->second;
    if (map_.size() == most) map_.clear();  // a model whose shapes never settle must not grow for ever
    return *map_.emplace(key, std::make_unique<Value>(make())).first->second;
  }

 private:
  static constexpr std::size_t most = 1024;
  std::unordered_map<ShapeKey, std::unique_ptr<Value>, ShapeHash> map_;
};

// c (m, n) = a (m, k) · b (k, n) + bias (n, may be null), f32, dense row-major; a "transposed" operand lies in memory
// with its two extents exchanged.
struct Product {
  const float* a;
  bool a_transposed;
  const float* b;
  bool b_transposed;
  const float* bias;
  float* c;
  std::int64_t m, n, k;
};
void multiply(const Product& product, tensor::Arena& scratch);

}  // namespace trireme::backend
