// The group over MPI: collectives of our own from messages between two ranks, so their order of additions is ours.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/rank.h"
#include "core/base/threads.h"
#include "core/comm/leave.h"
#include "core/comm/mpi/connect.h"
#include "core/comm/mpi/heart.h"
#include "core/comm/mpi/link.h"
#include "core/device/cpu/tile.h"
#include "core/device/thread_stream.h"

namespace trireme::comm {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 28;  // of broadcast and all_gather; int counts reach 2^31
constexpr auto idle_nap = std::chrono::milliseconds(10);

template <class T>
std::span<std::byte> bytes(std::span<T> values) {
  return std::as_writable_bytes(values);
}

class MpiGroup final : public GroupImpl {
 public:
  explicit MpiGroup(const Options& options) : options_(options) {
    stream_ = device::Stream(std::make_shared<device::ThreadStream>(
        "trm-comm", device::ThreadStream::Hooks{{}, {}, [this] { return idle(); }}));
    stream_.run([this] { connect(); });
    // MPI_Init and what follows block inside; a peer that died there would hold this rank for ever.
    if (!done_within(stream_.record(), options.watchdog_s)) {
      say(launched_as().rank,
          fmt::format("MPI did not connect the ranks within {} s; did one of them not start?", options.watchdog_s));
      _exit(static_cast<int>(ExitCode::lost_peer));
    }
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int local_rank() const override { return local_rank_; }
  [[nodiscard]] int local_size() const override { return local_size_; }
  [[nodiscard]] device::Stream stream() const override { return stream_; }

  void tree_reduce(std::span<float> data, std::span<double> tile_squares) override;
  void tree_reduce(std::span<double> data) override;
  void all_reduce(std::span<float> data) override { library_sum(data.data(), data.size(), MPI_FLOAT); }
  void all_reduce(std::span<double> data) override { library_sum(data.data(), data.size(), MPI_DOUBLE); }
  void agree(Words& words) override;
  void broadcast(std::span<std::byte> data, int root) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void barrier() override;
  [[nodiscard]] bool finish() override;
  void abort(int code, const std::string& why) noexcept override {
    watchdog_.disarm();
    if (size_ > 1 && !finished_.load()) heart_->ask_to_leave(code, why);
  }
  void progress(std::uint64_t step, const char* phase, std::uint64_t part) noexcept override {
    watchdog_.progress(step, phase, part);
  }
  void accompany(Companion companion) override {
    stream_.run([this, given = &companion] { heart_->accompany(std::move(*given)); });
    stream_.synchronize();
  }

 private:
  // Names the collective for the watchdog while it lasts.
  class Doing {
   public:
    Doing(Heart& heart, const char* collective) : heart_(heart) {
      heart_.doing(collective);
      heart_.poll();
    }
    ~Doing() { heart_.doing(nullptr); }
    Doing(const Doing&) = delete;
    Doing& operator=(const Doing&) = delete;

   private:
    Heart& heart_;
  };
  struct Piece {
    std::size_t begin = 0, end = 0;  // tiles
  };

  void connect();
  MPI_Comm duplicate();
  std::vector<std::string> host_names();
  [[nodiscard]] std::chrono::microseconds idle() {
    if (!ready_) return std::chrono::microseconds(100);
    heart_->poll();
    return idle_nap;
  }
  static bool done_within(const device::Event& event, double seconds) {
    const double deadline = device::seconds_now() + seconds;
    while (!event.done()) {
      if (device::seconds_now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    event.synchronize();
    return true;
  }
  void library_sum(void* data, std::size_t count, MPI_Datatype type);
  void need_power_of_two() const {
    if (!std::has_single_bit(static_cast<unsigned>(size_)))
      fail(ExitCode::internal, "tree_reduce on {} ranks: only a power of two has this tree", size_);
  }
  // `data` of the tiles of `piece`.
  static std::span<float> elements(std::span<float> data, Piece piece) {
    const std::size_t begin = std::min(piece.begin * tile_elements, data.size());
    const std::size_t end = std::min(piece.end * tile_elements, data.size());
    return data.subspan(begin, end - begin);
  }
  static std::span<double> squares_of(std::span<double> squares, Piece piece) {
    return squares.empty() ? squares : squares.subspan(piece.begin, piece.end - piece.begin);
  }

  Options options_;
  Watchdog watchdog_;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  std::atomic<bool> finished_{false};
  // Of the communication thread, once connected:
  bool ready_ = false;
  std::unique_ptr<Heart> heart_;
  std::optional<Link> link_;
  std::vector<float> scratch_;  // grows on first use alone
  std::vector<double> scratch_f64_;
  device::Stream stream_;  // last: its thread ends before what it uses
};

void MpiGroup::connect() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: naps of 50 µs are not rounded up to 100
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    fail(ExitCode::lost_peer, "MPI_Init_thread failed; start the ranks with mpirun or srun --mpi=pmix");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (const LaunchedAs as = launched_as(); as.launched && as.world_size != size_)
    fail(ExitCode::usage,
         "the launcher started {} ranks, MPI sees {}: launcher and MPI library do not belong together; with Slurm use "
         "srun --mpi=pmix",
         as.world_size, size_);
  MPI_Comm local = MPI_COMM_NULL;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local) == MPI_SUCCESS) {
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_free(&local);
  }
  const MPI_Comm data = duplicate(), beats = duplicate(), leaving = duplicate();
  heart_ = std::make_unique<Heart>(beats, leaving, host_names(), options_, watchdog_);
  // Two busy threads a rank: with fewer cores a spinning rank keeps another from the message it spins for.
  link_.emplace(data, *heart_, usable_cores() >= 2 * local_size_ ? 50 : 0);
  ready_ = true;
}

MPI_Comm MpiGroup::duplicate() {
  MPI_Comm made = MPI_COMM_NULL;
  if (MPI_Comm_dup(MPI_COMM_WORLD, &made) != MPI_SUCCESS)
    fail(ExitCode::lost_peer, "MPI_Comm_dup failed at start on rank {} of {}", rank_, size_);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

std::vector<std::string> MpiGroup::host_names() {
  constexpr std::size_t longest = 64;
  std::string all(longest * static_cast<std::size_t>(size_), '\0');
  std::string mine = host_name();
  mine.resize(longest - 1);
  mine.push_back('\0');
  if (MPI_Allgather(mine.data(), longest, MPI_BYTE, all.data(), longest, MPI_BYTE, MPI_COMM_WORLD) != MPI_SUCCESS)
    fail(ExitCode::lost_peer, "MPI_Allgather failed at start on rank {} of {}", rank_, size_);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < all.size(); at += longest) names.emplace_back(all.c_str() + at);
  return names;
}

// Halving: at distance d the pair shares a range of tiles; the lower rank keeps its first half, the upper its second,
// and each adds what the other gives of it. After the last distance every tile has one owner. Doubling goes back the
// same way. Always lower rank + upper rank, so element by element it is one binary tree over the ranks.
void MpiGroup::tree_reduce(std::span<float> data, std::span<double> tile_squares) {
  if (size_ == 1) return;
  need_power_of_two();
  const Doing doing(*heart_, "tree_reduce");
  std::array<Piece, 32> shared{};
  std::size_t depth = 0;
  Piece piece{0, tiles_of(data.size())};
  for (int distance = 1; distance < size_; distance *= 2) {
    const int peer = rank_ ^ distance;
    const std::size_t middle = piece.begin + (piece.end - piece.begin) / 2;
    const Piece first{piece.begin, middle}, second{middle, piece.end};
    const bool lower = rank_ < peer;
    const Piece mine = lower ? first : second;
    shared[depth++] = piece;
    piece = mine;
    const std::span<float> sum = elements(data, mine);
    if (scratch_.size() < sum.size()) scratch_.resize(sum.size());
    const auto theirs = std::span(scratch_).first(sum.size());
    link_->exchange(bytes(elements(data, lower ? second : first)), bytes(theirs), peer);
    const bool last = distance * 2 == size_;
    device::cpu::add_tiles(sum, lower ? sum.data() : theirs.data(), lower ? theirs.data() : sum.data(),
                           last ? squares_of(tile_squares, mine) : std::span<double>());
  }
  for (int distance = size_ / 2; distance > 0; distance /= 2) {
    const int peer = rank_ ^ distance;
    const Piece both = shared[--depth];
    const Piece other = rank_ < peer ? Piece{piece.end, both.end} : Piece{both.begin, piece.begin};
    link_->start(bytes(elements(data, piece)), peer, bytes(elements(data, other)), peer);
    link_->start(bytes(squares_of(tile_squares, piece)), peer, bytes(squares_of(tile_squares, other)), peer);
    link_->wait(peer);
    piece = both;
  }
}

void MpiGroup::tree_reduce(std::span<double> data) {
  if (size_ == 1) return;
  need_power_of_two();
  const Doing doing(*heart_, "tree_reduce of scalars");
  if (scratch_f64_.size() < data.size()) scratch_f64_.resize(data.size());
  const auto theirs = std::span(scratch_f64_).first(data.size());
  for (int distance = 1; distance < size_; distance *= 2) {
    const int peer = rank_ ^ distance;
    link_->exchange(bytes(data), bytes(theirs), peer);
    const bool lower = rank_ < peer;
    device::cpu::add(data.data(), lower ? data.data() : theirs.data(), lower ? theirs.data() : data.data(),
                     data.size());
  }
}

void MpiGroup::library_sum(void* data, std::size_t count, MPI_Datatype type) {
  if (size_ == 1) return;
  const Doing doing(*heart_, "all_reduce");
  int width = 0;
  MPI_Type_size(type, &width);
  const std::size_t step = chunk_bytes / static_cast<std::size_t>(width);
  for (std::size_t begin = 0; begin < count; begin += step) {
    MPI_Request request = MPI_REQUEST_NULL;
    link_->check(MPI_Iallreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + begin * static_cast<std::size_t>(width),
                                static_cast<int>(std::min(step, count - begin)), type, MPI_SUM, link_->comm(),
                                &request));
    link_->add(request);
    link_->wait(-1);
  }
}

