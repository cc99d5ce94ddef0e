// Streams and events of CUDA. Events are made once and used again, as are the slots of host tasks.
#include "core/device/cuda/stream.h"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <exception>
#include <vector>

#include "core/device/cuda/check.h"
#include "core/device/doorbell.h"

namespace trireme::device::cuda {
namespace {

constexpr std::uint64_t kept = 4096;  // events, and host tasks on their way

class CudaStream final : public StreamImpl {
 public:
  explicit CudaStream(int device) : device_(device), events_(kept), tasks_(kept) {
    check(cudaSetDevice(device_), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    // Who waits sleeps: the wait is for a step that is far behind, and its core has other work.
    for (cudaEvent_t& event : events_)
      check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), "cudaEventCreateWithFlags");
    check(cudaEventCreateWithFlags(&origin_, cudaEventBlockingSync), "cudaEventCreateWithFlags");
    check(cudaEventRecord(origin_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(origin_), "cudaEventSynchronize");
    origin_seconds_ = seconds_now();
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override {  // errors here have nowhere to go; the run ends with its own
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaEventDestroy(origin_);
    cudaStreamDestroy(stream_);
  }

  void run(const Task& task) override {
    enter();
    const std::uint64_t place = queued_++;
    if (place - taken_.load(std::memory_order_acquire) >= kept)
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    HostTask& slot = tasks_[place % kept];
    slot.task = task;
    slot.stream = this;
    check(cudaLaunchHostFunc(stream_, &CudaStream::call, &slot), "cudaLaunchHostFunc");
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    enter();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }

  void wait(const Event& event) override {
    if (event.stream() == nullptr || event.stream() == this) return;
    enter();
    if (const auto* const other = dynamic_cast<const CudaStream*>(event.stream())) {
      check(cudaStreamWaitEvent(stream_, other->event(event.id()), 0), "cudaStreamWaitEvent");
    } else {
      run([event] { event.synchronize(); });  // a stream that is a thread
    }
  }

  std::uint64_t record() override {
    enter();
    const std::uint64_t id = recorded_.load(std::memory_order_relaxed) + 1;
    check(cudaEventRecord(event(id), stream_), "cudaEventRecord");
    recorded_.store(id, std::memory_order_release);
    return id;
  }

  // A forgotten event's slot holds a later record of this stream: it is waited for instead, never taken for done. (One
  // step of many micro-batches may record more than are kept.)
  [[nodiscard]] bool done(std::uint64_t id) const override {
    enter();
    const cudaError_t state = cudaEventQuery(event(id));
    if (state != cudaErrorNotReady) check(state, "cudaEventQuery");
    return state == cudaSuccess;
  }

  double synchronize(std::uint64_t id) const override {
    double waited = 0;
    if (!done(id)) {
      const double start = seconds_now();
      check(cudaEventSynchronize(event(id)), "cudaEventSynchronize");
      waited = seconds_now() - start;
    }
    if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
    return waited;
  }

  [[nodiscard]] double time(std::uint64_t id) const override {
    synchronize(id);
    if (recorded_.load(std::memory_order_acquire) >= id + kept) return 0;  // forgotten
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, origin_, event(id)), "cudaEventElapsedTime");
    return origin_seconds_ + static_cast<double>(milliseconds) * 1e-3;
  }

  [[nodiscard]] void* native() const override { return stream_; }

 private:
  struct HostTask {
    Task task;
    CudaStream* stream = nullptr;
  };

  // Runs on a thread of the driver: no CUDA calls, no exception may leave.
  static void CUDART_CB call(void* state) {
    auto& slot = *static_cast<HostTask*>(state);
    CudaStream& self = *slot.stream;
    if (!self.failed_.load(std::memory_order_relaxed)) {
      try {
        slot.task();
      } catch (...) {
        self.error_ = std::current_exception();
        self.failed_.store(true, std::memory_order_release);
      }
    }
    self.taken_.fetch_add(1, std::memory_order_release);
  }

  // Any thread may come here first: without this it would open a context on device 0.
  void enter() const { check(cudaSetDevice(device_), "cudaSetDevice"); }
  [[nodiscard]] cudaEvent_t event(std::uint64_t id) const { return events_[id % kept]; }

  int device_;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;
  cudaEvent_t origin_ = nullptr;
  double origin_seconds_ = 0;
  std::atomic<std::uint64_t> recorded_{0};
  std::vector<HostTask> tasks_;
  std::uint64_t queued_ = 0;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // written before failed_
};

}  // namespace

std::shared_ptr<StreamImpl> make_stream(int device) { return std::make_shared<CudaStream>(device); }

}  // namespace trireme::device::cuda
