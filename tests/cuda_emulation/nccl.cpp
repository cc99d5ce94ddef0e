// NCCL's calls: sends, receives and sums of one group become two operations of their stream. The first takes what is
// sent and makes what is received NaN; the second, some time later, brings what the peers sent. Everything a peer sends
// says what it is: where two sides disagree, ncclCommGetAsyncError tells, and the stream waits until ncclCommAbort, as
// it would for a peer that never comes.
#include <nccl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/nccl_room.h"
#include "tests/cuda_emulation/schedule.h"

namespace emulation = trireme::cuda_emulation;
using emulation::Channel;
using emulation::Locked;
using emulation::Operation;
using emulation::Room;

namespace {

enum class Kind : std::uint32_t { message, sum };
const char* name_of(Kind kind) { return kind == Kind::message ? "a message" : "a sum"; }

struct Head {
  Kind kind;
  std::uint32_t type;
  std::uint64_t count;
};
std::string text(const Head& head) {
  return std::string(name_of(head.kind)) + " of " + std::to_string(head.count) + " elements of type " +
         std::to_string(head.type);
}

// One way between two ranks: a head, then the bytes.
struct Parcel {
  int peer = 0;
  Head head{}, came{};
  std::vector<std::byte> bytes;
  std::size_t head_done = 0, done = 0;

  [[nodiscard]] bool complete() const { return head_done == sizeof head && done == bytes.size(); }
  void push(Channel& channel) {
    head_done += channel.put(std::as_bytes(std::span(&head, 1)).subspan(head_done));
    if (head_done == sizeof head) done += channel.put(std::span(bytes).subspan(done));
  }
  // False where something else came than is expected.
  bool pull(Channel& channel) {
    if (head_done < sizeof head) {
      head_done += channel.take(std::as_writable_bytes(std::span(&came, 1)).subspan(head_done));
      if (head_done < sizeof head) return true;
    }
    if (std::memcmp(&came, &head, sizeof head) != 0) return false;
    done += channel.take(std::span(bytes).subspan(done));
    return true;
  }
};
using Parcels = std::array<std::deque<std::shared_ptr<Parcel>>, emulation::most_ranks>;  // by peer, oldest first

// Of one rank's communicator; its queued operations hold it.
struct State {
  std::unique_ptr<Room> room;
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> met{ncclSuccess};
  std::string why;  // written before `met`
  // Guarded by the device's lock.
  Parcels out, in;
  std::uint64_t sums = 0;     // started so far
  std::size_t under_way = 0;  // operations

  // Moves what can be moved at the moment.
  void move() {
    for (auto& parcels : out) {
      while (!parcels.empty()) {
        parcels.front()->push(room->to(parcels.front()->peer));
        if (!parcels.front()->complete()) break;
        parcels.pop_front();
      }
    }
    for (auto& parcels : in) {
      while (!parcels.empty() && met == ncclSuccess) {
        Parcel& parcel = *parcels.front();
        if (!parcel.pull(room->from(parcel.peer))) {
          why = "rank " + std::to_string(parcel.peer) + " sent " + text(parcel.came) + " where " + text(parcel.head) +
                " is expected";
          met = ncclInvalidUsage;
        }
        if (!parcel.complete()) break;
        parcels.pop_front();
      }
    }
  }
};

}  // namespace

struct ncclComm {
  std::shared_ptr<State> state = std::make_shared<State>();
};

namespace {

struct Call {
  Kind kind;
  const void* from;  // null: receives alone
  void* to;          // null: sends alone
  std::size_t count;
  ncclDataType_t type;
  int peer;  // of a message
  std::shared_ptr<State> state;
  cudaStream_t stream;
};

thread_local int depth = 0;
thread_local std::vector<Call> group;
thread_local std::string last_words;

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat32: return 4;
    case ncclFloat64: return 8;
    default: return 0;  // the module sends no others
  }
}

ncclResult_t refuse(ncclResult_t result, const std::string& why) {
  last_words = why;
  return result;
}

