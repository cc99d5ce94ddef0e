// The group of ranks over a CUDA device: NCCL moves, our own kernels add, so the sums are those of mpi/ bit by bit.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/nccl/communicator.h"
#include "core/comm/nccl/make_group.h"

namespace trireme::comm {

namespace {

// Tensor collectives run on the caller's thread, which is the compute thread: they only queue.
class DeviceGroup final : public GroupImpl {
 public:
  DeviceGroup(std::shared_ptr<GroupImpl> host, std::shared_ptr<device::Device> device)
      : host_(std::move(host)), device_(std::move(device)), stream_(device_->make_stream("trm-comm")) {
    if (size() == 1) return;
    std::string id = rank() == 0 ? told_by_rank_0() : std::string();
    Group(host_).broadcast_now(id, 0);
    if (!id.starts_with('+')) fail(ExitCode::usage, "{}", id);
    nccl_ = std::make_unique<Communicator>(id.substr(1), size(), rank());
    if (rank() == 0) log::info("nccl: {}, {} ranks", Communicator::version(), size());
    mark();
    Companion companion;
    companion.waiting = [this] { return waiting(); };
    companion.failure = [this] { return nccl_->failure(); };
    companion.abort = [this] { nccl_->abort(); };
    host_->accompany(std::move(companion));
  }

  [[nodiscard]] int rank() const override { return host_->rank(); }
  [[nodiscard]] int size() const override { return host_->size(); }
  [[nodiscard]] int local_rank() const override { return host_->local_rank(); }
  [[nodiscard]] int local_size() const override { return host_->local_size(); }
  [[nodiscard]] device::Stream stream() const override { return stream_; }
  [[nodiscard]] device::Stream host_stream() const override { return host_->host_stream(); }
  [[nodiscard]] bool queues() const override { return true; }

