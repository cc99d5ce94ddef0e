// The local part of the reduction tree: micro-batches meet like the digits of a binary counter, so that the sum of a
// rank's share is a subtree of the one tree over all V.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::train {

// Deals arena indices; one more arena for each doubling of the share.
class Carry {
 public:
  explicit Carry(std::uint32_t locals) {
    std::uint32_t arenas = 1;
    while ((locals - 1) >> arenas != 0) ++arenas;
    arenas_ = locals == 1 ? 1 : arenas + 1;
    for (std::uint32_t i = arenas_; i-- > 0;) free_.push_back(i);
    levels_.reserve(arenas_);
    chain_.reserve(arenas_);
  }
  [[nodiscard]] std::uint32_t arenas() const { return arenas_; }

  // An arena for the next micro-batch.
  [[nodiscard]] std::uint32_t take() {
    const std::uint32_t arena = free_.back();
    free_.pop_back();
    return arena;
  }
  // Ends a micro-batch that is not the rank's last: add(into, other) sums arena `other` into `into`, where `into` holds
  // the earlier micro-batches.
  template <class Add>
  void fold(std::uint32_t arena, const Add& add) {
    std::size_t level = 0;
    while (level < levels_.size() && levels_[level] != none) {
      add(levels_[level], arena);
      free_.push_back(arena);
      arena = levels_[level];
      levels_[level++] = none;
    }
    if (level == levels_.size()) levels_.push_back(none);
    levels_[level] = arena;
  }
  // Ends the last one: the arenas to be summed in this order, each into its successor: (((a + b) into b) + c) into c,
  // …; a is `arena`. All are free again afterwards; the sum lies in the last.
  [[nodiscard]] std::span<const std::uint32_t> last(std::uint32_t arena) {
    chain_.clear();
    chain_.push_back(arena);
    for (std::uint32_t& held : levels_)
      if (held != none) chain_.push_back(held), held = none;
    for (auto i = chain_.rbegin(); i != chain_.rend(); ++i) free_.push_back(*i);
    return chain_;
  }

 private:
  static constexpr std::uint32_t none = ~0u;
  std::uint32_t arenas_ = 1;
  std::vector<std::uint32_t> free_, levels_, chain_;
};

}  // namespace trireme::train