template <class T>
void add(std::span<std::byte> into, std::span<const std::byte> other, std::size_t element) {
  T a{}, b{};
  std::memcpy(&a, &into[element * sizeof(T)], sizeof a);
  std::memcpy(&b, &other[element * sizeof(T)], sizeof b);
  a += b;
  std::memcpy(&into[element * sizeof(T)], &a, sizeof a);
}

// What one call moves. The device is locked and its memory open at start and finish.
class Transfer {
 public:
  explicit Transfer(Call call) : call_(std::move(call)) {}

  void start() {
    State& state = *call_.state;
    const std::size_t bytes = call_.count * size_of(call_.type);
    std::vector<std::byte> mine(call_.from != nullptr ? bytes : 0);
    if (call_.from != nullptr) std::memcpy(mine.data(), call_.from, bytes);
    if (call_.to != nullptr) std::memset(call_.to, 0xFF, bytes);
    if (call_.kind == Kind::message) {
      if (call_.from != nullptr) post(state.out, call_.peer, std::move(mine));
      if (call_.to != nullptr) post(state.in, call_.peer, std::vector<std::byte>(bytes));
      return;
    }
    for (int peer = 0; peer < state.room->ranks(); ++peer) {
      if (peer == state.room->rank()) continue;
      post(state.out, peer, mine);
      post(state.in, peer, std::vector<std::byte>(bytes));
    }
    own_ = std::move(mine);
    number_ = state.sums++;
  }
  [[nodiscard]] bool complete() const {
    return std::ranges::all_of(parcels_, [](const auto& parcel) { return parcel->complete(); });
  }
  void finish() {
    if (call_.to == nullptr) return;
    if (call_.kind == Kind::sum) {
      const std::vector<std::byte> total = sum();
      std::memcpy(call_.to, total.data(), total.size());
    } else {
      std::memcpy(call_.to, parcels_.front()->bytes.data(), parcels_.front()->bytes.size());
    }
  }

 private:
  void post(Parcels& parcels, int peer, std::vector<std::byte> bytes) {
    auto parcel = std::make_shared<Parcel>();
    parcel->peer = peer;
    parcel->head = {call_.kind, static_cast<std::uint32_t>(call_.type), call_.count};
    parcel->bytes = std::move(bytes);
    parcels[static_cast<std::size_t>(peer)].push_back(parcel);
    parcels_.push_back(std::move(parcel));
  }
  // NCCL does not say in which order it adds; here that is drawn, the same on all ranks.
  std::vector<std::byte> sum() {
    const Room& room = *call_.state->room;
    std::vector<std::span<const std::byte>> of_ranks(static_cast<std::size_t>(room.ranks()), own_);
    for (std::size_t i = 1; i < parcels_.size(); i += 2)  // out and in by turns
      of_ranks[static_cast<std::size_t>(parcels_[i]->peer)] = parcels_[i]->bytes;
    emulation::Random order(room.seed() * 1000003 + number_);
    for (std::size_t i = of_ranks.size(); i > 1; --i) std::swap(of_ranks[i - 1], of_ranks[order.below(i)]);
    std::vector<std::byte> total(of_ranks.front().begin(), of_ranks.front().end());
    for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
      for (std::size_t i = 0; i < call_.count; ++i) {
        if (call_.type == ncclFloat32) {
          add<float>(total, of_ranks[rank], i);
        } else {
          add<double>(total, of_ranks[rank], i);
        }
      }
    }
    return total;
  }

  Call call_;
  std::vector<std::shared_ptr<Parcel>> parcels_;
  std::vector<std::byte> own_;
  std::uint64_t number_ = 0;
};

