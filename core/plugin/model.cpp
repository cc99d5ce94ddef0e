// A loaded model: its arenas, and one micro-batch after the other through its entry points.
#include "core/plugin/model.h"

#include <algorithm>
#include <utility>

#include "core/plugin/host.h"

namespace trireme::plugin {

struct Model::State {
  State(std::shared_ptr<const Library> from, const ops::Backend& backend, std::shared_ptr<device::Device> on,
        const std::map<std::string, JobValue>& config, std::span<const Field> fields)
      : library(std::move(from)), device(std::move(on)), tape(backend, device), host(*library, config, fields, false) {
    host.tape = &tape;
    host.device = device;
  }
  ~State() {
    if (model != nullptr) library->table().destroy(model);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] bool raw() const { return library->table().step != nullptr; }
  void begin(Mode mode, std::span<const tensor::Tensor> fields, const device::StepBlock* block, device::Stream& stream,
             const Destination& to);
  void check_fields(std::span<const tensor::Tensor> fields) const;
  void check_destination(const Destination& to) const;
  void check_outputs(std::int64_t rows) const;
  void check_n();
  [[nodiscard]] trireme_call make_call() const;
  void enter(Stage stage, const char* name, trireme_status (*entry)(void*, const trireme_call*)) {
    const trireme_call c = make_call();
    host.call(stage, name, [&] { return entry(model, &c); });
  }

