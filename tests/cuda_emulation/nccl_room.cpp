// POSIX shared memory named by the communicator's id; the name is gone once all have come.
#include "tests/cuda_emulation/nccl_room.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

namespace trireme::cuda_emulation {

std::size_t Channel::put(std::span<const std::byte> bytes) {
  const std::uint64_t begin = written_.load(std::memory_order_relaxed);
  const std::size_t room = capacity - static_cast<std::size_t>(begin - read_.load(std::memory_order_acquire));
  const std::size_t count = std::min(room, bytes.size()), at = begin % capacity;
  const std::size_t first = std::min(count, capacity - at);
  if (count == 0) return 0;
  std::memcpy(bytes_ + at, bytes.data(), first);
  std::memcpy(bytes_, bytes.data() + first, count - first);
  written_.store(begin + count, std::memory_order_release);
  return count;
}

std::size_t Channel::take(std::span<std::byte> bytes) {
  const std::uint64_t begin = read_.load(std::memory_order_relaxed);
  const std::size_t there = static_cast<std::size_t>(written_.load(std::memory_order_acquire) - begin);
  const std::size_t count = std::min(there, bytes.size()), at = begin % capacity;
  const std::size_t first = std::min(count, capacity - at);
  if (count == 0) return 0;
  std::memcpy(bytes.data(), bytes_ + at, first);
  std::memcpy(bytes.data() + first, bytes_, count - first);
  read_.store(begin + count, std::memory_order_release);
  return count;
}

// All zero when made, which is what every member begins with.
struct Room::Layout {
  std::atomic<int> ranks, arrived;
  std::atomic<std::uint64_t> seed;
  std::array<std::atomic<int>, most_ranks> devices;                  // 1 + device, by rank
  std::array<std::array<Channel, most_ranks>, most_ranks> channels;  // from, to
};

std::string Room::new_name() {
  std::random_device entropy;
  return "/trireme-emulated-nccl-" + std::to_string(getpid()) + "-" + std::to_string(entropy());
}

std::unique_ptr<Room> Room::enter(const std::string& name, int ranks, int rank, int device, std::uint64_t seed,
                                  std::string& why) {
  if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) {
    why = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ": the emulation has up to 8";
    return nullptr;
  }
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(Layout)) == 0)
    memory = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) why = std::string("no shared memory ") + name + ": " + std::strerror(errno);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<Room> room(new Room(static_cast<Layout*>(memory), ranks, rank));
  const bool complete = room->take_place(device, seed, why) && room->wait_for_all(why);
  if (rank == 0 || !complete) shm_unlink(name.c_str());
  return complete ? std::move(room) : nullptr;
}

Room::~Room() { munmap(layout_, sizeof(Layout)); }

bool Room::take_place(int device, std::uint64_t seed, std::string& why) {
  int agreed = 0;
  if (!layout_->ranks.compare_exchange_strong(agreed, ranks_) && agreed != ranks_) {
    why = "ranks say that they are " + std::to_string(agreed) + " and " + std::to_string(ranks_);
    return false;
  }
  int nobody = 0;
  if (!layout_->devices[static_cast<std::size_t>(rank_)].compare_exchange_strong(nobody, device + 1)) {
    why = "two processes are rank " + std::to_string(rank_);
    return false;
  }
  if (rank_ == 0) layout_->seed = seed;
  ++layout_->arrived;
  return true;
}

bool Room::wait_for_all(std::string& why) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (layout_->arrived < ranks_) {
    if (std::chrono::steady_clock::now() > give_up) {
      why = std::to_string(layout_->arrived) + " of " + std::to_string(ranks_) + " ranks came within a minute";
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int a = 0; a < ranks_; ++a) {
    for (int b = 0; b < a; ++b) {
      const int device = layout_->devices[static_cast<std::size_t>(a)];
      if (device != layout_->devices[static_cast<std::size_t>(b)]) continue;
      why = "ranks " + std::to_string(b) + " and " + std::to_string(a) + " are both on device " +
            std::to_string(device - 1);
      return false;
    }
  }
  return true;
}

std::uint64_t Room::seed() const { return layout_->seed; }
Channel& Room::to(int peer) const {
  return layout_->channels[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(peer)];
}
Channel& Room::from(int peer) const {
  return layout_->channels[static_cast<std::size_t>(peer)][static_cast<std::size_t>(rank_)];
}

}  // namespace trireme::cuda_emulation
