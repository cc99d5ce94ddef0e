// Running one op on host values.
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"

namespace trireme::ops::testing {
namespace {

constexpr std::size_t guard_bytes = 256;

template <class T>
void encode(const Values& from, std::vector<std::byte>& to) {
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    const T value = static_cast<T>(from.values[i]);
    std::memcpy(to.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
void decode(const std::vector<std::byte>& from, Values& to) {
  for (std::size_t i = 0; i < to.values.size(); ++i) {
    T value;
    std::memcpy(&value, from.data() + i * sizeof(T), sizeof(T));
    to.values[i] = static_cast<double>(value);
  }
}

// Calls body with a value of the type that `dtype` names.
template <class Body>
void with_type(Dtype dtype, const Body& body) {
  switch (dtype) {
    case Dtype::f64: return body(double{});
    case Dtype::f32: return body(float{});
    case Dtype::i64: return body(std::int64_t{});
    case Dtype::i32: return body(std::int32_t{});
    case Dtype::u8:
    case Dtype::boolean: return body(std::uint8_t{});
    default: fail(ExitCode::internal, "no test holds values of type {}", name_of(dtype));
  }
}

}  // namespace

Attributes attributes_of(const Op& op, const Case& test) {
  Attributes attributes = op.attributes;
  for (const auto& [name, values] : test.attributes) {
    const auto declared = std::find_if(attributes.all().begin(), attributes.all().end(),
                                       [&](const Attribute& item) { return item.name == name; });
    if (declared != attributes.all().end() && declared->list) {
      std::vector<std::int64_t> integers;
      for (const double value : values) integers.push_back(static_cast<std::int64_t>(value));
      attributes.set(name, integers);
    } else {
      attributes.set(name, values.at(0));
    }
  }
  return attributes;
}

std::vector<Values> draw(const Case& test, std::mt19937_64& random) {
  std::vector<Values> drawn;
  for (const auto& input : test.inputs) {
    Values made{input.shape, input.dtype, std::vector<double>(static_cast<std::size_t>(input.shape.elements()))};
    const double width = input.high - input.low;
    std::iota(made.values.begin(), made.values.end(), 0.0);
    if (input.distinct) std::shuffle(made.values.begin(), made.values.end(), random);
    for (double& value : made.values) {
      const double uniform = input.distinct ? value / static_cast<double>(made.values.size())
                                            : std::uniform_real_distribution<double>(0, 1)(random);
      value = input.low + width * uniform;
      if (input.dtype == Dtype::f32) value = static_cast<float>(value);
      if (!is_floating(input.dtype)) value = std::floor(value);
    }
    drawn.push_back(std::move(made));
  }
  return drawn;
}

std::vector<Values> reference(const Op& op, const Attributes& attributes, Mode mode, const std::vector<Values>& in) {
  std::vector<RefTensor> inputs;
  for (const auto& each : in) inputs.push_back({each.shape, each.values});
  Reference run{inputs, attributes, mode, device::op_key(test_block(), test_ordinal), {}};
  op.reference(run);
  std::vector<Values> out;
  for (auto& each : run.out) out.push_back({each.shape, Dtype::f64, std::move(each.values)});
  return out;
}

device::StepBlock test_block() {
  device::StepBlock block;
  block.step = 17;
  block.seed = 0x1234567890ABCDEFu;
  block.micro_batch = 2;
  return block;
}

std::uint32_t differentiable_inputs(const Op& op, std::size_t inputs) {
  return op.differentiable ? op.wants_gradient & ((1u << inputs) - 1) : 0;
}

Application::Application(const BackendUnderTest& under_test, std::uint32_t op, const Attributes& attributes, Mode mode,
                         const std::vector<Values>& in)
    : op_(Registry::get()[op]),
      kernels_(under_test.backend().kernels(op)),
      attributes_(attributes),
      mode_(mode),
      device_(under_test.make_device()),
      stream_(device_->compute_stream()),
      arena_(device_),
      scratch_(device_) {
  const auto block = test_block();
  auto* on_device = static_cast<device::StepBlock*>(arena_.allocate(sizeof block));
  stream_.copy({reinterpret_cast<std::byte*>(on_device), sizeof block}, std::as_bytes(std::span(&block, 1)));
  block_ = on_device;
  Signature signature;
  for (const auto& each : in) {
    in_.push_back(place(each));
    signature.add(each.shape, each.dtype);
  }
  Inference inference{signature, attributes_, mode, {}, {}};
  op_.infer(inference);
  for (std::size_t i = 0; i < inference.out.count; ++i) {
    out_.push_back(blank(inference.out[i].shape, inference.out[i].dtype));
  }
  for (std::size_t i = 0; i < inference.saved.count; ++i) {
    saved_.push_back(blank(inference.saved[i].shape, inference.saved[i].dtype));
  }
}

Tensor Application::place(const Values& values) {
  std::vector<std::byte> bytes(values.values.size() * size_of(values.dtype));
  with_type(values.dtype, [&]<class T>(T) { encode<T>(values, bytes); });
  const Tensor tensor = arena_.allocate(values.shape, values.dtype);
  stream_.copy({tensor.as<std::byte>(), bytes.size()}, bytes);
  stream_.synchronize();
  return tensor;
}

Tensor Application::blank(const Shape& shape, Dtype dtype) {
  Tensor tensor{nullptr, shape, dtype};
  const std::size_t bytes = tensor.bytes() + guard_bytes;
  tensor.data = arena_.allocate(bytes);
  const std::vector<std::byte> ones(bytes, std::byte{0xFF});
  stream_.copy({tensor.as<std::byte>(), bytes}, ones);
  stream_.synchronize();
  guards_.push_back(
      {tensor.as<std::byte>() + tensor.bytes(), Shape{static_cast<std::int64_t>(guard_bytes)}, Dtype::u8});
  return tensor;
}

Values Application::fetch(const Tensor& tensor) const {
  std::vector<std::byte> bytes(tensor.bytes());
  stream_.copy(bytes, {tensor.as<const std::byte>(), bytes.size()});
  stream_.synchronize();
  device_->throw_fault();
  Values values{tensor.shape, tensor.dtype, std::vector<double>(static_cast<std::size_t>(tensor.elements()))};
  with_type(tensor.dtype, [&]<class T>(T) { decode<T>(bytes, values); });
  return values;
}

void Application::check_guards() const {
  for (const Tensor& guard : guards_) {
    for (const double value : fetch(guard).values) ASSERT_EQ(value, 255) << op_.name << " wrote behind a tensor";
  }
}

void Application::run_forward() {
  const auto mark = scratch_.mark();
  kernels_.forward({in_, out_, saved_, attributes_, mode_, test_ordinal, block_, scratch_, stream_});
  scratch_.rewind(mark);
}

void Application::run_backward() {
  const auto mark = scratch_.mark();
  kernels_.backward({in_, out_, saved_, out_grads_, in_grads_, attributes_, test_ordinal, block_, scratch_, stream_});
  scratch_.rewind(mark);
}

std::vector<Values> Application::forward() {
  run_forward();
  std::vector<Values> values;
  for (const Tensor& tensor : out_) values.push_back(fetch(tensor));
  check_guards();
  return values;
}

std::vector<std::optional<Values>> Application::backward(const std::vector<std::optional<Values>>& out_grads,
                                                         std::uint32_t wanted) {
  out_grads_.clear();
  in_grads_.clear();
  for (const auto& gradient : out_grads) out_grads_.push_back(gradient ? place(*gradient) : Tensor{});
  for (std::size_t i = 0; i < in_.size(); ++i) {
    in_grads_.push_back((wanted >> i & 1) != 0 ? blank(in_[i].shape, Dtype::f32) : Tensor{});
  }
  run_backward();
  std::vector<std::optional<Values>> values;
  for (const Tensor& tensor : in_grads_) {
    values.push_back(tensor ? std::optional(fetch(tensor)) : std::nullopt);
  }
  check_guards();
  return values;
}

}  // namespace trireme::ops::testing
