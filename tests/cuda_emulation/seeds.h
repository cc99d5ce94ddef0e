// A program under many orders: how often it is caught.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/cuda_emulation/emulation.h"

namespace trireme::cuda_emulation {

inline constexpr std::uint64_t seeds = 100;
inline constexpr std::array modes{Mode::eager, Mode::minimal, Mode::random, Mode::sparse};

struct Caught {
  std::array<unsigned, modes.size()> by_mode{};
  unsigned seeds_in_all = 0;  // where any of the modes did
  std::string words;          // of the first finding
  [[nodiscard]] unsigned in(Mode mode) const { return by_mode[static_cast<std::size_t>(mode)]; }
};

// `is_right` is a whole program that waits for its work and says whether its results are right; it is caught where they
// are not, or where the emulation found something. Tried in every mode.
template <class Program>
Caught catch_over_seeds(Program is_right) {
  Caught caught;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    bool any = false;
    for (const Mode mode : modes) {
      begin(seed, mode);
      const bool right = is_right();
      const std::string finding = take_finding();
      if (caught.words.empty()) caught.words = finding;
      if (right && finding.empty()) continue;
      ++caught.by_mode[static_cast<std::size_t>(mode)];
      any = true;
    }
    caught.seeds_in_all += any ? 1 : 0;
  }
  return caught;
}

}  // namespace trireme::cuda_emulation
