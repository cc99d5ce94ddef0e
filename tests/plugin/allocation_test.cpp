// A steady micro-batch through the C boundary and the SDK allocates nothing: every malloc of the thread is counted.
// Ops without oneDNN here, whose own small allocations are counted apart.
#include "tests/autograd/count_malloc.h"
#include "tests/plugin/fixture.h"

#ifndef TRIREME_SANITIZED  // a sanitizer brings a malloc of its own
namespace trireme::plugin {
namespace {

TEST(PluginAllocations, ASteadyMicroBatchHasNone) {
  const std::pair<const char*, std::vector<Field>> cases[] = {
      {"behaviour", {{"x", Shape{3}, Dtype::f32}}},  // SDK model with a custom function, buffers, a metric
      {"short_table", {{"x", Shape{3}, Dtype::f32}}},
      {"regression", {{"x", Shape{}, Dtype::f32}, {"y", Shape{}, Dtype::f32}}},  // raw
  };
  for (const auto& [name, fields] : cases) {
    SCOPED_TRACE(name);
    Micro micro(fixture_file(name), {}, fields, 16);
    micro.model->shape_pass(16);
    std::size_t announced = 0;
    const autograd::Tape::Ready ready = [&announced](Range) { ++announced; };
    for (int step = 0; step < 12; ++step) {
      const std::size_t before = allocations;
      const Loss loss = micro.forward();
      micro.model->backward(loss, ready);
      micro.model->reset();
      (void)micro.forward(Mode::evaluate);
      micro.model->reset();
      if (step >= 3) {
        EXPECT_EQ(allocations - before, 0u) << "step " << step;
      }
    }
    EXPECT_GE(announced, 12u);
  }
  EXPECT_GT(allocations, 0u);  // the counter counts
}

}  // namespace
}  // namespace trireme::plugin
#endif
