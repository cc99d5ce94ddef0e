// What a plugin may call while it computes: ops, memory, custom functions, random numbers, threads.
#include "core/base/threads.h"
#include "core/device/kernels.h"
#include "core/plugin/host.h"

namespace trireme::plugin {
namespace {

void set_attribute(ops::Attributes& to, const trireme_attribute& from) {
  const std::string_view name = view(from.name);
  switch (from.kind) {
    case TRIREME_ATTR_INTEGER: to.set(name, static_cast<double>(from.integer)); return;
    case TRIREME_ATTR_NUMBER: to.set(name, from.number); return;
    case TRIREME_ATTR_INTEGERS: to.set(name, std::span<const std::int64_t>(from.integers, from.integer_count)); return;
    default: fail(ExitCode::internal, "apply: attribute '{}': kind {} is not known here", name, from.kind);
  }
}

trireme_status apply(trireme_core* core, trireme_op op, const trireme_tensor* in, size_t in_count,
                     const trireme_attribute* attributes, size_t attribute_count, trireme_tensor* out,
                     size_t out_count) {
  return core->host->guarded("apply", running, [&](Host& h) {
    const auto all = ops::Registry::get().all();
    if (op >= all.size()) fail(ExitCode::internal, "apply: {} is no op; ids come from op(name, version)", op);
    if (out_count > ops::max_tensors)
      fail(ExitCode::internal, "apply: {} outputs, at most {}", out_count, ops::max_tensors);
    ops::Attributes with = all[op].attributes;
    for (std::size_t i = 0; i < attribute_count; ++i) set_attribute(with, attributes[i]);
    for (std::size_t i = 0; i < out_count; ++i) {
      if (out[i] != 0 && h.is_read_only(out[i])) {
        fail(ExitCode::internal, "{}: output {} is to be written to a field, parameter or buffer; those are read-only",
             all[op].name, i);
      }
      if (out[i] != 0) h.note_written(out[i]);
    }
    h.tape->apply(op, {in, in_count}, with, {out, out_count});
  });
}

trireme_status tensor_shape(trireme_core* core, trireme_tensor tensor, trireme_shape* shape, trireme_dtype* dtype) {
  return core->host->guarded("shape", running, [&](Host& h) {
    const auto entry = h.tape->signature(tensor);
    *shape = {};
    shape->rank = entry.shape.rank();
    std::copy(entry.shape.dims().begin(), entry.shape.dims().end(), shape->dims);
    *dtype = static_cast<trireme_dtype>(entry.dtype);
  });
}

trireme_status tensor_view(trireme_core* core, trireme_tensor tensor, trireme_view* out) {
  return core->host->guarded("view", running, [&](Host& h) {
    h.prepare_view(tensor);
    const tensor::Tensor& value = h.tape->value(tensor);
    *out = {};
    out->data = value.data;
    out->shape.rank = value.shape.rank();
    std::int64_t stride = 1;
    for (int i = value.shape.rank() - 1; i >= 0; --i) {
      out->shape.dims[i] = value.shape[i];
      out->strides[i] = stride;
      stride *= value.shape[i];
    }
    out->dtype = static_cast<trireme_dtype>(value.dtype);
    out->device = static_cast<trireme_device>(h.device->kind());
  });
}

trireme_status read(trireme_core* core, trireme_tensor tensor, void* to, size_t size_bytes) {
  return core->host->guarded("read", running, [&](Host& h) {
    const tensor::Tensor& value = h.tape->value(tensor);
    if (size_bytes != value.bytes()) {
      fail(ExitCode::internal, "read: {} bytes are given for a tensor of {} ({} {})", size_bytes, value.bytes(),
           name_of(value.dtype), value.shape.text());
    }
    h.stream.copy({static_cast<std::byte*>(to), size_bytes}, {value.as<const std::byte>(), size_bytes});
    h.stream.synchronize();
  });
}

trireme_status allocate(trireme_core* core, trireme_dtype dtype, const trireme_shape* shape, trireme_tensor* out) {
  return core->host->guarded("allocate", running, [&](Host& h) {
    *out = h.tape->allocate(shape_of(*shape, "allocate"), dtype_of(dtype, "allocate"));
  });
}

trireme_status workspace(trireme_core* core, size_t size_bytes, void** memory) {
  return core->host->guarded("workspace", running, [&](Host& h) { *memory = h.tape->workspace(size_bytes); });
}

trireme_status custom(trireme_core* core, const trireme_custom* body, const trireme_tensor* in, size_t in_count,
                      const trireme_field* out_shapes, size_t out_count, trireme_tensor* out) {
  return core->host->guarded("custom", running, [&](Host& h) {
    if (body->forward == nullptr || body->backward == nullptr) {
      fail(ExitCode::internal, "custom: a function needs forward and backward");
    }
    if (out_count > ops::max_tensors) {
      fail(ExitCode::internal, "custom: {} outputs, at most {}", out_count, ops::max_tensors);
    }
    const auto kept = h.keep_custom(*body);
    std::array<ops::Signature::Entry, ops::max_tensors> shapes{};
    for (std::size_t i = 0; i < out_count; ++i) {
      shapes[i] = {shape_of(out_shapes[i].shape, "custom"), dtype_of(out_shapes[i].dtype, "custom")};
    }
    h.tape->custom(kept, {in, in_count}, std::span(shapes).first(out_count), {out, out_count});
  });
}

trireme_status mark(trireme_core* core, uint64_t* out) {
  return core->host->guarded("mark", predict, [&](Host& h) { *out = h.tape->mark(); });
}

trireme_status rewind(trireme_core* core, uint64_t to) {
  return core->host->guarded("rewind", predict, [&](Host& h) { h.tape->rewind(to); });
}

static_assert(static_cast<int>(device::Distribution::uniform) == TRIREME_RANDOM_UNIFORM &&
              static_cast<int>(device::Distribution::normal) == TRIREME_RANDOM_NORMAL &&
              static_cast<int>(device::Distribution::bits) == TRIREME_RANDOM_BITS);

trireme_status random(trireme_core* core, trireme_distribution distribution, double a, double b, trireme_tensor into) {
  return core->host->guarded("random", forward | loss | step | predict, [&](Host& h) {
    if (distribution < TRIREME_RANDOM_UNIFORM || distribution > TRIREME_RANDOM_BITS) {
      fail(ExitCode::internal, "random: {} is no distribution", distribution);
    }
    if (h.is_read_only(into)) fail(ExitCode::internal, "random: fields, parameters and buffers are read-only");
    h.prepare_view(into);
    const tensor::Tensor& value = h.tape->value(into);
    const bool bits = distribution == TRIREME_RANDOM_BITS;
    if (bits ? value.dtype != Dtype::i32 : value.dtype != Dtype::f32 && value.dtype != Dtype::f64) {
      fail(ExitCode::internal, "random: {} is wanted, the tensor is {}", bits ? "i32" : "f32 or f64",
           name_of(value.dtype));
    }
    h.device->kernels().random({value.data, static_cast<std::size_t>(value.elements()), value.dtype,
                                static_cast<device::Distribution>(distribution), a, b, h.block, h.tape->take_ordinal()},
                               h.stream);
  });
}

trireme_status run_parallel(trireme_core* core, size_t count, void (*body)(void* state, size_t begin, size_t end),
                            void* state) {
  return core->host->guarded("parallel_for", running, [&](Host&) {
    trireme::parallel_for(count, 1, [body, state](std::size_t begin, std::size_t end) { body(state, begin, end); });
  });
}

}  // namespace

void set_call_functions(trireme_host& table) {
  table.apply = apply;
  table.shape = tensor_shape;
  table.view = tensor_view;
  table.read = read;
  table.allocate = allocate;
  table.workspace = workspace;
  table.custom = custom;
  table.mark = mark;
  table.rewind = rewind;
  table.random = random;
  table.parallel_for = run_parallel;
}

}  // namespace trireme::plugin