// Dissemination: after distances 1, 2, 4, … every rank has heard of all; hearing twice does no harm.
void MpiGroup::agree(Words& words) {
  const Doing doing(*heart_, "agree");
  for (int distance = 1; distance < size_; distance *= 2) {
    const int to = (rank_ + distance) % size_, from = (rank_ - distance + size_) % size_;
    const Words given = words;
    Words taken;
    link_->start(std::as_bytes(std::span(&given, 1)), to, bytes(std::span(&taken, 1)), from);
    link_->wait(from);
    for (std::size_t i = 0; i < std::size(words.max); ++i) {
      words.max[i] = std::max(words.max[i], taken.max[i]);
      words.min[i] = std::min(words.min[i], taken.min[i]);
    }
  }
}

void MpiGroup::broadcast(std::span<std::byte> data, int root) {
  if (size_ == 1) return;
  const Doing doing(*heart_, "broadcast");
  for (std::size_t begin = 0; begin < data.size(); begin += chunk_bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    link_->check(MPI_Ibcast(data.data() + begin, static_cast<int>(std::min(chunk_bytes, data.size() - begin)), MPI_BYTE,
                            root, link_->comm(), &request));
    link_->add(request);
    link_->wait(-1);
  }
}

// A ring: each rank passes on what it got last.
void MpiGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto ranks = static_cast<std::size_t>(size_), here = static_cast<std::size_t>(rank_);
  const std::size_t size = mine.size();
  if (all.size() != size * ranks)
    fail(ExitCode::internal, "all_gather: {} bytes of each of {} ranks into {}", size, size_, all.size());
  const Doing doing(*heart_, "all_gather");
  if (size > 0) std::memmove(all.data() + here * size, mine.data(), size);
  const int to = (rank_ + 1) % size_, from = (rank_ + size_ - 1) % size_;
  for (std::size_t hop = 1; hop < ranks; ++hop) {
    const auto give = all.subspan((here + ranks - hop + 1) % ranks * size, size);
    const auto take = all.subspan((here + ranks - hop) % ranks * size, size);
    for (std::size_t begin = 0; begin < size; begin += chunk_bytes) {
      const std::size_t count = std::min(chunk_bytes, size - begin);
      link_->start(give.subspan(begin, count), to, take.subspan(begin, count), from);
      link_->wait(from);
    }
  }
}

void MpiGroup::barrier() {
  if (size_ == 1) return;
  const Doing doing(*heart_, "barrier");
  MPI_Request request = MPI_REQUEST_NULL;
  link_->check(MPI_Ibarrier(link_->comm(), &request));
  link_->add(request);
  link_->wait(-1);
}

// Who passes the barrier knows that all came to it, so that from then on a silent peer is a finished one.
// MPI_Finalize blocks; the run is over by then, so this rank does not wait for it longer than 10 s. The communication
// thread stays in it, so the group can't be destroyed then.
bool MpiGroup::finish() {
  if (finished_.exchange(true)) return true;
  stream_.run([this] {
    barrier();
    heart_->stop();
  });
  stream_.synchronize();
  watchdog_.disarm();
  stream_.run([this] {
    ready_ = false;
    MPI_Finalize();
  });
  constexpr double finalize_at_most = 10;  // s
  if (done_within(stream_.record(), finalize_at_most)) return true;
  say(rank_, "MPI_Finalize did not return within 10 s");
  return false;
}

}  // namespace

std::shared_ptr<GroupImpl> make_mpi(const Options& options) { return std::make_shared<MpiGroup>(options); }

}  // namespace trireme::comm
