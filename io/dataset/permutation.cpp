// Fisher-Yates over Philox: Durstenfeld, "Algorithm 235", CACM 7 (1964).
#include "io/dataset/permutation.h"

#include <utility>

namespace trireme::io {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t narrow_limit = std::uint64_t{1} << 32;

// Numbers of the stream in falling order: one Philox block serves four.
class FallingBits {
 public:
  explicit FallingBits(const RandomKey& key) : key_(key) {}
  std::uint32_t at(std::uint64_t index) {
    if (index / 4 != block_) {
      block_ = index / 4;
      bits_ = random_block(key_, block_);
    }
    return bits_.x[index % 4];
  }

 private:
  RandomKey key_;
  std::uint64_t block_ = ~std::uint64_t{0};
  Philox4 bits_{};
};

template <class Index>
void permute_by(std::span<Index> items, const RandomKey& key) {
  FallingBits bits(key);
  for (std::uint64_t i = items.size(); i-- > 1;) {
    const std::uint64_t bound = i + 1;
    std::uint64_t other = 0;
    if (items.size() < narrow_limit) {
      other = to_below(bits.at(i), static_cast<std::uint32_t>(bound));
    } else {
      const std::uint64_t wide = (std::uint64_t{bits.at(2 * i + 1)} << 32) | bits.at(2 * i);
      other = static_cast<std::uint64_t>((Wide{wide} * bound) >> 64);
    }
    std::swap(items[i], items[other]);
  }
}

}  // namespace

void permute(std::span<std::uint32_t> items, const RandomKey& key) { permute_by(items, key); }
void permute(std::span<std::uint64_t> items, const RandomKey& key) { permute_by(items, key); }

}  // namespace trireme::io
