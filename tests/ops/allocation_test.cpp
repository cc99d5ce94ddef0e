// A steady step allocates nothing: every case of every op, the third time it runs. Products and convolutions are left
// out, since oneDNN allocates a little in each call.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/ops/harness.h"

namespace {

std::atomic<std::size_t> allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes == 0 ? 1 : bytes) != 0) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// noinline: GCC would see free() meet operator new and warn.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace trireme::ops::testing {
namespace {

TEST(Allocation, CounterCounts) {
  const std::size_t before = allocations;
  const auto made = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(allocations - before, 2u);
}

// What the kernels of one case allocate in their third and fourth run.
struct Counts {
  std::size_t third, fourth;
};

Counts count(const BackendUnderTest& under_test, std::uint32_t id, const Case& test) {
  const Op& op = Registry::get()[id];
  std::mt19937_64 random(5);
  Application run(under_test, id, attributes_of(op, test), test.mode, draw(test, random));
  const bool trains = op.differentiable && test.mode == Mode::train;
  const auto out = run.forward();
  if (trains) {
    std::vector<std::optional<Values>> gradients(out.begin(), out.end());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if ((op.gives_gradient >> i & 1) == 0) gradients[i].reset();
    }
    (void)run.backward(gradients, differentiable_inputs(op, test.inputs.size()));
  }
  const auto again = [&] {
    const std::size_t before = allocations;
    run.run_forward();
    if (trains) run.run_backward();
    return allocations - before;
  };
  (void)again();
  const std::size_t third = again();
  return {third, again()};
}

// Ops that oneDNN runs: its execution of a primitive allocates a handful of small blocks.
bool by_onednn(const Op& op) { return op.name == "linear" || op.name == "conv2d"; }

TEST(Allocation, SteadyKernelsAllocateNothing) {
  const auto& registry = Registry::get();
  for (const auto& under_test : backends()) {
    if (under_test.name != std::string_view("cpu")) continue;  // what a driver allocates is its own
    for (std::uint32_t id = 0; id < registry.all().size(); ++id) {
      if (by_onednn(registry[id])) continue;
      for (const auto& test : registry[id].cases()) {
        EXPECT_EQ(count(under_test, id, test).third, 0u)
            << under_test.name << ", " << registry[id].name << ", " << test.name;
      }
    }
  }
}

// Executing takes oneDNN 3.2 up to 54 allocations for all primitives of a case; making one, 70 at the least.
TEST(Allocation, PrimitivesAreMadeOnce) {
  const auto& registry = Registry::get();
  for (const auto& under_test : backends()) {
    if (under_test.name != std::string_view("cpu")) continue;  // what a driver allocates is its own
    for (std::uint32_t id = 0; id < registry.all().size(); ++id) {
      if (!by_onednn(registry[id])) continue;
      for (const auto& test : registry[id].cases()) {
        const auto [third, fourth] = count(under_test, id, test);
        EXPECT_EQ(third, fourth) << registry[id].name << ", " << test.name;
        EXPECT_LT(third, 70u) << registry[id].name << ", " << test.name;
      }
    }
  }
}

}  // namespace
}  // namespace trireme::ops::testing
