// ncclComm_t behind Communicator.
#include "core/comm/nccl/communicator.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/comm/nccl/library.h"

namespace trireme::comm {

namespace {

constexpr std::chrono::seconds longest_abort{2};

// The words of NCCL about a failed call. ncclInvalidUsage is, above all, two ranks on one device.
[[noreturn]] void refuse(ncclResult_t result, ncclComm_t comm, const char* what) {
  const char* const detail = nccl().last_error(comm);
  const bool told = detail != nullptr && *detail != '\0';
  if (result == ncclInvalidUsage)
    fail(ExitCode::usage,
         "nccl: {}: {}{}{}; each rank needs a device of its own: start no more ranks a host than it has devices", what,
         nccl().error_string(result), told ? ": " : "", told ? detail : "");
  const ExitCode code = result == ncclInvalidArgument ? ExitCode::internal : ExitCode::lost_peer;
  fail(code, "nccl: {}: {}{}{} (NCCL_DEBUG=WARN tells more)", what, nccl().error_string(result), told ? ": " : "",
       told ? detail : "");
}

std::string version_text(int code) {  // 22707 → 2.27.7
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace

// Shared with the thread that aborts, which may outlive an abort() that ran out of patience.
struct Communicator::State {
  std::mutex mutex;  // guards the rest: the communicator is not destroyed under a call of failure()
  ncclComm_t comm = nullptr;
  bool gone = false, aborted = false;
  std::condition_variable changed;

  void check(ncclResult_t result, const char* what) {
    if (result != ncclSuccess && result != ncclInProgress) refuse(result, comm, what);
  }
};

std::string Communicator::unique_id() {
  ncclUniqueId id;
  if (const ncclResult_t result = nccl().get_unique_id(&id); result != ncclSuccess)
    refuse(result, nullptr, "ncclGetUniqueId");
  return {id.internal, sizeof id.internal};
}

std::string Communicator::version() {
  int found = 0;
  if (nccl().get_version(&found) != ncclSuccess) return "unknown";
  return fmt::format("{} (built with {})", version_text(found), version_text(NCCL_VERSION_CODE));
}

Communicator::Communicator(const std::string& text, int size, int rank) : state_(std::make_shared<State>()) {
  ncclUniqueId id;
  if (text.size() != sizeof id.internal)
    fail(ExitCode::internal, "nccl: an id of {} bytes came, {} are wanted", text.size(), sizeof id.internal);
  std::memcpy(id.internal, text.data(), text.size());
  ncclComm_t made = nullptr;
  if (const ncclResult_t result = nccl().init_rank(&made, size, id, rank); result != ncclSuccess)
    refuse(result, nullptr, "ncclCommInitRank");
  const std::lock_guard lock(state_->mutex);
  state_->comm = made;
}

Communicator::~Communicator() { abort(); }

void Communicator::exchange(std::span<const Message> messages, int peer, device::Stream& stream) {
  const auto on = static_cast<cudaStream_t>(stream.native());
  State& s = *state_;
  s.check(nccl().group_start(), "ncclGroupStart");
  for (const Message& message : messages) {
    if (!message.give.empty())
      s.check(nccl().send(message.give.data(), message.give.size(), ncclUint8, peer, s.comm, on), "ncclSend");
    if (!message.take.empty())
      s.check(nccl().receive(message.take.data(), message.take.size(), ncclUint8, peer, s.comm, on), "ncclRecv");
  }
  s.check(nccl().group_end(), "ncclGroupEnd");
}

void Communicator::sum(std::span<float> data, device::Stream& stream) {
  state_->check(nccl().all_reduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, state_->comm,
                                  static_cast<cudaStream_t>(stream.native())),
                "ncclAllReduce");
}
void Communicator::sum(std::span<double> data, device::Stream& stream) {
  state_->check(nccl().all_reduce(data.data(), data.data(), data.size(), ncclFloat64, ncclSum, state_->comm,
                                  static_cast<cudaStream_t>(stream.native())),
                "ncclAllReduce");
}

std::string Communicator::failure() noexcept {
  try {
    State& s = *state_;
    const std::lock_guard lock(s.mutex);
    if (s.comm == nullptr || s.gone) return {};
    ncclResult_t met = ncclSuccess;
    const ncclResult_t asked = nccl().async_error(s.comm, &met);
    if (asked != ncclSuccess) met = asked;
    if (met == ncclSuccess || met == ncclInProgress) return {};
    const char* const detail = nccl().last_error(s.comm);
    return fmt::format("nccl: {}{}{}", nccl().error_string(met), detail != nullptr && *detail != '\0' ? ": " : "",
                       detail != nullptr ? detail : "");
  } catch (...) {
    return "nccl: failed, and no memory to say how";
  }
}

// In a thread of its own: NCCL waits for its kernels to notice.
void Communicator::abort() noexcept {
  try {
    const std::shared_ptr<State> s = state_;
    std::unique_lock lock(s->mutex);
    if (s->comm == nullptr || s->gone) return;
    s->gone = true;
    std::thread([s] {
      nccl().abort(s->comm);
      const std::lock_guard done(s->mutex);
      s->aborted = true;
      s->changed.notify_all();
    }).detach();
    s->changed.wait_for(lock, longest_abort, [&] { return s->aborted; });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the process leaves either way
  }
}

void Communicator::finish() {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (s.comm == nullptr || s.gone) return;
  s.gone = true;
  if (const ncclResult_t result = nccl().destroy(s.comm); result != ncclSuccess)
    refuse(result, nullptr, "ncclCommDestroy");
}

}  // namespace trireme::comm
