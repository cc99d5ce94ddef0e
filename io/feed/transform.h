// What happens to a sample between file and batch: "image: scale 1/255", "image: normalise 0.286 0.353",
// "image: pad-crop 2", "image: flip", "image: to f32". Random ones are keyed by (seed, purpose, position), so ranks,
// threads and restarts change nothing; in evaluation they are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/field.h"

namespace trireme::io {

// The transforms of all fields, in the order of the job. Immutable.
class Transforms {
 public:
  // Throws Error(usage): unknown transform (with the nearest), unknown field, wrong shape or type for it, both shown.
  Transforms(std::span<const std::string> lines, std::span<const Field> stored, std::uint64_t seed, bool random);
  ~Transforms();
  Transforms(Transforms&&) noexcept;
  // Fields as they come out (scale, normalise: f32; others keep the type).
  [[nodiscard]] std::span<const Field> fields() const;
  // One sample of field `index` at `position` (of the whole run), from its stored bytes into its place in the batch.
  // Thread-safe; allocates nothing in a steady state.
  void apply(std::size_t index, std::uint64_t position, std::span<const std::byte> from, std::span<std::byte> to) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::io
