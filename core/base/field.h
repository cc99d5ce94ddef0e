// A named field of the data: one sample of it, without the batch dimension.
#pragma once

#include <string>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace trireme {

struct Field {
  std::string name;
  Shape shape;
  Dtype dtype = Dtype::f32;

  friend bool operator==(const Field&, const Field&) = default;
};

}  // namespace trireme
