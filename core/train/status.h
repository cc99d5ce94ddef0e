// Agreements between ranks: host words, combined over MPI behind the step. Words of step s are acted on after step
// s + 1, by all ranks alike.
#pragma once

#include <array>
#include <cstdint>

#include "core/comm/group.h"

namespace trireme::train {

struct HostWords {
  std::uint64_t stop = 0;       // maximum: some rank was asked to stop
  std::uint64_t written = 0;    // minimum: last step whose slice every rank has durable
  std::uint64_t committed = 0;  // maximum: last committed step (rank 0 knows)
  std::uint64_t moving = 0;     // maximum: some rank's writer got on since its last words
};

class Status {
 public:
  explicit Status(comm::Group group) : group_(std::move(group)) {}
  // Queues the agreement; at most two may be under way.
  void post(const HostWords& mine);
  // Those of the oldest post not yet fetched; waits only when late. Seconds waited are added to waited().
  [[nodiscard]] HostWords fetch();
  [[nodiscard]] std::uint64_t pending() const { return posted_ - fetched_; }
  // post and fetch: at the ends of a run and between rounds of an evaluation, where nothing is under way.
  [[nodiscard]] HostWords exchange(const HostWords& mine);
  [[nodiscard]] double waited() const { return waited_; }

 private:
  struct Slot {
    comm::Words words;
    device::Event done;
  };
  comm::Group group_;
  std::array<Slot, 2> slots_{};
  std::uint64_t posted_ = 0, fetched_ = 0;
  double waited_ = 0;
};

}  // namespace trireme::train
