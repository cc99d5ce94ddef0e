// A steady step allocates nothing of ours: every malloc of the compute thread from step 3 to 50 is counted, the SDK
// and the plugin included. What oneDNN allocates inside its own calls (about ten small blocks an execution) is counted
// apart.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>

#include "tests/train/harness.h"

#ifndef TRIREME_SANITIZED  // a sanitizer brings a malloc of its own

extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT: glibc's own names
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT
}

namespace {

struct Count {
  bool on = false;
  std::size_t ours = 0, onednn = 0;
};
thread_local Count count;
std::uintptr_t onednn_begin = 0, onednn_end = 0;

int find_onednn(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "libdnnl") == nullptr) return 0;
  onednn_begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      onednn_end = std::max(onednn_end, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
  return 1;
}

void note() {
  if (!count.on) return;
  count.on = false;  // backtrace may allocate
  void* frames[24];
  const int depth = backtrace(frames, 24);
  bool inside = false;
  for (int i = 0; i < depth; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(frames[i]);
    inside = inside || (at >= onednn_begin && at < onednn_end);
  }
  ++(inside ? count.onednn : count.ours);
  count.on = true;
}

}  // namespace

extern "C" void* malloc(std::size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
extern "C" void* calloc(std::size_t items, std::size_t bytes) {
  note();
  return __libc_calloc(items, bytes);
}
extern "C" void* realloc(void* memory, std::size_t bytes) {
  note();
  return __libc_realloc(memory, bytes);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  note();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

namespace trireme::train {
namespace {

void counts_nothing(const char* plugin) {
  dl_iterate_phdr(find_onednn, nullptr);
  ASSERT_NE(onednn_begin, 0u);
  Harness harness(plugin, 32, 4, 60);
  for (std::uint64_t step = 0; step < 51; ++step) {
    count.on = step >= 3;
    harness.step->run(step, *harness.feed);
    const auto report = harness.reports->fetch(1);
    count.on = false;
    if (report) {
      EXPECT_TRUE(std::isfinite(report->loss));
    }
  }
  EXPECT_EQ(count.ours, 0u) << plugin;
  EXPECT_GT(count.onednn, 0u);  // the counter sees allocations at all
  count = {};
}

TEST(SteadyStep, ConditionalNetAllocatesNothing) { counts_nothing("conditional-net"); }
TEST(SteadyStep, ConvnetAllocatesNothing) { counts_nothing("convnet"); }

}  // namespace
}  // namespace trireme::train

#endif
