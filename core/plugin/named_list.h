// Metrics and outputs of a micro-batch: named items that come in the same order every time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace trireme::plugin {

// The first complete round fixes the names; later ones are checked against it. Allocates in the first round alone.
template <class Item>
class NamedList {
 public:
  explicit NamedList(const char* what) : what_(what) {}

  // The next item, its name set. Throws Error(internal) where another name is due.
  Item& next(std::string_view name) {
    if (given_ < items_.size()) {
      if (items_[given_].name != name) {
        fail(ExitCode::internal,
             "{} '{}' is given where '{}' was given the first time; the names and their order must "
             "be the same in every micro-batch",
             what_, name, items_[given_].name);
      }
      return items_[given_++];
    }
    if (fixed_) {
      fail(ExitCode::internal,
           "{} '{}' was not given the first time; the names and their order must be the same in "
           "every micro-batch",
           what_, name);
    }
    if (name.empty()) fail(ExitCode::internal, "a {} has no name", what_);
    for (const Item& item : items_) {
      if (item.name == name) fail(ExitCode::internal, "{} '{}' is given twice", what_, name);
    }
    Item item;
    item.name = name;
    items_.push_back(std::move(item));
    return items_[given_++];
  }
  // Ends a round: all are there.
  void complete() {
    if (given_ < items_.size()) {
      fail(ExitCode::internal, "{} '{}' is missing; it was given the first time", what_, items_[given_].name);
    }
    fixed_ = true;
  }
  // Begins a round.
  void begin() {
    given_ = 0;
    if (!fixed_) items_.clear();
  }
  [[nodiscard]] std::span<const Item> items() const { return {items_.data(), given_}; }
  [[nodiscard]] std::span<const Item> known() const { return items_; }

 private:
  const char* what_;
  std::vector<Item> items_;
  std::size_t given_ = 0;
  bool fixed_ = false;
};

}  // namespace trireme::plugin
