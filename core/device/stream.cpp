// Event and Stream: what their handles do beyond forwarding to the device's implementation.
#include "core/device/stream.h"

#include "core/base/error.h"

namespace trireme::device {

bool Event::done() const { return stream_ == nullptr || stream_->done(id_); }
double Event::synchronize() const { return stream_ == nullptr ? 0.0 : stream_->synchronize(id_); }
double Event::time() const { return stream_ == nullptr ? 0.0 : stream_->time(id_); }

void Stream::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (to.size() != from.size())
    fail(ExitCode::internal, "stream copy: {} bytes into {} bytes; both sides must be of one size", from.size(),
         to.size());
  if (!to.empty()) impl_->copy(to.data(), from.data(), to.size());
}

}  // namespace trireme::device
