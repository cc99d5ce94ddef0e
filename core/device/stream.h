// Streams and events: value handles, cheap to copy. Work of one stream runs in order; between streams order
// comes from events alone. On the CPU the compute stream runs inline and every other stream is a thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace trireme::device {

class StreamImpl;

// A point in a stream. Default-made: done. Holds no memory of its own; valid while its stream lives.
// An event is forgotten 4,096 records later (it is then long done).
class Event {
 public:
  Event() = default;
  Event(StreamImpl* stream, std::uint64_t id) : stream_(stream), id_(id) {}
  [[nodiscard]] bool done() const;
  // The host waits. Rethrows what the stream's work threw. Returns the seconds waited.
  double synchronize() const;
  // Seconds on the steady clock at which the stream reached this point (0 for default-made); waits for it.
  [[nodiscard]] double time() const;
  [[nodiscard]] StreamImpl* stream() const { return stream_; }
  [[nodiscard]] std::uint64_t id() const { return id_; }

 private:
  StreamImpl* stream_ = nullptr;
  std::uint64_t id_ = 0;
};

// A small closure without allocation: trivially copyable captures of at most 96 bytes.
class Task {
 public:
  Task() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Task>)
      Task(const F& body)  // NOLINT: implicit on purpose, as std::function
      : call_([](void* state) { (*std::launder(static_cast<F*>(state)))(); }) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= size);
    new (state_.data()) F(body);
  }
  void operator()() { call_(state_.data()); }

 private:
  static constexpr std::size_t size = 96;
  alignas(16) std::array<std::byte, size> state_{};
  void (*call_)(void*) = nullptr;
};

// What a device implements. Use through Stream.
class StreamImpl {
 public:
  virtual ~StreamImpl() = default;
  virtual void run(const Task& task) = 0;  // host function, in stream order
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void wait(const Event& event) = 0;
  virtual std::uint64_t record() = 0;
  virtual bool done(std::uint64_t id) const = 0;
  virtual double synchronize(std::uint64_t id) const = 0;  // seconds waited
  virtual double time(std::uint64_t id) const = 0;
  virtual void* native() const { return nullptr; }  // cudaStream_t
};

class Stream {
 public:
  Stream() = default;
  explicit Stream(std::shared_ptr<StreamImpl> impl) : impl_(std::move(impl)) {}
  // Work queued later runs after `event`; the host does not wait (on an inline stream it does: there the host
  // is the stream).
  void wait(const Event& event) { impl_->wait(event); }
  [[nodiscard]] Event record() { return {impl_.get(), impl_->record()}; }
  void run(const Task& task) { impl_->run(task); }
  // Bytes between any of device, pinned and host memory; sizes must agree (Error(internal) otherwise).
  void copy(std::span<std::byte> to, std::span<const std::byte> from);
  double synchronize() { return record().synchronize(); }
  [[nodiscard]] void* native() const { return impl_->native(); }
  [[nodiscard]] explicit operator bool() const { return impl_ != nullptr; }

 private:
  std::shared_ptr<StreamImpl> impl_;
};

}  // namespace trireme::device
