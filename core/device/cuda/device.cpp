// The CUDA device of this rank, and the symbol by which the module is entered.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>

#include "core/base/error.h"
#include "core/device/cuda/check.h"
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/stream.h"
#include "core/device/device.h"
#include "core/device/module.h"

namespace trireme::device::cuda {
namespace {

constexpr int least_major = 8;  // compute capability: Ampere

const Kernels& table() {
  static constexpr Kernels kernels{update, add, add_f64, tile_squares, scale, fill};
  return kernels;
}

double gib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

class CudaDevice final : public Device {
 public:
  CudaDevice(int device, const cudaDeviceProp& properties)
      : device_(device), name_(fmt::format("{} (sm_{}{})", properties.name, properties.major, properties.minor)) {
    check(cudaSetDevice(device_), "cudaSetDevice");
    compute_ = Stream(cuda::make_stream(device_));
    factors_ = static_cast<UpdateFactors*>(allocate(sizeof(UpdateFactors)));
    set_update_scratch(factors_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override { free(factors_); }

  [[nodiscard]] Kind kind() const override { return Kind::cuda; }
  [[nodiscard]] std::string name() const override { return name_; }

  [[nodiscard]] void* allocate(std::size_t bytes) override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
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
  void free(void* memory) override {
    if (memory != nullptr) static_cast<void>(cudaFree(memory));
  }

  [[nodiscard]] void* allocate_pinned(std::size_t bytes) override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    void* memory = nullptr;
    if (const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable); error != cudaSuccess) {
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
    if (memory != nullptr) static_cast<void>(cudaFreeHost(memory));
  }

  [[nodiscard]] Stream compute_stream() override { return compute_; }
  [[nodiscard]] Stream make_stream(const char*) override { return Stream(cuda::make_stream(device_)); }
  [[nodiscard]] const Kernels& kernels() const override { return table(); }

 private:
  int device_;
  std::string name_;
  Stream compute_;
  UpdateFactors* factors_ = nullptr;
};

// Ranks of a host share its devices in turn.
std::shared_ptr<Device> make(int local_rank) {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
    fail(ExitCode::usage, "cuda: no device can be used: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
  }
  if (devices == 0) fail(ExitCode::usage, "cuda: the driver shows no device; CUDA_VISIBLE_DEVICES may hide them");
  const int device = local_rank % devices;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  if (properties.major < least_major) {
    fail(ExitCode::usage, "cuda: device {} is {} (sm_{}{}), older than sm_{}0, for which this build has code", device,
         properties.name, properties.major, properties.minor, least_major);
  }
  return std::make_shared<CudaDevice>(device, properties);
}

}  // namespace
}  // namespace trireme::device::cuda

extern "C" __attribute__((visibility("default"))) std::shared_ptr<trireme::device::Device> trireme_cuda_make_device(
    int local_rank) {
  return trireme::device::cuda::make(local_rank);
}
