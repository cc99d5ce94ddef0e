// The CPU backend: oneDNN for products and convolutions, own vectorised loops for the rest.
#pragma once

#include "core/ops/op.h"

namespace trireme::backend {

[[nodiscard]] const ops::Backend& cpu_backend();
// "oneDNN 3.2.0, AVX2" for logs and summary.
[[nodiscard]] std::string cpu_description();

}  // namespace trireme::backend
