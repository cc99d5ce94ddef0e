// The CPU as a device: aligned host memory, a compute stream that runs inline, threads for the other streams.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/range.h"
#include "core/device/cpu/kernels.h"
#include "core/device/device.h"
#include "core/device/doorbell.h"
#include "core/device/thread_stream.h"

namespace trireme::device {

namespace {

// Work runs where it is queued, so every event is done once it exists. For one thread; events may be asked
// from any.
class InlineStream final : public StreamImpl {
 public:
  void run(const Task& task) override {
    Task own = task;
    own();
  }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void wait(const Event& event) override { event.synchronize(); }
  std::uint64_t record() override {
    const std::uint64_t id = recorded_.load(std::memory_order_relaxed) + 1;
    times_[id % kept].store(seconds_now(), std::memory_order_relaxed);
    recorded_.store(id, std::memory_order_release);
    return id;
  }
  [[nodiscard]] bool done(std::uint64_t) const override { return true; }
  double synchronize(std::uint64_t) const override { return 0; }
  [[nodiscard]] double time(std::uint64_t id) const override {
    if (recorded_.load(std::memory_order_acquire) >= id + kept) return 0;  // forgotten
    return times_[id % kept].load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kept = 4096;
  std::array<std::atomic<double>, kept> times_{};
  std::atomic<std::uint64_t> recorded_{0};
};

constexpr std::size_t alignment = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

double gib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

// Zeroed, and so already mapped: no page fault is left for the step.
void* allocate_zeroed(std::size_t bytes) {
  const bool large = bytes >= 2 * huge_page;
  const std::size_t align = large ? huge_page : alignment;
  // The kernel promises more than it has, then kills; so ask first what the host has at all.
  void* memory = nullptr;
  if (bytes <= host_memory_bytes() - align) memory = std::aligned_alloc(align, round_up(bytes, align));
  if (memory == nullptr)
    fail(ExitCode::io,
         "cpu: no memory for {} bytes ({:.1f} GiB); this host has {:.1f} GiB; use a smaller model, batch or "
         "data.memory_mib",
         bytes, gib(bytes), gib(host_memory_bytes()));
  if (large) madvise(memory, round_up(bytes, align), MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return memory;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::string vector_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE2";
#else
  return "base line";
#endif
}

class CpuDevice final : public Device {
 public:
  // Blocks of 1 MiB and more go back to the kernel when they are freed, so a rank holds what it uses.
  CpuDevice() { ::mallopt(M_MMAP_THRESHOLD, 1 << 20); }
  [[nodiscard]] Kind kind() const override { return Kind::cpu; }
  [[nodiscard]] std::string name() const override { return processor_name() + " (" + vector_level() + ")"; }
  [[nodiscard]] void* allocate(std::size_t bytes) override { return allocate_zeroed(bytes); }
  void free(void* memory) override { std::free(memory); }
  [[nodiscard]] void* allocate_pinned(std::size_t bytes) override { return allocate_zeroed(bytes); }
  void free_pinned(void* memory) override { std::free(memory); }
  [[nodiscard]] Stream compute_stream() override { return compute_; }
  [[nodiscard]] Stream make_stream(const char* name) override { return Stream(std::make_shared<ThreadStream>(name)); }
  [[nodiscard]] const Kernels& kernels() const override { return cpu::kernels(); }

 private:
  Stream compute_{std::make_shared<InlineStream>()};
};

}  // namespace

std::shared_ptr<Device> make_cpu() {
  static const auto device = std::make_shared<CpuDevice>();
  return device;
}

}  // namespace trireme::device
