// The host's state: errors on their way to and from the plugin, new buffers, custom functions.
#include "core/plugin/host.h"

#include <algorithm>

namespace trireme::plugin {

Shape shape_of(const trireme_shape& shape, const char* function) {
  if (shape.rank < 0 || shape.rank > TRIREME_MAX_RANK) {
    fail(ExitCode::internal, "{}: a shape of {} dimensions; 0 to {} are possible", function, shape.rank,
         TRIREME_MAX_RANK);
  }
  return Shape(std::span<const std::int64_t>(shape.dims, static_cast<std::size_t>(shape.rank)));
}

Dtype dtype_of(trireme_dtype dtype, const char* function) {
  if (dtype < TRIREME_F64 || dtype > TRIREME_BOOL) {
    fail(ExitCode::internal, "{}: {} is no element type", function, dtype);
  }
  return static_cast<Dtype>(dtype);
}

bool Wish::fits(const Shape& actual, Dtype actual_dtype) const {
  if (actual_dtype != dtype || actual.rank() != shape.rank) return false;
  for (int i = 0; i < actual.rank(); ++i) {
    if (shape.dims[i] >= 0 && shape.dims[i] != actual[i]) return false;
  }
  return true;
}

std::string Wish::text() const {
  std::string dims;
  for (int i = 0; i < shape.rank; ++i) {
    dims += (i == 0 ? "" : ", ") + (shape.dims[i] < 0 ? std::string("any") : std::to_string(shape.dims[i]));
  }
  return fmt::format("{} ({}{})", name_of(dtype), dims, shape.rank == 1 ? "," : "");
}

Host::Host(const Library& of, const std::map<std::string, JobValue>& config, std::span<const Field> data, bool only_dry)
    : library(of), keys(config), fields(data.begin(), data.end()), dry(only_dry) {
  core.host = this;
  for (const Field& field : fields) {
    trireme_field c{};
    c.name = {field.name.data(), field.name.size()};
    c.shape.rank = field.shape.rank();
    std::copy(field.shape.dims().begin(), field.shape.dims().end(), c.shape.dims);
    c.dtype = static_cast<trireme_dtype>(field.dtype);
    c_fields.push_back(c);
  }
  table.size = sizeof(table);
  table.abi_major = TRIREME_ABI_MAJOR;
  table.abi_minor = TRIREME_ABI_MINOR;
  table.dry = dry ? 1 : 0;
  table.core = &core;
  set_create_functions(table);
  set_call_functions(table);
  set_result_functions(table);
}

void* Host::create_model() {
  void* model = nullptr;
  call(create, "create", [&] {
    return library.table().create(&table, reinterpret_cast<trireme_config*>(&core), c_fields.data(), c_fields.size(),
                                  &model);
  });
  return model;
}

std::string Host::who() const { return fmt::format("plugin '{}' ({})", library.name(), library.path().string()); }

void Host::keep_error(ExitCode code, std::string_view text) {
  error_ = text;
  error_code_ = code;
  usage_error_ = usage_error_ || code == ExitCode::usage;
}

void Host::throw_error(const char* name, trireme_status status) {
  usage_error_ = false;
  if (error_.empty()) {
    fail(ExitCode::internal, "{}: {} failed with status {} and no text (host->fail sets it)", who(), name, status);
  }
  // The job's fault is told as such: the text has the place in the job file.
  if (error_code_ == ExitCode::usage) throw Error(error_code_, error_);
  throw Error(error_code_, who() + ": " + error_);
}

void Host::note_written(autograd::Handle handle) {
  const auto found = std::find(new_buffer_handles.begin(), new_buffer_handles.end(), handle);
  if (found != new_buffer_handles.end()) {
    new_buffer_written[static_cast<std::size_t>(found - new_buffer_handles.begin())] = 1;
  }
}

namespace {

void copy_buffer(Host& host, std::size_t i) {
  const tensor::Tensor to = host.tape->value(host.new_buffer_handles[i]);
  const tensor::Tensor from = host.tape->value(host.buffer_handles[i]);
  host.stream.copy(std::as_writable_bytes(to.span<float>()), std::as_bytes(from.span<float>()));
}

}  // namespace

void Host::prepare_view(autograd::Handle handle) {
  const auto found = std::find(new_buffer_handles.begin(), new_buffer_handles.end(), handle);
  if (found == new_buffer_handles.end()) return;
  const auto i = static_cast<std::size_t>(found - new_buffer_handles.begin());
  if (new_buffer_written[i] == 0) copy_buffer(*this, i);
  new_buffer_written[i] = 1;
}

void Host::fill_unwritten_buffers() {
  for (std::size_t i = 0; i < new_buffer_handles.size(); ++i) {
    if (new_buffer_written[i] == 0) copy_buffer(*this, i);
  }
}

bool Host::is_read_only(autograd::Handle handle) const {
  const auto has = [&](const std::vector<autograd::Handle>& handles) {
    return std::find(handles.begin(), handles.end(), handle) != handles.end();
  };
  return has(field_handles) || has(parameter_handles) || has(buffer_handles);
}

std::shared_ptr<autograd::Custom> Host::keep_custom(const trireme_custom& body) {
  if (customs_used_ == customs_.size()) {
    auto slot = std::make_shared<CustomSlot>();
    // Both hold one pointer, so that they live inside std::function.
    struct Owner {
      Host* host;
      CustomSlot* slot;
    } owner{this, slot.get()};
    slot->functions.forward = [owner](std::span<const autograd::Handle> in, std::span<const autograd::Handle> out) {
      const trireme_custom& c = owner.slot->body;
      settle(*owner.host, "a custom function's forward",
             c.forward(c.state, in.data(), in.size(), out.data(), out.size()));
    };
    slot->functions.backward = [owner](std::span<const autograd::Handle> in, std::span<const autograd::Handle> out,
                                       std::span<const autograd::Handle> out_gradients,
                                       std::span<const autograd::Handle> in_gradients) {
      const trireme_custom& c = owner.slot->body;
      settle(
          *owner.host, "a custom function's backward",
          c.backward(c.state, in.data(), in.size(), out.data(), out.size(), out_gradients.data(), in_gradients.data()));
    };
    customs_.push_back(std::move(slot));
  }
  const auto& slot = customs_[customs_used_++];
  slot->body = body;
  return {slot, &slot->functions};
}

// Turns a callback's status into an exception with the text that the plugin gave.
void settle(Host& host, const char* name, trireme_status status) {
  if (status == TRIREME_OK) return;
  if (host.error_.empty()) fail(ExitCode::internal, "{} failed with status {} and no text", name, status);
  throw Error(host.error_code_, host.error_);
}

void Host::end_micro_batch() {
  for (std::size_t i = 0; i < customs_used_; ++i) {
    const trireme_custom& body = customs_[i]->body;
    if (body.release != nullptr) body.release(body.state);
  }
  customs_used_ = 0;
  metrics.begin();
  outputs.begin();
  predictions.begin();
  output_handles.clear();
  announced.clear();
  has_loss = false;
}

trireme_status host_fail(trireme_core* core, trireme_string message) noexcept {
  Host& host = *core->host;
  try {
    // The text of an error of the host on its way back keeps that error's exit code.
    const std::string_view text = view(message);
    if (text != host.error_)
      host.keep_error(ExitCode::internal, text.empty() ? "fail was called without a text" : text);
    return TRIREME_OK;
  } catch (...) {  // no memory for the text: the old one stays
    return TRIREME_FAILED;
  }
}

trireme_string host_last_error(trireme_core* core) noexcept {
  return {core->host->error_.data(), core->host->error_.size()};
}

}  // namespace trireme::plugin