  void tree_reduce(std::span<float> data, std::span<double> tile_squares) override;
  void tree_reduce(std::span<double> data) override;
  void all_reduce(std::span<float> data) override { library_sum(data); }
  void all_reduce(std::span<double> data) override { library_sum(data); }
  void agree(Words& words) override { host_->agree(words); }
  void broadcast(std::span<std::byte> data, int root) override { host_->broadcast(data, root); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override { host_->all_gather(mine, all); }
  void barrier() override { host_->barrier(); }
  // First the device's work, then its communicator, then the ranks part.
  [[nodiscard]] bool finish() override {
    stream_.synchronize();
    host_->accompany({});
    if (nccl_) nccl_->finish();
    return host_->finish();
  }
  // Peers are told first, or they would take the end of NCCL for the cause.
  void abort(int code, const std::string& why) noexcept override {
    host_->abort(code, why);
    if (nccl_) nccl_->abort();
  }
  void progress(std::uint64_t step, const char* phase, std::uint64_t part) noexcept override {
    host_->progress(step, phase, part);
  }

 private:
  struct Piece {
    std::size_t begin = 0, end = 0;  // tiles
  };
  // '+' and the id, or why there is none: all ranks fail alike.
  static std::string told_by_rank_0() {
    try {
      return fmt::format("+{}", Communicator::unique_id());
    } catch (const Error& error) {
      return error.what();
    }
  }
  void need_power_of_two() const {
    if (!std::has_single_bit(static_cast<unsigned>(size())))
      fail(ExitCode::internal, "tree_reduce on {} ranks: only a power of two has this tree", size());
  }
  static std::span<float> elements(std::span<float> data, Piece piece) {
    const std::size_t begin = std::min(piece.begin * tile_elements, data.size());
    const std::size_t end = std::min(piece.end * tile_elements, data.size());
    return data.subspan(begin, end - begin);
  }
  static std::span<double> squares_of(std::span<double> squares, Piece piece) {
    return squares.empty() ? squares : squares.subspan(piece.begin, piece.end - piece.begin);
  }
  template <class T>
  static Communicator::Message message(std::span<T> give, std::span<T> take) {
    return {std::as_bytes(give), std::as_writable_bytes(take)};
  }
  template <class T>
  void library_sum(std::span<T> data) {
    if (!nccl_) return;
    nccl_->sum(data, stream_);
    mark();
  }
  // After the last collective so far.
  void mark() {
    const device::Event event = stream_.record();
    if (marked_on_ == nullptr) marked_on_ = event.stream();  // in the constructor, before another thread asks
    marked_.store(event.id(), std::memory_order_release);
  }
  [[nodiscard]] bool waiting() const noexcept {
    try {
      return !device::Event(marked_on_, marked_.load(std::memory_order_acquire)).done();
    } catch (...) {
      return false;  // the compute thread meets the device's error too, and tells it
    }
  }
  // What the peer sends, before it is added. Grows during the first step alone.
  std::span<std::byte> scratch(std::size_t bytes) {
    if (scratch_.bytes() < bytes) scratch_ = device::Buffer(device_, bytes);
    return scratch_.span<std::byte>().first(bytes);
  }

  std::shared_ptr<GroupImpl> host_;
  std::shared_ptr<device::Device> device_;
  device::Stream stream_;
  std::unique_ptr<Communicator> nccl_;  // none with one rank
  device::Buffer scratch_;
  device::StreamImpl* marked_on_ = nullptr;  // the same from the first mark on
  std::atomic<std::uint64_t> marked_{0};
};

// Halving and doubling as in mpi/mpi_group.cpp, whose words describe it: the same pieces, the same additions.
void DeviceGroup::tree_reduce(std::span<float> data, std::span<double> tile_squares) {
  if (size() == 1) return;
  need_power_of_two();
  const device::Kernels& kernels = device_->kernels();
  std::array<Piece, 32> shared{};
  std::size_t depth = 0;
  Piece piece{0, tiles_of(data.size())};
  for (int distance = 1; distance < size(); distance *= 2) {
    const int peer = rank() ^ distance;
    const std::size_t middle = piece.begin + (piece.end - piece.begin) / 2;
    const Piece first{piece.begin, middle}, second{middle, piece.end};
    const bool lower = rank() < peer;
    shared[depth++] = piece;
    piece = lower ? first : second;
    const std::span<float> sum = elements(data, piece);
    const std::span<std::byte> bytes = scratch(sum.size_bytes());
    const std::span<float> theirs(reinterpret_cast<float*>(bytes.data()), sum.size());
    const std::array messages{message(elements(data, lower ? second : first), theirs)};
    nccl_->exchange(messages, peer, stream_);
    const bool last = distance * 2 == size();
    kernels.add(sum, lower ? sum : theirs, lower ? theirs : sum,
                last ? squares_of(tile_squares, piece) : std::span<double>(), stream_);
  }
  for (int distance = size() / 2; distance > 0; distance /= 2) {
    const int peer = rank() ^ distance;
    const Piece both = shared[--depth];
    const Piece other = rank() < peer ? Piece{piece.end, both.end} : Piece{both.begin, piece.begin};
    const std::array messages{message(elements(data, piece), elements(data, other)),
                              message(squares_of(tile_squares, piece), squares_of(tile_squares, other))};
    nccl_->exchange(messages, peer, stream_);
    piece = both;
  }
  mark();
}

void DeviceGroup::tree_reduce(std::span<double> data) {
  if (size() == 1) return;
  need_power_of_two();
  const std::span<std::byte> bytes = scratch(data.size_bytes());
  const std::span<double> theirs(reinterpret_cast<double*>(bytes.data()), data.size());
  for (int distance = 1; distance < size(); distance *= 2) {
    const int peer = rank() ^ distance;
    const std::array messages{message(data, theirs)};
    nccl_->exchange(messages, peer, stream_);
    const bool lower = rank() < peer;
    device_->kernels().add_f64(data, lower ? data : theirs, lower ? theirs : data, stream_);
  }
  mark();
}

}  // namespace

}  // namespace trireme::comm

extern "C" __attribute__((visibility("default"))) std::shared_ptr<trireme::comm::GroupImpl> trireme_cuda_make_group(
    std::shared_ptr<trireme::comm::GroupImpl> host, std::shared_ptr<trireme::device::Device> device) {
  return std::make_shared<trireme::comm::DeviceGroup>(std::move(host), std::move(device));
}
