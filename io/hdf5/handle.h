// Owned HDF5 identifiers, the process-wide lock, and the library's error stack as text. Private to io/hdf5.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace trireme::io {

// Held around every sequence of HDF5 calls, closing included: the library may be built without thread safety.
// Recursive, so that a handle can be dropped while it is held. Turns the library's own error printing off for the
// calling thread.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// An identifier and the function that closes it. Drop it with the lock held.
template <herr_t (*Close)(hid_t)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) Close(id_);
  }

  [[nodiscard]] hid_t get() const { return id_; }
  [[nodiscard]] explicit operator bool() const { return id_ >= 0; }
  // Closes now; false when the library refuses. The identifier is gone either way.
  [[nodiscard]] bool close() { return id_ < 0 || Close(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using FileHandle = Handle<H5Fclose>;
using DatasetHandle = Handle<H5Dclose>;
using SpaceHandle = Handle<H5Sclose>;
using TypeHandle = Handle<H5Tclose>;
using PropertyHandle = Handle<H5Pclose>;
using AttributeHandle = Handle<H5Aclose>;

// The library's words for its last failure, innermost first: "data error detected by Fletcher32 checksum; …"; of a
// failed system call the system's alone.
struct Hdf5Words {
  std::string text;
  bool of_system_call = false;  // rather than of bad content
};
[[nodiscard]] Hdf5Words hdf5_words();
// Throws Error(io) after a failed system call, else Error(data): "WHERE: WHAT: <the library's words>".
[[noreturn]] void fail_hdf5(const std::string& where, const std::string& what);

}  // namespace trireme::io
