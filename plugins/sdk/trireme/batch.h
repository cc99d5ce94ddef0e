// batch.h: what goes into a model and what comes out.
//
//   Outputs forward(const Batch& batch) override {
//     Tensor x = batch["image"];                    // a name of [data] fields; (B, …) with B = batch.rows()
//     return {{"logits", head_(x)}};
//   }
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tensor.h"

namespace trireme {
inline namespace sdk {

// The fields of the running micro-batch.
class Batch {
 public:
  explicit Batch(detail::Context& context) : context_(&context) {}
  [[nodiscard]] Tensor operator[](std::string_view field) const {
    return {*context_, context_->call().fields[context_->field(field)]};
  }
  [[nodiscard]] std::int64_t rows() const { return context_->call().rows; }

 private:
  detail::Context* context_;
};

// Named tensors, the same names in the same order at every call. At most 16, of names up to 47 bytes: kept in place,
// so that a step allocates nothing.
class Outputs {
 public:
  struct Item {
    [[nodiscard]] std::string_view name() const { return {text.data(), length}; }
    std::array<char, 47> text{};
    std::uint8_t length = 0;
    Tensor value;
  };

  Outputs() = default;
  Outputs(std::initializer_list<std::pair<std::string_view, Tensor>> list) {
    for (const auto& [name, value] : list) add(name, value);
  }
  void add(std::string_view name, const Tensor& value) {
    if (count_ == items_.size()) throw Error("output '" + std::string(name) + "': a model has at most 16 outputs");
    Item& item = items_[count_];
    if (name.empty() || name.size() > item.text.size()) {
      throw Error("output '" + std::string(name) + "': a name has 1 to 47 bytes");
    }
    std::copy(name.begin(), name.end(), item.text.begin());
    item.length = static_cast<std::uint8_t>(name.size());
    item.value = value;
    ++count_;
  }
  [[nodiscard]] const Tensor& operator[](std::string_view name) const {
    for (const Item& item : items()) {
      if (item.name() == name) return item.value;
    }
    throw Error("forward gave no output named '" + std::string(name) + "'");
  }
  [[nodiscard]] std::span<const Item> items() const { return {items_.data(), count_}; }

 private:
  std::array<Item, 16> items_{};
  std::size_t count_ = 0;
};

}  // namespace sdk
}  // namespace trireme
