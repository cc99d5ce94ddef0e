// What a plugin may call while it is created: keys, declarations, ops.
#include <algorithm>

#include "core/plugin/host.h"

namespace trireme::plugin {
namespace {

trireme_status config_integer(trireme_core* core, trireme_config*, const trireme_key* key, int64_t fallback,
                              int64_t* out) {
  return core->host->guarded("config_integer", create, [&](Host& h) { *out = h.keys.integer(*key, fallback); });
}

trireme_status config_number(trireme_core* core, trireme_config*, const trireme_key* key, double fallback,
                             double* out) {
  return core->host->guarded("config_number", create, [&](Host& h) { *out = h.keys.number(*key, fallback); });
}

trireme_status config_boolean(trireme_core* core, trireme_config*, const trireme_key* key, int32_t fallback,
                              int32_t* out) {
  return core->host->guarded("config_boolean", create,
                             [&](Host& h) { *out = h.keys.boolean(*key, fallback != 0) ? 1 : 0; });
}

trireme_status config_text(trireme_core* core, trireme_config*, const trireme_key* key, trireme_string fallback,
                           const trireme_string* choices, size_t choice_count, trireme_string* out) {
  return core->host->guarded("config_text", create, [&](Host& h) {
    const std::string_view text = h.keys.text(*key, view(fallback), {choices, choice_count});
    *out = {text.data(), text.size()};
  });
}

trireme_status declare_input(trireme_core* core, const trireme_field* field) {
  return core->host->guarded("declare_input", create, [&](Host& h) {
    if (field->shape.rank < 0 || field->shape.rank > TRIREME_MAX_RANK) (void)shape_of(field->shape, "declare_input");
    const Wish wish{std::string(view(field->name)), field->shape, dtype_of(field->dtype, "declare_input")};
    h.inputs.push_back(wish);
    if (h.dry) return;
    std::vector<std::string> names;
    for (const Field& known : h.fields) {
      names.push_back(known.name);
      if (known.name != wish.name || wish.fits(known.shape, known.dtype)) continue;
      fail(ExitCode::usage,
           "field '{}': plugin '{}' wants {} for one sample, the data has {} {} (after [data] transform)", wish.name,
           h.library.name(), wish.text(), name_of(known.dtype), known.shape.text());
    }
    if (std::find(names.begin(), names.end(), wish.name) != names.end()) return;
    const std::string near = nearest(wish.name, names);
    fail(ExitCode::usage, "field '{}': plugin '{}' wants it ({} for one sample), [data] fields does not name it{}",
         wish.name, h.library.name(), wish.text(), near.empty() ? "" : "; it has '" + near + "'");
  });
}

trireme_status declare_parameter(trireme_core* core, const trireme_parameter* p, uint32_t* index) {
  return core->host->guarded("declare_parameter", create, [&](Host& h) {
    const std::string name(view(p->name));
    if (p->init < TRIREME_ZEROS || p->init > TRIREME_NORMAL) {
      fail(ExitCode::internal, "parameter '{}': {} is no initialiser", name, p->init);
    }
    if (p->init == TRIREME_UNIFORM && !(p->a <= p->b)) {
      fail(ExitCode::internal, "parameter '{}': uniform in [{}, {}) is empty", name, p->a, p->b);
    }
    if (p->phase != 0) {
      fail(ExitCode::internal, "parameter '{}': phase {}; phases come with a later version", name, p->phase);
    }
    h.layout.parameters.push_back({name,
                                   shape_of(p->shape, "declare_parameter"),
                                   static_cast<Init>(p->init),
                                   p->a,
                                   p->b,
                                   (p->flags & TRIREME_PARAMETER_NO_DECAY) == 0,
                                   {}});
    *index = static_cast<uint32_t>(h.layout.parameters.size() - 1);
  });
}

trireme_status declare_buffer(trireme_core* core, trireme_string name, const trireme_shape* shape, trireme_dtype dtype,
                              trireme_reduce reduce, double initial, uint32_t* index) {
  return core->host->guarded("declare_buffer", create, [&](Host& h) {
    if (dtype != TRIREME_F32) fail(ExitCode::internal, "buffer '{}': f32 is wanted", view(name));
    if (reduce != TRIREME_MEAN && reduce != TRIREME_MAX) {
      fail(ExitCode::internal, "buffer '{}': {} is neither mean nor max", view(name), reduce);
    }
    if (reduce == TRIREME_MAX) {
      fail(ExitCode::internal, "buffer '{}': reduced by max; that comes with a later version, take mean", view(name));
    }
    h.layout.buffers.push_back(
        {std::string(view(name)), shape_of(*shape, "declare_buffer"), static_cast<Reduce>(reduce), initial, {}});
    *index = static_cast<uint32_t>(h.layout.buffers.size() - 1);
  });
}

trireme_status declare_output(trireme_core* core, trireme_string name, const trireme_shape* shape,
                              trireme_dtype dtype) {
  return core->host->guarded("declare_output", create, [&](Host& h) {
    if (shape->rank < 0 || shape->rank > TRIREME_MAX_RANK) (void)shape_of(*shape, "declare_output");
    h.wanted_outputs.push_back({std::string(view(name)), *shape, dtype_of(dtype, "declare_output")});
  });
}

trireme_status declare_phase(trireme_core* core, trireme_string name, uint32_t*) {
  return core->host->guarded("declare_phase", create, [&](Host&) {
    fail(ExitCode::internal, "declare_phase '{}': phases come with a later version", view(name));
  });
}

trireme_status find_op(trireme_core* core, trireme_string name, uint32_t version, trireme_op* id) {
  return core->host->guarded("op", create | running,
                             [&](Host&) { *id = ops::Registry::get().find(view(name), version); });
}

}  // namespace

void set_create_functions(trireme_host& table) {
  table.config_integer = config_integer;
  table.config_number = config_number;
  table.config_boolean = config_boolean;
  table.config_text = config_text;
  table.declare_input = declare_input;
  table.declare_parameter = declare_parameter;
  table.declare_buffer = declare_buffer;
  table.declare_output = declare_output;
  table.declare_phase = declare_phase;
  table.op = find_op;
}

}  // namespace trireme::plugin
