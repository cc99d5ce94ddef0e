// The CUDA device of this rank, and the symbol by which the module is entered.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/device/cuda/capability.h"
#include "core/device/cuda/check.h"
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/shared.h"
#include "core/device/cuda/stream.h"
#include "core/device/device.h"
#include "core/device/module.h"

namespace trireme::device::cuda {
namespace {

// What CMake was told to build for; an emulated build has code for whatever it emulates.
#ifdef TRIREME_CUDA_ARCHITECTURES
constexpr const char* architectures = TRIREME_CUDA_ARCHITECTURES;
#else
constexpr const char* architectures = "native";
#endif

const Kernels& table() {
  static constexpr Kernels kernels{update, add, add_f64, tile_squares, scale, fill, seed, random};
  return kernels;
}

double gib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

class CudaDevice final : public Device {
 public:
  CudaDevice(int device, const cudaDeviceProp& properties)
      : device_(device), name_(fmt::format("{} (sm_{}{})", properties.name, properties.major, properties.minor)) {
    check(cudaSetDevice(device_), "cudaSetDevice");
    compute_ = Stream(cuda::make_stream(device_));
  }

  [[nodiscard]] Kind kind() const override { return Kind::cuda; }
  [[nodiscard]] std::string name() const override { return name_; }

  [[nodiscard]] void* allocate(std::size_t bytes) override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    void* memory = nullptr;
    if (const cudaError_t error = cudaMalloc(&memory, bytes); error != cudaSuccess) {
      if (error != cudaErrorMemoryAllocation) check(error, "cudaMalloc");
      static_cast<void>(cudaGetLastError());
      std::size_t available = 0, total = 0;
      static_cast<void>(cudaMemGetInfo(&available, &total));
      fail(ExitCode::io,
           "cuda: no memory for {} bytes ({:.1f} GiB) on {}: {:.1f} of {:.1f} GiB are free; use a smaller model or "
           "batch",
           bytes, gib(bytes), name_, gib(available), gib(total));
    }
    const auto stream = static_cast<cudaStream_t>(compute_.native());
    check(cudaMemsetAsync(memory, 0, bytes, stream), "cudaMemsetAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return memory;
  }
  // Errors have nowhere to go from here; a sticky one is met again by the next call. Work under way may still use the
  // memory: never in a steady step, so waiting for it costs nothing.
  void free(void* memory) override {
    if (memory == nullptr) return;
    static_cast<void>(cudaSetDevice(device_));
    static_cast<void>(cudaDeviceSynchronize());
    static_cast<void>(cudaFree(memory));
  }

  [[nodiscard]] void* allocate_pinned(std::size_t bytes) override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    void* memory = nullptr;
    if (const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable); error != cudaSuccess) {
      if (stickiness(error) != Sticky::no) check(error, "cudaHostAlloc");
      static_cast<void>(cudaGetLastError());
      fail(ExitCode::io,
           "cuda: no pinned host memory for {} bytes ({:.1f} GiB): {}; raise the limit of locked memory "
           "(ulimit -l) or use a smaller batch",
           bytes, gib(bytes), cudaGetErrorString(error));
    }
    std::fill_n(static_cast<std::byte*>(memory), bytes, std::byte{0});
    return memory;
  }
  void free_pinned(void* memory) override {
    if (memory == nullptr) return;
    static_cast<void>(cudaSetDevice(device_));
    static_cast<void>(cudaDeviceSynchronize());
    static_cast<void>(cudaFreeHost(memory));
  }

  [[nodiscard]] Stream compute_stream() override { return compute_; }
  [[nodiscard]] Stream make_stream(const char*) override { return Stream(cuda::make_stream(device_)); }
  [[nodiscard]] const Kernels& kernels() const override { return table(); }

  void throw_fault() const override { throw_label_fault(*shared().fault); }

 private:
  int device_;
  std::string name_;
  Stream compute_;
};

// Code of this build against the device: said where the driver has to compile it, refused where there is none.
void check_code(int device, const cudaDeviceProp& properties) {
  const int major = properties.major, minor = properties.minor;
  const Code code = code_for(architectures, major, minor);
  if (code == Code::binary) return;
  const std::string all = with_device(architectures, major, minor);
  if (code == Code::none)
    fail(ExitCode::usage,
         "cuda: device {} is {} (sm_{}{}); this build has code for CMAKE_CUDA_ARCHITECTURES={} alone: build with "
         "-DCMAKE_CUDA_ARCHITECTURES=\"{}\", or use device = \"cpu\"",
         device, properties.name, major, minor, architectures, all);
  log::info(
      "cuda: {} (sm_{}{}) is newer than the code of this build ({}): the driver compiles its PTX at the first start; "
      "-DCMAKE_CUDA_ARCHITECTURES=\"{}\" avoids that",
      properties.name, major, minor, architectures, all);
}

// Ranks of a host share its devices in turn.
std::shared_ptr<Device> make(int local_rank) {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    fail(ExitCode::usage, "cuda: no device can be used: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
  }
  if (devices == 0) fail(ExitCode::usage, "cuda: the driver shows no device; CUDA_VISIBLE_DEVICES may hide them");
  const int device = local_rank % devices;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  check_code(device, properties);
  auto made = std::make_shared<CudaDevice>(device, properties);
  make_shared_memory(made);
  return made;
}

// One for the whole process, which is never destroyed: the run time may be gone before static objects are.
std::shared_ptr<Device> the_device(int local_rank) {
  static std::mutex mutex;
  static auto* const made = new std::shared_ptr<Device>;  // NOLINT(cppcoreguidelines-owning-memory)
  const std::lock_guard lock(mutex);
  if (!*made) *made = make(local_rank);
  return *made;
}

}  // namespace
}  // namespace trireme::device::cuda

extern "C" __attribute__((visibility("default"))) std::shared_ptr<trireme::device::Device> trireme_cuda_make_device(
    int local_rank) {
  return trireme::device::cuda::the_device(local_rank);
}
