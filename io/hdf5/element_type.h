// Which of our element types holds what a file stores, and how it is read. Private to io/hdf5.
#pragma once

#include <string>

#include "core/base/dtype.h"
#include "io/hdf5/handle.h"

namespace trireme::io {

struct ElementType {
  Dtype dtype = Dtype::f32;  // narrowest of ours that holds every value
  std::string stored;        // "16-bit big-endian unsigned integer"
  bool unsigned64 = false;   // read as i64: values above 2^63 − 1 are refused when met
  bool bits = false;         // an 8-bit bit field (PyTables' bool): HDF5 converts it to nothing else
};

// The element type of a dataset; throws Error(data) with `where` and the type's name for text, variable length,
// compound, reference, opaque, time and array types, and integers wider than 64 bits.
[[nodiscard]] ElementType element_type(hid_t stored, const std::string& where);
// In this machine's memory. bool: HDF5's idea of it as a 1-byte integer.
[[nodiscard]] TypeHandle memory_type(Dtype dtype);
// As our own files store it: little-endian; bool as h5py's enumeration FALSE = 0, TRUE = 1.
[[nodiscard]] TypeHandle file_type(Dtype dtype);

}  // namespace trireme::io
