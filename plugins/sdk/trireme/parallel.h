// parallel.h: a loop over the compute threads of the rank. Bodies must give the same bits however it is cut.
//
//   parallel_for(x, n, [&](std::size_t begin, std::size_t end) {
//     for (std::size_t i = begin; i < end; ++i) y[i] = std::tanh(values[i]);
//   });
#pragma once
#include <atomic>
#include <cstddef>
#include <exception>

#include "tensor.h"

namespace trireme {
inline namespace sdk {

// `of`: any tensor of the model. What a body throws is thrown again here (the first of several).
template <class Body>
void parallel_for(const Tensor& of, std::size_t count, const Body& body) {
  struct State {
    const Body* body;
    std::atomic<bool> failed{false};
    std::exception_ptr error{};
  } state{&body};
  detail::Context& c = of.context();
  c.check(c.host().parallel_for(
      c.core(), count,
      [](void* at, std::size_t begin, std::size_t end) {
        State& s = *static_cast<State*>(at);
        try {
          (*s.body)(begin, end);
        } catch (...) {
          if (!s.failed.exchange(true)) s.error = std::current_exception();
        }
      },
      &state));
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace sdk
}  // namespace trireme
