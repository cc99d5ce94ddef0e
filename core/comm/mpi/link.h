// Messages between this rank and one peer, waited for without blocking in MPI.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <span>

#include "core/comm/mpi/heart.h"

namespace trireme::comm {

// Communication thread only; borrows communicator and heart.
class Link {
 public:
  // spins: tests before the thread begins to yield its core.
  Link(MPI_Comm comm, Heart& heart, int spins) : comm_(comm), heart_(heart), spins_(spins) {}

  // Sends `give` and receives into `take`; either may be empty, then nothing of it travels. Both peers know both
  // sizes. start() may be called again before wait(): messages of one peer keep their order.
  void start(std::span<const std::byte> give, int to, std::span<std::byte> take, int from);
  void wait(int from);
  void exchange(std::span<const std::byte> give, std::span<std::byte> take, int peer) {
    start(give, peer, take, peer);
    wait(peer);
  }
  // A non-blocking collective of the library.
  void add(MPI_Request request);
  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  void check(int result) { heart_.check(result, -1); }

 private:
  MPI_Comm comm_;
  Heart& heart_;
  int spins_;
  std::array<MPI_Request, 8> requests_{};
  std::size_t open_ = 0;
};

}  // namespace trireme::comm
