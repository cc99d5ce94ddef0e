// oneDNN: engine, primitives, the matrix product.
#include "core/backend/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <string_view>

#include "core/base/error.h"

namespace trireme::backend {
namespace {

dnnl::stream& onednn_stream() {
  static dnnl::stream stream(onednn_engine());  // holds no state on the CPU: work runs on the calling thread's team
  return stream;
}

Primitive make_product(const Product& p) {
  const Desc a({p.m, p.k}, f32, p.a_transposed ? Tag::ba : Tag::ab);
  const Desc b({p.k, p.n}, f32, p.b_transposed ? Tag::ba : Tag::ab);
  const Desc bias({1, p.n}, f32, Tag::ab), c({p.m, p.n}, f32, Tag::ab);
  const auto descriptor = p.bias != nullptr
                              ? dnnl::matmul::primitive_desc(onednn_engine(), a, b, bias, c, user_scratchpad())
                              : dnnl::matmul::primitive_desc(onednn_engine(), a, b, c, user_scratchpad());
  refuse_reference(descriptor, fmt::format("matrix product ({}, {}) · ({}, {})", p.m, p.k, p.k, p.n));
  const dnnl::matmul matmul(descriptor);
  if (p.bias == nullptr) {
    return {matmul, descriptor.scratchpad_desc(), {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}};
  }
  return {matmul,
          descriptor.scratchpad_desc(),
          {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}, {DNNL_ARG_BIAS, bias}}};
}

}  // namespace

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

std::int64_t onednn_threads() { return omp_get_max_threads(); }

Primitive::Primitive(const dnnl::primitive& primitive, const Desc& scratchpad,
                     std::initializer_list<Argument> arguments)
    : primitive_(primitive), scratchpad_bytes_(scratchpad.get_size()) {
  const auto add = [&](int name, const Desc& desc) {
    memory_.push_back(dnnl::memory(desc, onednn_engine(), DNNL_MEMORY_NONE));
    arguments_.push_back({name, memory_.back().get()});
  };
  for (const auto& argument : arguments) add(argument.name, argument.desc);
  if (scratchpad_bytes_ > 0) add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

void Primitive::run(std::initializer_list<const void*> memory, tensor::Arena& scratch) {
  const auto set = [](dnnl::memory& at, const void* data) {
    // oneDNN asks for a mutable pointer to what it reads, too.
    at.set_data_handle(const_cast<void*>(data));
  };
  std::size_t i = 0;
  for (const void* data : memory) set(memory_[i++], data);
  if (scratchpad_bytes_ > 0) set(memory_[i++], scratch.allocate(scratchpad_bytes_));
  if (i != memory_.size()) {
    fail(ExitCode::internal, "oneDNN primitive: {} arguments given, {} wanted", i, memory_.size());
  }
  // The C call: the C++ one builds a map, which allocates.
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), onednn_stream().get(),
                                                      static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    fail(ExitCode::internal, "oneDNN refused to run a primitive: status {}", static_cast<int>(status));
  }
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void refuse_reference(const dnnl::primitive_desc_base& descriptor, const std::string& what) {
  const std::string_view name = descriptor.impl_info_str();
  if (!name.starts_with("ref")) return;
  fail(ExitCode::internal, "{}: oneDNN has only its reference implementation ('{}') for this shape on this processor",
       what, name);
}

Primitive make_reorder(const Desc& from, const Desc& to) {
  const dnnl::reorder::primitive_desc descriptor(onednn_engine(), from, onednn_engine(), to, user_scratchpad());
  return {dnnl::reorder(descriptor), descriptor.scratchpad_desc(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

std::size_t ShapeHash::operator()(const ShapeKey& key) const noexcept {
  std::uint64_t hash = 0;
  for (const std::int64_t part : key) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

void multiply(const Product& p, tensor::Arena& scratch) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    for (std::int64_t i = 0; i < p.m * p.n; ++i) p.c[i] = p.bias != nullptr ? p.bias[i % p.n] : 0;
    return;
  }
  thread_local ShapeCache<Primitive> cache;
  const ShapeKey key{p.m, p.n, p.k, p.a_transposed, p.b_transposed, p.bias != nullptr, onednn_threads()};
  Primitive& primitive = cache.get(key, [&] { return make_product(p); });
  if (p.bias == nullptr) {
    primitive.run({p.a, p.b, p.c}, scratch);
  } else {
    primitive.run({p.a, p.b, p.c, p.bias}, scratch);
  }
}

}  // namespace trireme::backend
