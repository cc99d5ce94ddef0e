// The CUDA run time's calls.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_emulation/grid.h"
#include "tests/cuda_emulation/launch.h"
#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/schedule.h"

namespace emulation = trireme::cuda_emulation;
using emulation::check_stream;
using emulation::DeviceMemoryOpen;
using emulation::Locked;
using emulation::Operation;
using emulation::status;

namespace {

constexpr int devices = 8;  // of a host

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device_of_thread = 0;

cudaError_t failed(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

double milliseconds_now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void wait_for(cudaStream_t stream, const char* what) {
  ++emulation::mutable_counts().synchronizations;
  emulation::wait_until([stream] { return emulation::idle(stream); }, stream, what);
}

// Of the record that is the latest now.
std::function<bool()> has_reached(cudaEvent_t event) {
  return [reached = event->reached, record = event->recorded] { return reached->record >= record; };
}

// Work is refused where the calling thread is on another device than the stream.
cudaError_t on_its_device(cudaStream_t stream) {
  return stream->device == device_of_thread ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

struct Name {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr std::array names{
    Name{cudaSuccess, "cudaSuccess", "no error"},
    Name{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    Name{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    Name{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    Name{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    Name{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    Name{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    Name{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
};
const Name* name_of(cudaError_t error) {
  const auto* const found = std::ranges::find(names, error, &Name::error);
  return found == names.end() ? nullptr : found;
}

}  // namespace

namespace trireme::cuda_emulation {

cudaError_t launch_kernel(const char* kernel, std::function<void()> body, const Argument* arguments, std::size_t count,
                          unsigned blocks, unsigned threads, cudaStream_t stream) {
  const Locked locked;
  if (blocks == 0 || threads == 0 || threads > most_threads) return failed(cudaErrorInvalidConfiguration);
  if (!check_stream(stream, kernel)) return failed(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = on_its_device(stream); error != cudaSuccess) return failed(error);
  for (std::size_t i = 0; i < count; ++i) {
    const Argument& argument = arguments[i];
    if (argument.is_pointer) {
      const void* pointer = nullptr;
      std::memcpy(&pointer, argument.value, sizeof pointer);
      check_pointer(kernel, i, pointer);
    } else {
      check_value(kernel, i, argument.value, argument.bytes);
    }
  }
  ++mutable_counts().launches;
  enqueue(stream, {kernel, [=, body = std::move(body)] { run_grid(kernel, blocks, threads, body); }});
  return status();
}

}  // namespace trireme::cuda_emulation

extern "C" {

// Errors. The last one is of the calling thread; that of a finding stays.
cudaError_t cudaGetLastError() {
  const Locked locked;
  const cudaError_t error = status() != cudaSuccess ? status() : last_error;
  last_error = cudaSuccess;
  return error;
}
const char* cudaGetErrorName(cudaError_t error) {
  const Name* const name = name_of(error);
  return name != nullptr ? name->name : "an error that the emulation does not give";
}
const char* cudaGetErrorString(cudaError_t error) {
  const Locked locked;
  if (error == cudaErrorLaunchFailure && status() != cudaSuccess) {
    static thread_local std::array<char, 512> text;
    std::snprintf(text.data(), text.size(), "unspecified launch failure: emulation: %s", emulation::finding());
    return text.data();
  }
  const Name* const name = name_of(error);
  return name != nullptr ? name->text : "unrecognized error code";
}

// Devices.
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices) return failed(cudaErrorInvalidDevice);
  const Locked locked;
  device_of_thread = device;
  return status();
}
cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= devices) return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated device");
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->warpSize = static_cast<int>(emulation::warp_lanes);
  properties->maxThreadsPerBlock = static_cast<int>(emulation::most_threads);
  properties->sharedMemPerBlock = emulation::shared_bytes;
  properties->totalGlobalMem = emulation::device_bytes;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Locked locked;
  wait_for(nullptr, "cudaDeviceSynchronize");
  return status();
}

// Memory.
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Locked locked;
  ++emulation::mutable_counts().allocations;
  *memory = bytes == 0 ? nullptr : emulation::allocate_device(bytes);
  return *memory == nullptr && bytes != 0 ? failed(cudaErrorMemoryAllocation) : status();
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const Locked locked;
  wait_for(nullptr, "cudaFree");
  emulation::free_device(memory);
  return status();
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  const Locked locked;
  *available = emulation::free_device_bytes();
  *total = emulation::device_bytes;
  return status();
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const Locked locked;
  ++emulation::mutable_counts().allocations;
  *memory = emulation::allocate_pinned(bytes);
  return *memory == nullptr ? failed(cudaErrorMemoryAllocation) : status();
}
cudaError_t cudaFreeHost(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const Locked locked;
  wait_for(nullptr, "cudaFreeHost");
  emulation::free_pinned(memory);
  return status();
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  const Locked locked;
  if (!check_stream(stream, "cudaMemsetAsync") || !emulation::check_range(memory, bytes, "cudaMemsetAsync"))
    return status();
  emulation::enqueue(stream, {"cudaMemsetAsync", [=] { std::memset(memory, value, bytes); }});
  return status();
}
// Pageable memory is read before the call returns, and written before it returns; between two of the host it is synchronous.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Locked locked;
  if (!check_stream(stream, "cudaMemcpyAsync")) return status();
  if (bytes == 0) return status();
  const bool to_device = emulation::is_device(to), from_device = emulation::is_device(from);
  const cudaMemcpyKind real = to_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                                        : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
  if (kind != cudaMemcpyDefault && kind != real) return failed(cudaErrorInvalidValue);
  const bool to_pageable = !to_device && !emulation::is_pinned(to);
  const bool from_pageable = !from_device && !emulation::is_pinned(from);
  if (!to_pageable && !emulation::check_range(to, bytes, "cudaMemcpyAsync to")) return status();
  if (!from_pageable && !emulation::check_range(from, bytes, "cudaMemcpyAsync from")) return status();
  ++emulation::mutable_counts().copies;
  if (from_pageable) {
    const auto* const begin = static_cast<const char*>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    emulation::enqueue(stream, {"cudaMemcpyAsync", [=] { std::memcpy(to, staged->data(), bytes); }});
  } else {
    emulation::enqueue(stream, {"cudaMemcpyAsync", [=] { std::memmove(to, from, bytes); }});
  }
  if (to_pageable || real == cudaMemcpyHostToHost) wait_for(stream, "cudaMemcpyAsync");
  return status();
}

// Streams.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Locked locked;
  if (flags != cudaStreamNonBlocking) {
    emulation::report("cudaStreamCreateWithFlags: a stream that waits for the default stream");
    return status();
  }
  auto made = std::make_unique<CUstream_st>();
  made->device = device_of_thread;
  emulation::add_stream(made.get());
  *stream = made.release();
  return status();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Locked locked;
  if (!check_stream(stream, "cudaStreamDestroy")) return status();
  wait_for(stream, "cudaStreamDestroy");
  emulation::remove_stream(stream);
  const std::unique_ptr<CUstream_st> owned(stream);
  return status();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Locked locked;
  if (check_stream(stream, "cudaStreamSynchronize")) wait_for(stream, "cudaStreamSynchronize");
  return status();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Locked locked;
  if (!check_stream(stream, "cudaStreamQuery")) return status();
  emulation::go_on(stream);
  return status() == cudaSuccess && !emulation::idle(stream) ? cudaErrorNotReady : status();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const Locked locked;
  if (!check_stream(stream, "cudaLaunchHostFunc")) return status();
  emulation::enqueue(stream, {"a host function", [=] { function(data); }, {}, Operation::Kind::host_function});
  return status();
}

// Events.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  auto made = std::make_unique<CUevent_st>();
  made->device = device_of_thread;
  made->timed = (flags & cudaEventDisableTiming) == 0;
  *event = made.release();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Locked locked;
  const std::unique_ptr<CUevent_st> owned(event);
  return status();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Locked locked;
  if (!check_stream(stream, "cudaEventRecord")) return status();
  if (event->device != stream->device) return failed(cudaErrorInvalidResourceHandle);
  const std::uint64_t record = ++event->recorded;
  event->stream = stream;
  emulation::enqueue(stream, {"cudaEventRecord",
                              [reached = event->reached, record] {
                                reached->record = std::max(reached->record, record);
                                reached->milliseconds = milliseconds_now();
                              },
                              {},
                              Operation::Kind::mark});
  event->place = stream->queued;
  return status();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Locked locked;
  if (!check_stream(stream, "cudaStreamWaitEvent")) return status();
  emulation::enqueue(stream, {"cudaStreamWaitEvent", [] {}, has_reached(event), Operation::Kind::mark});
  return status();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Locked locked;
  if (!event->done()) emulation::go_on(event->stream);
  return status() == cudaSuccess && !event->done() ? cudaErrorNotReady : status();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Locked locked;
  // Behind all that its stream was given: as good as cudaStreamSynchronize.
  if (!event->done() && event->stream->queued == event->place) ++emulation::mutable_counts().synchronizations;
  emulation::wait_until(has_reached(event), event->stream, "cudaEventSynchronize");
  return status();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Locked locked;
  for (const cudaEvent_t event : {start, end}) {
    if (!event->timed || event->recorded == 0) return failed(cudaErrorInvalidResourceHandle);
    if (!event->done()) return failed(cudaErrorNotReady);
  }
  *milliseconds = static_cast<float>(end->reached->milliseconds - start->reached->milliseconds);
  return status();
}

}  // extern "C"

namespace trireme::cuda_emulation {

void begin(std::uint64_t seed, Mode mode) {
  const Locked locked;
  restart(seed, mode);
}

std::string take_finding() {
  const Locked locked;
  std::string found = finding();
  forget_finding();
  last_error = cudaSuccess;
  return found;
}

bool host_can_read(const void* memory) { return !closed_to_host(memory); }

Counts counts() {
  const Locked locked;
  return mutable_counts();
}

}  // namespace trireme::cuda_emulation