// All calls of a group on one stream, which go on side by side. Gone when both of its operations are.
struct Group {
  std::shared_ptr<State> state;
  std::vector<Transfer> transfers;
  explicit Group(const std::vector<Call>& calls) : state(calls.front().state), transfers(calls.begin(), calls.end()) {
    ++state->under_way;
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { --state->under_way; }
  [[nodiscard]] bool given_up() const { return state->aborted || emulation::status() != cudaSuccess; }
};

void queue(const std::vector<Call>& calls) {
  auto group_of_calls = std::make_shared<Group>(calls);
  const cudaStream_t stream = calls.front().stream;
  emulation::enqueue(stream, {"the start of NCCL's calls", [group_of_calls] {
                                for (Transfer& transfer : group_of_calls->transfers) transfer.start();
                              }});
  Operation end;
  end.what = "the end of NCCL's calls";
  end.kind = Operation::Kind::external;
  end.ready = [group_of_calls] {
    Group& g = *group_of_calls;
    if (g.given_up()) return true;
    g.state->move();
    return g.state->met == ncclSuccess && std::ranges::all_of(g.transfers, &Transfer::complete);
  };
  end.run = [group_of_calls] {
    if (group_of_calls->given_up()) return;
    for (Transfer& transfer : group_of_calls->transfers) transfer.finish();
  };
  emulation::enqueue(stream, std::move(end));
}

ncclResult_t end_group() {
  const std::vector<Call> calls = std::move(group);
  group.clear();
  const Locked locked;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto together = [&](const Call& other) {
      return other.stream == calls[i].stream && other.state == calls[i].state;
    };
    if (std::any_of(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(i), together)) continue;
    std::vector<Call> same;
    std::ranges::copy_if(calls, std::back_inserter(same), together);
    queue(same);
  }
  return emulation::status() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t call(const char* name, Kind kind, const void* from, void* to, std::size_t count, ncclDataType_t type,
                  int peer, ncclComm_t comm, cudaStream_t stream) {
  if (comm == nullptr) return refuse(ncclInvalidArgument, std::string(name) + ": no communicator");
  State& state = *comm->state;
  if (size_of(type) == 0) return refuse(ncclInvalidArgument, std::string(name) + ": a type the emulation lacks");
  if (kind == Kind::message && (peer < 0 || peer >= state.room->ranks() || peer == state.room->rank()))
    return refuse(ncclInvalidArgument, std::string(name) + ": peer " + std::to_string(peer));
  {
    const Locked locked;
    const std::size_t bytes = count * size_of(type);
    if (!emulation::check_stream(stream, name) || (from != nullptr && !emulation::check_range(from, bytes, name)) ||
        (to != nullptr && !emulation::check_range(to, bytes, name)))
      return refuse(ncclUnhandledCudaError, emulation::finding());
  }
  group.push_back({kind, from, to, count, type, peer, comm->state, stream});
  return depth == 0 ? end_group() : ncclSuccess;
}

// Once its work is done, or was given up.
void leave(ncclComm_t comm) {
  const std::unique_ptr<ncclComm> owned(comm);
  const Locked locked;
  const std::shared_ptr<State> state = comm->state;
  emulation::wait_until([&] { return state->under_way == 0; }, nullptr, "the end of an NCCL communicator");
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    default: return "an error that the emulation does not give";
  }
}
const char* ncclGetLastError(ncclComm_t comm) {
  if (comm != nullptr && comm->state->met != ncclSuccess) {
    last_words = comm->state->why;
  }
  return last_words.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::string name = Room::new_name();
  std::ranges::fill(id->internal, '\0');
  std::ranges::copy(name, id->internal);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
  std::uint64_t seed = 0;
  {
    const Locked locked;
    seed = emulation::seed();
  }
  std::string why;
  auto made = std::make_unique<ncclComm>();
  made->state->room = Room::enter(id.internal, ranks, rank, device, seed, why);
  if (made->state->room == nullptr) return refuse(ncclInvalidUsage, why);
  *comm = made.release();
  return ncclSuccess;
}
// Without the device's lock: it is asked all the time, and that must not keep the device from going on.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* met) {
  *met = comm->state->met;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclInvalidArgument;
  comm->state->aborted = true;
  leave(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclInvalidArgument;
  leave(comm);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  return --depth == 0 && !group.empty() ? end_group() : ncclSuccess;
}
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call("ncclSend", Kind::message, data, nullptr, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call("ncclRecv", Kind::message, nullptr, data, count, type, peer, comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  if (operation != ncclSum || (type != ncclFloat32 && type != ncclFloat64))
    return refuse(ncclInvalidArgument, "ncclAllReduce: the emulation sums f32 and f64 alone");
  return call("ncclAllReduce", Kind::sum, from, to, count, type, 0, comm, stream);
}

}  // extern "C"