  std::shared_ptr<const Library> library;
  std::shared_ptr<device::Device> device;
  autograd::Tape tape;
  Host host;
  void* model = nullptr;
  device::Buffer parameters, buffers;
  std::int64_t rows = 0;
  std::int64_t first_rows = 0;  // of the first training micro-batch, and its n; 0: none yet
  double first_n = 0;
};

void Model::State::check_fields(std::span<const tensor::Tensor> fields) const {
  if (fields.size() != host.fields.size()) {
    fail(ExitCode::internal, "{} fields are given, the model was made for {}", fields.size(), host.fields.size());
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& wanted = host.fields[i];
    const tensor::Tensor& given = fields[i];
    if (given.dtype == wanted.dtype && given.shape.rank() > 0 && given.shape[0] == fields[0].shape[0] &&
        given.shape.without_first() == wanted.shape) {
      continue;
    }
    fail(ExitCode::internal, "field '{}' is {} {}, the model was made for (rows, …) of {} {}", wanted.name,
         name_of(given.dtype), given.shape.text(), name_of(wanted.dtype), wanted.shape.text());
  }
}

void Model::State::check_destination(const Destination& to) const {
  if (to.gradients.size() == host.layout.parameter_elements && to.new_buffers.size() == host.layout.buffer_elements) {
    return;
  }
  fail(ExitCode::internal, "gradients of {} and new buffers of {} elements are given, {} and {} are wanted",
       to.gradients.size(), to.new_buffers.size(), host.layout.parameter_elements, host.layout.buffer_elements);
}

// Each rank updates with its own micro-batch's n: one that followed the data would let the ranks drift apart.
void Model::State::check_n() {
  const double n = host.loss_given.n;
  if (first_rows == 0) first_rows = rows, first_n = n;
  if (rows != first_rows || n == first_n) return;
  fail(ExitCode::internal,
       "loss: n is {}, was {} in the first micro-batch; it follows from shapes alone, ignored rows go into weight", n,
       first_n);
}

void Model::State::begin(Mode mode, std::span<const tensor::Tensor> fields, const device::StepBlock* block,
                         device::Stream& stream, const Destination& to) {
  check_fields(fields);
  if (mode == Mode::train) check_destination(to);
  host.end_micro_batch();
  tape.begin(mode, block, stream);
  rows = fields.empty() ? 0 : fields[0].shape[0];
  host.mode = mode;
  host.block = block;
  host.stream = stream;
  const auto tensor_of = [](std::span<float> arena, const auto& item) {
    return tensor::Tensor{arena.data() + item.range.begin, item.shape, Dtype::f32};
  };
  for (auto* handles : {&host.field_handles, &host.parameter_handles, &host.gradient_handles, &host.buffer_handles,
                        &host.new_buffer_handles}) {
    handles->clear();
  }
  for (const auto& field : fields) host.field_handles.push_back(tape.leaf(field));
  for (const auto& p : host.layout.parameters) {
    const tensor::Tensor value = tensor_of(parameters.span<float>(), p);
    const bool trains = mode == Mode::train;
    const tensor::Tensor gradient = trains ? tensor_of(to.gradients, p) : tensor::Tensor{nullptr, p.shape, Dtype::f32};
    if (trains && raw()) host.gradient_handles.push_back(tape.leaf(gradient));
    host.parameter_handles.push_back(raw() ? tape.leaf(value) : tape.parameter(value, gradient, p.range));
  }
  for (const auto& b : host.layout.buffers) {
    host.buffer_handles.push_back(tape.leaf(tensor_of(buffers.span<float>(), b)));
    if (mode == Mode::train) host.new_buffer_handles.push_back(tape.leaf(tensor_of(to.new_buffers, b)));
  }
  std::fill(host.new_buffer_written.begin(), host.new_buffer_written.end(), char{0});
}

trireme_call Model::State::make_call() const {
  const bool trains = host.mode == Mode::train;
  trireme_call c{};
  c.size = sizeof(c);
  c.mode = static_cast<trireme_mode>(host.mode);
  c.rows = rows;
  c.stream = device->kind() == device::Kind::cuda ? host.stream.native() : nullptr;
  c.step_block = reinterpret_cast<const trireme_step_block*>(host.block);  // abi_check.cpp: one layout
  c.fields = host.field_handles.data();
  c.field_count = host.field_handles.size();
  c.parameters = host.parameter_handles.data();
  c.parameter_count = host.parameter_handles.size();
  c.gradients = trains && raw() ? host.gradient_handles.data() : nullptr;
  c.ranges = host.ranges.data();
  c.buffers = host.buffer_handles.data();
  c.buffer_count = host.buffer_handles.size();
  c.new_buffers = trains && !host.new_buffer_handles.empty() ? host.new_buffer_handles.data() : nullptr;
  c.outputs = host.output_handles.data();
  c.output_count = host.output_handles.size();
  return c;
}

Model::Model(std::shared_ptr<const Library> library, const ops::Backend& backend,
             std::shared_ptr<device::Device> device, const std::map<std::string, JobValue>& config,
             std::span<const Field> fields, std::uint64_t seed)
    : state_(std::make_unique<State>(std::move(library), backend, std::move(device), config, fields)) {
  State& s = *state_;
  s.model = s.host.create_model();
  s.host.keys.refuse_unknown();
  Layout& layout = s.host.layout;
  s.host.during(create, [&] {
    if (layout.parameters.empty()) fail(ExitCode::internal, "declares no parameter, so there is nothing to train");
    layout.place();
  });
  for (const auto& p : layout.parameters) s.host.ranges.push_back({p.range.begin, p.range.end});
  s.host.new_buffer_written.resize(layout.buffers.size());
  s.parameters = device::Buffer(s.device, layout.parameter_elements * sizeof(float));
  if (layout.buffer_elements > 0) s.buffers = device::Buffer(s.device, layout.buffer_elements * sizeof(float));

  std::vector<float> parameters(layout.parameter_elements), buffers(layout.buffer_elements);
  layout.initialise(seed, parameters, buffers);
  device::Stream stream = s.device->compute_stream();
  stream.copy(std::as_writable_bytes(s.parameters.span<float>()), std::as_bytes(std::span<const float>(parameters)));
  if (!buffers.empty()) {
    stream.copy(std::as_writable_bytes(s.buffers.span<float>()), std::as_bytes(std::span<const float>(buffers)));
  }
  stream.synchronize();
}

Model::~Model() = default;

Loss Model::run(Mode mode, std::span<const tensor::Tensor> fields, const device::StepBlock* block,
                device::Stream& stream, const Destination& to) {
  State& s = *state_;
  if (mode == Mode::predict) fail(ExitCode::internal, "Model::run: prediction goes by predict()");
  s.begin(mode, fields, block, stream, to);
  const trireme_plugin& table = s.library->table();
  if (s.raw()) {
    s.enter(step, "step", table.step);
  } else {
    s.enter(forward, "forward", table.forward);
    s.enter(loss, "loss", table.loss);
  }
  s.host.during(loss, [&] {
    if (!s.host.has_loss) fail(ExitCode::internal, "gave no loss (host->loss was not called)");
    s.host.outputs.complete();
    s.host.metrics.complete();
    // Computes what is still held back.
    (void)s.tape.value(s.host.loss_given.sum);
    (void)s.tape.value(s.host.loss_given.weight);
    for (const auto& metric : s.host.metrics.items()) (void)s.tape.value(metric.sum), (void)s.tape.value(metric.weight);
    if (mode == Mode::train && !s.raw() && !s.tape.has_gradient_path(s.host.loss_given.sum)) {
      fail(ExitCode::internal,
           "the loss depends on no parameter, so there is no gradient; ops without gradient (convert, accuracy) or "
           "raw views break the path");
    }
    if (mode == Mode::train) s.check_n();
    if (mode == Mode::train) s.host.fill_unwritten_buffers();
  });
  return s.host.loss_given;
}

void Model::backward(const Loss& loss, const autograd::Tape::Ready& ready) {
  State& s = *state_;
  if (s.raw()) {
    for (const Range& range : s.host.announced) ready(range);
    return;
  }
  s.host.during(Stage::backward, [&] { s.tape.backward(loss.sum, loss.n, ready); });
}

void Model::predict(std::span<const tensor::Tensor> fields, const device::StepBlock* block, device::Stream& stream) {
  State& s = *state_;
  s.begin(Mode::predict, fields, block, stream, {});
  const trireme_plugin& table = s.library->table();
  auto* const entry = table.predict != nullptr ? table.predict : s.raw() ? table.step : table.forward;
  s.enter(Stage::predict, "predict", entry);
  s.host.during(Stage::predict, [&] {
    s.host.predictions.complete();
    if (s.host.predictions.items().empty()) fail(ExitCode::internal, "predict gave no output");
    for (const auto& item : s.host.predictions.items()) (void)s.tape.value(item.value);
  });
}

void Model::reset() {
  state_->host.end_micro_batch();
  state_->tape.reset();
}

void Model::State::check_outputs(std::int64_t batch) const {
  for (const Wish& wish : host.wanted_outputs) {
    const auto items = host.outputs.items();
    const auto item = std::find_if(items.begin(), items.end(), [&](const Output& o) { return o.name == wish.name; });
    if (item == items.end()) fail(ExitCode::internal, "output '{}' is declared, but forward gave none", wish.name);
    const auto entry = tape.signature(item->value);
    const bool batched = entry.shape.rank() > 0 && entry.shape[0] == batch;
    if (batched && wish.fits(entry.shape.without_first(), entry.dtype)) continue;
    fail(ExitCode::internal, "output '{}' is declared as {} for one sample, forward gave {} {} for {} samples",
         wish.name, wish.text(), name_of(entry.dtype), entry.shape.text(), batch);
  }
}

void Model::shape_pass(std::int64_t rows) {
  State& s = *state_;
  const Layout& layout = s.host.layout;
  // Zeroed memory of the device, freed at the end.
  std::vector<device::Buffer> memory;
  std::vector<tensor::Tensor> fields;
  for (const Field& field : s.host.fields) {
    tensor::Tensor tensor{nullptr, field.shape.batched(rows), field.dtype};
    tensor.data = memory.emplace_back(s.device, std::max<std::size_t>(tensor.bytes(), 1)).data();
    fields.push_back(tensor);
  }
  const device::Buffer gradients(s.device, layout.parameter_elements * sizeof(float));
  const device::Buffer new_buffers(s.device, std::max<std::size_t>(layout.buffer_elements, 1) * sizeof(float));
  const device::Buffer block(s.device, sizeof(device::StepBlock));
  device::Stream stream = s.device->compute_stream();
  const device::StepBlock start{};
  stream.copy(std::as_writable_bytes(block.span<std::byte>()), std::as_bytes(std::span(&start, 1)));
  const Loss loss = run(Mode::train, fields, block.span<device::StepBlock>().data(), stream,
                        {gradients.span<float>(), new_buffers.span<float>().first(layout.buffer_elements)});
  s.host.during(Stage::loss, [&] { s.check_outputs(rows); });
  backward(loss, [](Range) {});
  stream.synchronize();
  reset();
}

const Library& Model::library() const { return *state_->library; }
const Layout& Model::layout() const { return state_->host.layout; }
std::span<const ModelKey> Model::keys() const { return state_->host.keys.declared(); }
std::span<float> Model::parameters() const { return state_->parameters.span<float>(); }
std::span<float> Model::buffers() const { return state_->buffers.span<float>(); }
std::span<const Weighted> Model::metrics() const { return state_->host.metrics.items(); }
std::span<const Output> Model::outputs() const {
  const Host& host = state_->host;
  return host.mode == Mode::predict ? host.predictions.items() : host.outputs.items();
}
const tensor::Tensor& Model::value(autograd::Handle handle) { return state_->tape.value(handle); }
bool Model::raw() const { return state_->raw(); }
std::size_t Model::activation_bytes() const { return state_->tape.peak_bytes(); }
autograd::Tape& Model::tape() { return state_->tape; }

std::vector<std::string> Model::metric_names() const {
  std::vector<std::string> names;
  for (const auto& metric : state_->host.metrics.known()) names.push_back(metric.name);
  return names;
}

const Parameter& Model::parameter_at(std::uint64_t element) const {
  const auto& parameters = state_->host.layout.parameters;
  const Parameter* last = nullptr;  // padding belongs to the parameter before it
  for (const auto& p : parameters) {
    if (p.range.begin <= element && (last == nullptr || p.range.begin > last->range.begin)) last = &p;
  }
  if (last == nullptr) fail(ExitCode::internal, "element {} lies before the first parameter", element);
  return *last;
}

Description describe(const Library& library, const std::map<std::string, JobValue>& config) {
  Host host(library, config, {}, true);
  void* const model = host.create_model();
  if (model != nullptr) library.table().destroy(model);
  host.keys.refuse_unknown();
  host.during(create, [&] { host.layout.place(); });
  Description d{
      library.name(), library.version(), library.build(), {}, host.layout.parameters, host.layout.buffers, {}};
  d.keys.assign(host.keys.declared().begin(), host.keys.declared().end());
  for (const Wish& input : host.inputs) {
    trireme_shape shape = input.shape;
    for (auto& dim : shape.dims) dim = std::max<std::int64_t>(dim, 0);  // 0: any extent
    d.inputs.push_back({input.name, shape_of(shape, "declare_input"), input.dtype});
  }
  return d;
}

}  // namespace trireme::plugin
