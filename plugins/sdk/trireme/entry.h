// entry.h: the C entry points of a model class. Exceptions end here.
//
//   TRIREME_MODEL(MyNet, "my-net", "1.0")     // at the end of the plugin's source, once
#pragma once
#include <exception>
#include <memory>
#include <span>

#include "base.h"
#include "config.h"
#include "raw.h"

namespace trireme {
inline namespace sdk {

class Entry {
 public:
  template <class M>
  static trireme_status create(const trireme_host* host, trireme_config* config, const trireme_field* fields,
                               std::size_t count, void** made) {
    return guard(*host, [&] {
      if (host->size < sizeof(trireme_host))
        throw Error("this plugin was built for a newer Trireme (its SDK's host table is longer)");
      Config keys(*host, config);
      std::unique_ptr<Declarations> model = std::make_unique<M>(keys);
      model->context_ = std::make_unique<detail::Context>(*host, std::span(fields, count));
      declare(*model);
      *made = model.release();
    });
  }
  static void destroy(void* model) { delete static_cast<Declarations*>(model); }
  static trireme_status forward(void* self, const trireme_call* call) {
    return inside<Model>(self, call, [](Model& m, const Batch& b) { give(m, m.forward(b)); });
  }
  static trireme_status predict(void* self, const trireme_call* call) {
    return inside<Model>(self, call, [](Model& m, const Batch& b) { give(m, m.predict(b)); });
  }
  static trireme_status loss(void* self, const trireme_call* call) {
    return inside<Model>(self, call, [](Model& m, const Batch& b) { give(m, m.loss(m.outputs_, b)); });
  }
  static trireme_status step(void* self, const trireme_call* call) {
    return inside<RawModel>(self, call, [](RawModel& m, const Batch& b) { m.step(b); });
  }

 private:
  static void declare(Declarations& m) {
    const trireme_host& host = m.context_->host();
    for (const auto& input : m.inputs_) {
      const trireme_field field{detail::to_c(input.name), input.shape, input.dtype, 0};
      m.context_->check(host.declare_input(host.core, &field));
    }
    std::uint32_t index = 0;
    for (const auto& p : m.parameters_) {
      const trireme_parameter c{detail::to_c(p.name),
                                p.shape,
                                p.init.kind,
                                p.decay ? 0u : std::uint32_t{TRIREME_PARAMETER_NO_DECAY},
                                p.init.a,
                                p.init.b,
                                0,
                                0};
      m.context_->check(host.declare_parameter(host.core, &c, &index));
    }
    for (const auto& b : m.buffers_) {
      m.context_->check(
          host.declare_buffer(host.core, detail::to_c(b.name), &b.shape, TRIREME_F32, b.reduce, b.initial, &index));
    }
  }
  static void give(Model& m, const Outputs& outputs) {
    m.outputs_ = outputs;
    for (const auto& item : m.outputs_.items()) {
      m.context_->check(m.context_->host().output(m.context_->core(), detail::to_c(item.name()), item.value.id()));
    }
  }
  static void give(Model& m, const Loss& loss) {
    m.context_->check(m.context_->host().loss(m.context_->core(), loss.sum.id(), loss.weight.id(), loss.n));
  }
  template <class F>
  static trireme_status guard(const trireme_host& host, F&& body) noexcept {
    try {
      body();
      return TRIREME_OK;
    } catch (const std::exception& e) {
      host.fail(host.core, detail::to_c(e.what()));
    } catch (...) {
      host.fail(host.core, detail::to_c("an exception that is no std::exception"));
    }
    return TRIREME_FAILED;
  }
  template <class M, class F>
  static trireme_status inside(void* self, const trireme_call* call, F&& body) noexcept {
    M& m = static_cast<M&>(*static_cast<Declarations*>(self));
    m.context_->enter(call);
    const trireme_status status = guard(m.context_->host(), [&] { body(m, Batch(*m.context_)); });
    m.context_->enter(nullptr);
    return status;
  }
};

}  // namespace sdk
}  // namespace trireme

// Export the plugin's one table. The only macros of the SDK.
#define TRIREME_MODEL(Class, model_name, model_version)                                        \
  extern "C" __attribute__((visibility("default"))) const trireme_plugin trireme_plugin_table; \
  extern "C" const trireme_plugin trireme_plugin_table = {sizeof(trireme_plugin),              \
                                                          TRIREME_ABI_MAJOR,                   \
                                                          TRIREME_ABI_MINOR,                   \
                                                          TRIREME_FLAG_DYNAMIC,                \
                                                          model_name,                          \
                                                          model_version,                       \
                                                          __VERSION__,                         \
                                                          &::trireme::Entry::create<Class>,    \
                                                          &::trireme::Entry::destroy,          \
                                                          &::trireme::Entry::forward,          \
                                                          &::trireme::Entry::loss,             \
                                                          nullptr,                             \
                                                          &::trireme::Entry::predict,          \
                                                          nullptr};
#define TRIREME_RAW_MODEL(Class, model_name, model_version)                                    \
  extern "C" __attribute__((visibility("default"))) const trireme_plugin trireme_plugin_table; \
  extern "C" const trireme_plugin trireme_plugin_table = {sizeof(trireme_plugin),              \
                                                          TRIREME_ABI_MAJOR,                   \
                                                          TRIREME_ABI_MINOR,                   \
                                                          TRIREME_FLAG_DYNAMIC,                \
                                                          model_name,                          \
                                                          model_version,                       \
                                                          __VERSION__,                         \
                                                          &::trireme::Entry::create<Class>,    \
                                                          &::trireme::Entry::destroy,          \
                                                          nullptr,                             \
                                                          nullptr,                             \
                                                          &::trireme::Entry::step,             \
                                                          nullptr,                             \
                                                          nullptr};
