// What a line of data.transform is turned into. Private to io/feed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/field.h"
#include "io/feed/pixels.h"

namespace trireme::io {

struct TransformStep {
  enum class Kind { scale, normalise, pad_crop, flip, to_f32 };

  Kind kind = Kind::to_f32;
  std::uint32_t line = 0;  // place in the job's list: part of the random key
  Dtype from = Dtype::f32;
  std::size_t elements = 0, bytes_out = 0;
  float factor = 1;                  // scale
  std::vector<float> mean, inverse;  // normalise: repeated to a period of at least 64 values
  Picture picture;                   // pad_crop, flip
  std::uint32_t pad = 0;

  [[nodiscard]] bool random() const { return kind == Kind::pad_crop || kind == Kind::flip; }
};

struct ParsedTransform {
  std::size_t field = 0;
  TransformStep step;
  Field out;  // the field after this step
};

// One line, given the fields as they are before it. Throws Error(usage).
[[nodiscard]] ParsedTransform parse_transform(const std::string& line, std::uint32_t number,
                                              std::span<const Field> fields);

}  // namespace trireme::io
