// A device: where memory, streams and kernels come from. One per rank. CPU here; CUDA in its module.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/device/stream.h"

namespace trireme::device {

enum class Kind { cpu = 0, cuda = 1 };  // values agree with trireme_device of abi.h

struct Kernels;

// Thread-safe but for the streams it makes. Throws Error(io) with sizes where memory runs out.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual Kind kind() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;  // "AMD EPYC … (AVX2)", for logs and summary
  // Memory of the device, 64-byte aligned (CUDA: 256), zeroed. Prefer Buffer.
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  // Host memory that copies at full speed; on the CPU ordinary aligned memory.
  [[nodiscard]] virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* memory) = 0;
  // The compute stream: inline on the CPU.
  [[nodiscard]] virtual Stream compute_stream() = 0;
  // A stream beside it; on the CPU a thread named `name`.
  [[nodiscard]] virtual Stream make_stream(const char* name) = 0;
  // The non-differentiable kernels (update, add, …) of this device.
  [[nodiscard]] virtual const Kernels& kernels() const = 0;
  // Throws what a kernel met that it could not throw itself (a label out of range: Error(data)), of work that the
  // caller has waited for. On the CPU kernels throw.
  virtual void throw_fault() const {}
};

// The CPU device of this process.
[[nodiscard]] std::shared_ptr<Device> make_cpu();
// Opens libtrireme_cuda.so beside libtrireme.so (or the file that TRIREME_CUDA_MODULE names) and asks it for the device
// of this local rank; one a process. Throws Error(usage) that says whether module, driver or device is missing, with
// the loader's or driver's own words.
[[nodiscard]] std::shared_ptr<Device> make_cuda(int local_rank);

// Owned device memory, element-typed views by span<T>(). Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<Device> device, std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  template <class T>
  [[nodiscard]] std::span<T> span() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::shared_ptr<Device> device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Owned pinned host memory. Move-only.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(std::shared_ptr<Device> device, std::size_t bytes);
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer();

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  template <class T>
  [[nodiscard]] std::span<T> span() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::shared_ptr<Device> device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace trireme::device
