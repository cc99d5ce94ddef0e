// Buffer and PinnedBuffer: memory of a device, owned.
#include <utility>

#include "core/device/device.h"

namespace trireme::device {

Buffer::Buffer(std::shared_ptr<Device> device, std::size_t bytes) : device_(std::move(device)), bytes_(bytes) {
  if (bytes > 0) data_ = device_->allocate(bytes);
}
Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::move(other.device_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer taken(std::move(other));
  std::swap(device_, taken.device_);
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}
Buffer::~Buffer() {
  if (data_ != nullptr) device_->free(data_);
}

PinnedBuffer::PinnedBuffer(std::shared_ptr<Device> device, std::size_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  if (bytes > 0) data_ = device_->allocate_pinned(bytes);
}
PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : device_(std::move(other.device_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}
PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  PinnedBuffer taken(std::move(other));
  std::swap(device_, taken.device_);
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}
PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) device_->free_pinned(data_);
}

}  // namespace trireme::device
