// Where the ranks of an emulated NCCL communicator meet: shared memory with a channel for each ordered pair of ranks.
// Ranks are processes of one host. Nothing tells that a peer has died, as with NCCL between GPUs of a host: who waits
// for it waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace trireme::cuda_emulation {

// Bytes from one rank to another, in order. One writer, one reader; never blocks.
class Channel {
 public:
  // How many bytes went in, or came out.
  std::size_t put(std::span<const std::byte> bytes);
  std::size_t take(std::span<std::byte> bytes);

 private:
  static constexpr std::size_t capacity = 256 << 10;
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  alignas(64) std::byte bytes_[capacity];
};

inline constexpr int most_ranks = 8;

class Room {
 public:
  // A name that no other room has; short enough for an ncclUniqueId.
  [[nodiscard]] static std::string new_name();
  // Waits until all `ranks` are in. Null with `why` where they disagree on their number, two have one rank or one
  // device, or some do not come within a minute.
  [[nodiscard]] static std::unique_ptr<Room> enter(const std::string& name, int ranks, int rank, int device,
                                                   std::uint64_t seed, std::string& why);
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::uint64_t seed() const;  // rank 0's, the same for all
  [[nodiscard]] Channel& to(int peer) const;
  [[nodiscard]] Channel& from(int peer) const;

 private:
  struct Layout;
  Room(Layout* layout, int ranks, int rank) : layout_(layout), ranks_(ranks), rank_(rank) {}
  bool take_place(int device, std::uint64_t seed, std::string& why);
  bool wait_for_all(std::string& why);

  Layout* layout_;
  int ranks_, rank_;
};

}  // namespace trireme::cuda_emulation
