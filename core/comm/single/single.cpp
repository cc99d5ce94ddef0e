// A group of one rank: sums and agreements are what it has already.
#include "core/comm/single/single.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/comm/leave.h"
#include "core/comm/watchdog.h"
#include "core/device/device.h"
#include "core/device/doorbell.h"
#include "core/device/thread_stream.h"

namespace trireme::comm {

namespace {

class Single final : public GroupImpl {
 public:
  explicit Single(const Options& options) : watchdog_s_(options.watchdog_s) {
    watch_ = std::make_shared<device::ThreadStream>("trm-comm",
                                                    device::ThreadStream::Hooks{{}, {}, [this] { return watch(); }});
  }

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] int local_rank() const override { return 0; }
  [[nodiscard]] int local_size() const override { return 1; }
  [[nodiscard]] device::Stream stream() const override { return device::make_cpu()->compute_stream(); }

  void tree_reduce(std::span<float>, std::span<double>) override {}
  void tree_reduce(std::span<double>) override {}
  void all_reduce(std::span<float>) override {}
  void all_reduce(std::span<double>) override {}
  void agree(Words&) override {}
  void broadcast(std::span<std::byte>, int) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (mine.size() != all.size())
      fail(ExitCode::internal, "all_gather: {} bytes of 1 rank into {}", mine.size(), all.size());
    if (!mine.empty() && mine.data() != all.data()) std::memcpy(all.data(), mine.data(), mine.size());
  }
  void barrier() override {}
  [[nodiscard]] bool finish() override {
    watchdog_.disarm();
    return true;
  }
  void abort(int, const std::string&) noexcept override { watchdog_.disarm(); }
  void progress(std::uint64_t step, const char* phase, std::uint64_t part) noexcept override {
    watchdog_.progress(step, phase, part);
  }

 private:
  std::chrono::microseconds watch() {
    if (watchdog_.stalled(device::seconds_now()) > watchdog_s_) {
      say(0, fmt::format("no progress for {} s in step {}, phase {}: a hang, or train.watchdog_s is below the "
                         "longest step",
                         watchdog_s_, watchdog_.step(), watchdog_.phase()));
      _exit(static_cast<int>(ExitCode::lost_peer));
    }
    return std::chrono::milliseconds(100);
  }

  double watchdog_s_;
  Watchdog watchdog_;
  std::shared_ptr<device::ThreadStream> watch_;  // idle but for the watchdog; last: ends before what it watches
};

}  // namespace

std::shared_ptr<GroupImpl> make_single(const Options& options) { return std::make_shared<Single>(options); }

}  // namespace trireme::comm
