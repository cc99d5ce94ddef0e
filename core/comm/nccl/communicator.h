// One NCCL communicator of all ranks: RAII over ncclComm_t, errors as Error. No NCCL header here, so that a build
// without NCCL has the same class.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/device/stream.h"

namespace trireme::comm {

// Compute thread; failure() and abort() any thread, at any time. All ranks make the same calls in the same order. Work
// is queued on the given stream, nothing waits. Throws Error(lost_peer) once the communicator failed.
class Communicator {
 public:
  // Opens NCCL. Throws Error(usage) in the loader's words where it is missing.
  [[nodiscard]] static std::string unique_id();  // rank 0's, for all
  [[nodiscard]] static std::string version();    // "2.27.7 (built with 2.27.7)"

  // Collective, waits for all ranks.
  Communicator(const std::string& id, int size, int rank);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  struct Message {
    std::span<const std::byte> give;  // what is empty does not travel; both sides know both sizes
    std::span<std::byte> take;
  };
  // Exchanges all messages with `peer` as one.
  void exchange(std::span<const Message> messages, int peer, device::Stream& stream);
  // The library's own sum over all ranks, in place.
  void sum(std::span<float> data, device::Stream& stream);
  void sum(std::span<double> data, device::Stream& stream);

  // What NCCL met meanwhile, in its words; empty: nothing.
  [[nodiscard]] std::string failure() noexcept;
  // Ends kernels that wait for a peer; the communicator is gone afterwards. Returns after 2 s at the latest.
  void abort() noexcept;
  // Orderly end, once the stream is idle.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trireme::comm
