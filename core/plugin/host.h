// The host's side of the C boundary: the table that a plugin calls, and the state behind it. Seen by this folder alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/tape.h"
#include "core/base/error.h"
#include "core/plugin/keys.h"
#include "core/plugin/layout.h"
#include "core/plugin/library.h"
#include "core/plugin/model.h"
#include "core/plugin/named_list.h"
#include "trireme/abi.h"

namespace trireme::plugin {
class Host;
}
struct trireme_core {
  trireme::plugin::Host* host;
};

namespace trireme::plugin {

// Which of the plugin's entry points runs: what the host's functions allow goes by it.
enum Stage : std::uint32_t { idle = 0, create = 1, forward = 2, loss = 4, step = 8, predict = 16, backward = 32 };
inline constexpr std::uint32_t running = forward | loss | step | predict | backward;

[[nodiscard]] Shape shape_of(const trireme_shape& shape, const char* function);
[[nodiscard]] Dtype dtype_of(trireme_dtype dtype, const char* function);

// What the plugin likes a field or an output to be; -1: any extent.
struct Wish {
  std::string name;
  trireme_shape shape{};
  Dtype dtype = Dtype::f32;
  [[nodiscard]] bool fits(const Shape& actual, Dtype actual_dtype) const;
  [[nodiscard]] std::string text() const;  // "f32 (28, 28, any)"
};

class Host {
 public:
  // `fields` as create is told; dry: only described, there is no device and no tape.
  Host(const Library& library, const std::map<std::string, JobValue>& config, std::span<const Field> fields, bool dry);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Calls the plugin's create; afterwards everything is declared. Throws as call() does.
  [[nodiscard]] void* create_model();
  // Runs an entry point of the plugin. Throws Error with plugin, file and text where it reports or throws one.
  template <class F>
  void call(Stage stage, const char* name, F&& entry);
  // Runs work of the core that may call back into the plugin (backward); errors get the plugin's name too.
  template <class F>
  void during(Stage stage, F&& work);
  // For the functions of the table: errors become a status, their text is kept.
  template <class F>
  trireme_status guarded(const char* function, std::uint32_t stages, F&& body) noexcept;

  void end_micro_batch();                      // releases custom functions, forgets handles
  void fill_unwritten_buffers();               // those take over the old values
  void note_written(autograd::Handle handle);  // if it is a new buffer
  void prepare_view(autograd::Handle handle);  // a new buffer seen raw: begins with the old values
  [[nodiscard]] bool is_read_only(autograd::Handle handle) const;
  [[nodiscard]] std::shared_ptr<autograd::Custom> keep_custom(const trireme_custom& body);
  [[nodiscard]] std::string who() const;  // "plugin 'x' (path)"

  const Library& library;
  Keys keys;
  std::vector<Field> fields;
  std::vector<trireme_field> c_fields;
  Layout layout;
  std::vector<Wish> inputs, wanted_outputs;
  trireme_core core{};
  trireme_host table{};
  const bool dry;

  // Set by Model before the first micro-batch.
  autograd::Tape* tape = nullptr;
  std::shared_ptr<device::Device> device;

  // Of the running micro-batch.
  Mode mode = Mode::train;
  const device::StepBlock* block = nullptr;
  device::Stream stream;
  std::vector<autograd::Handle> field_handles, parameter_handles, gradient_handles, buffer_handles, new_buffer_handles,
      output_handles;
  std::vector<trireme_span> ranges;  // of the parameters
  std::vector<char> new_buffer_written;
  NamedList<Weighted> metrics{"metric"};
  NamedList<Output> outputs{"output"}, predictions{"output of predict"};
  Loss loss_given{};
  bool has_loss = false;
  std::vector<Range> announced;  // raw plugins' gradients, in order

 private:
  struct CustomSlot {
    trireme_custom body{};
    autograd::Custom functions;
  };
  void keep_error(ExitCode code, std::string_view text);
  [[noreturn]] void throw_error(const char* name, trireme_status status);
  friend trireme_status host_fail(trireme_core*, trireme_string) noexcept;
  friend trireme_string host_last_error(trireme_core*) noexcept;
  friend void settle(Host&, const char*, trireme_status);

  Stage stage_ = idle;
  std::string error_;  // text of the last error
  ExitCode error_code_ = ExitCode::internal;
  bool usage_error_ = false;                          // the job is at fault: fatal even if the plugin goes on
  std::vector<std::shared_ptr<CustomSlot>> customs_;  // kept from step to step
  std::size_t customs_used_ = 0;
};

// The functions of the table, by file: host_create.cpp, host_calls.cpp, host_results.cpp.
void set_create_functions(trireme_host& table);
void set_call_functions(trireme_host& table);
void set_result_functions(trireme_host& table);

template <class F>
trireme_status Host::guarded(const char* function, std::uint32_t stages, F&& body) noexcept {
  try {
    if ((stage_ & stages) == 0) {
      fail(ExitCode::internal, "{}: not possible {}; abi.h says where it is", function,
           stage_ == create ? "in create" : "in this call of the plugin");
    }
    body(*this);
    return TRIREME_OK;
  } catch (const Error& e) {
    keep_error(e.code(), e.what());
  } catch (const std::exception& e) {
    keep_error(ExitCode::internal, fmt::format("{}: {}", function, e.what()));
  } catch (...) {
    keep_error(ExitCode::internal, fmt::format("{}: an exception that is no std::exception", function));
  }
  return TRIREME_FAILED;
}

template <class F>
void Host::call(Stage stage, const char* name, F&& entry) {
  stage_ = stage;
  error_.clear();
  trireme_status status = TRIREME_FAILED;
  // Only std::exception is looked at: a type of the plugin's may have the name of one of ours.
  try {
    status = entry();
  } catch (const std::exception& e) {
    stage_ = idle;
    fail(ExitCode::internal, "{}: {} threw an exception across the C boundary: {}", who(), name, e.what());
  } catch (...) {
    stage_ = idle;
    fail(ExitCode::internal, "{}: {} threw something across the C boundary that is no std::exception", who(), name);
  }
  stage_ = idle;
  if (status != TRIREME_OK || usage_error_) throw_error(name, status);
}

template <class F>
void Host::during(Stage stage, F&& work) {
  stage_ = stage;
  error_.clear();
  try {
    work();
  } catch (const Error& e) {
    stage_ = idle;
    if (e.code() != ExitCode::internal) throw;
    fail(ExitCode::internal, "{}: {}", who(), e.what());
  } catch (...) {
    stage_ = idle;
    throw;
  }
  stage_ = idle;
}

}  // namespace trireme::plugin
