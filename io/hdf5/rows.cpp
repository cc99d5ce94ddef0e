// Rows of a dataset: read with conversion, written.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "io/hdf5/file_impl.h"

namespace trireme::io {
namespace {

// Raised by conversions between numbers; an abort makes H5Dread fail.
H5T_conv_ret_t refuse_out_of_range(H5T_conv_except_t kind, hid_t /*from*/, hid_t /*to*/, void* /*value*/,
                                   void* /*result*/, void* met) {
  if (kind != H5T_CONV_EXCEPT_RANGE_HI && kind != H5T_CONV_EXCEPT_RANGE_LOW) return H5T_CONV_UNHANDLED;
  *static_cast<bool*>(met) = true;
  return H5T_CONV_ABORT;
}

// Widens n halves that lie in the last 2·n of 4·n bytes, front to back: float i is written over bytes that were read.
void widen_in_place(std::span<std::byte> bytes) {
  const std::size_t count = bytes.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * count + 2 * i, sizeof half);
    const float value = from_f16(half);
    std::memcpy(bytes.data() + 4 * i, &value, sizeof value);
  }
}

struct Selection {
  SpaceHandle file, memory;
};

// Rows [first, first + count) in the file, and a dense array of the same rank in memory: HDF5 copies between equal
// shapes fastest.
Selection select_rows(hid_t dataset, const Shape& shape, std::int64_t first, std::int64_t count) {
  Selection selection;
  selection.file = SpaceHandle(H5Dget_space(dataset));
  if (shape.rank() == 0) {
    selection.memory = SpaceHandle(H5Screate(H5S_SCALAR));
    return selection;
  }
  std::array<hsize_t, Shape::max_rank> start{}, extent{};
  start[0] = static_cast<hsize_t>(first);
  extent[0] = static_cast<hsize_t>(count);
  for (int i = 1; i < shape.rank(); ++i) extent[static_cast<std::size_t>(i)] = static_cast<hsize_t>(shape[i]);
  selection.memory = SpaceHandle(H5Screate_simple(shape.rank(), extent.data(), nullptr));
  H5Sselect_hyperslab(selection.file.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
  return selection;
}

// Bytes of `count` rows; Error(internal) unless the rows lie in the dataset and the memory has that size.
void check_rows(const std::string& where, const Shape& shape, std::int64_t first, std::int64_t count, Dtype dtype,
                std::size_t bytes) {
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  if (first < 0 || count < 0 || first > rows - count) {
    fail(ExitCode::internal, "{}: rows {} to {} asked for, it has {}", where, first, first + count, rows);
  }
  const std::int64_t row = shape.rank() == 0 ? 1 : shape.elements(1, shape.rank());
  const std::size_t needed = static_cast<std::size_t>(row * count) * size_of(dtype);
  if (needed != bytes) {
    fail(ExitCode::internal, "{}: {} rows take {} bytes as {}, the memory given has {}", where, count, needed,
         name_of(dtype), bytes);
  }
}

}  // namespace

void OpenHdf5File::read_as(const Opened& from, std::int64_t first, std::int64_t count, hid_t type, void* to,
                           bool check_range) const {
  bool out_of_range = false;
  PropertyHandle transfer;
  if (check_range) {
    transfer = PropertyHandle(H5Pcreate(H5P_DATASET_XFER));
    H5Pset_type_conv_cb(transfer.get(), refuse_out_of_range, &out_of_range);
  }
  const Selection rows = select_rows(from.handle.get(), from.info.shape, first, count);
  const herr_t status = H5Dread(from.handle.get(), type, rows.memory.get(), rows.file.get(),
                                check_range ? transfer.get() : H5P_DEFAULT, to);
  if (out_of_range) {
    fail(ExitCode::data, "{}: a value in rows {} to {} ({}) is out of the range of the type it is read as",
         where(from.info.path), first, first + count, from.info.stored_type);
  }
  if (status < 0) fail_hdf5(where(from.info.path), fmt::format("rows {} to {} cannot be read", first, first + count));
}

void OpenHdf5File::read(const std::string& dataset, std::int64_t first, std::int64_t count, Dtype as,
                        std::span<std::byte> to) const {
  const Hdf5Lock lock;
  const Opened& from = opened(dataset);
  check_rows(where(dataset), from.info.shape, first, count, as, to.size());
  if (to.empty()) return;
  if (from.half && as == Dtype::f32) {
    const TypeHandle half = memory_type(Dtype::f16);
    read_as(from, first, count, half.get(), to.data() + to.size() / 2, false);
    widen_in_place(to);
  } else if (from.type.unsigned64 && as == Dtype::i64) {
    read_as(from, first, count, H5T_NATIVE_UINT64, to.data(), false);
    for (std::size_t i = 0; i < to.size(); i += sizeof(std::uint64_t)) {
      std::uint64_t value = 0;
      std::memcpy(&value, to.data() + i, sizeof value);
      if (value >> 63 == 0) continue;
      const std::int64_t row = static_cast<std::int64_t>(i / (to.size() / static_cast<std::size_t>(count)));
      fail(ExitCode::data, "{}: row {}: {} is above 2^63 - 1, more than i64 holds", where(dataset), first + row, value);
    }
  } else if (from.type.bits) {
    if (size_of(as) != 1) fail(ExitCode::internal, "{}: a bit field cannot be read as {}", where(dataset), name_of(as));
    read_as(from, first, count, H5T_NATIVE_B8, to.data(), false);
  } else {
    // A bool is stored as an enumeration; anything else converts as a number.
    const bool boolean = as == Dtype::boolean && from.type.dtype != Dtype::boolean;
    const TypeHandle type = memory_type(boolean ? Dtype::u8 : as);
    read_as(from, first, count, type.get(), to.data(), as != from.type.dtype || as == Dtype::f64);
  }
}

void OpenHdf5File::write(const std::string& dataset, std::int64_t first, std::int64_t count, Dtype dtype,
                         std::span<const std::byte> from) {
  const Hdf5Lock lock;
  const Opened& to = opened(dataset);
  check_rows(where(dataset), to.info.shape, first, count, dtype, from.size());
  if (from.empty()) return;
  const TypeHandle type = memory_type(dtype);
  const Selection rows = select_rows(to.handle.get(), to.info.shape, first, count);
  if (H5Dwrite(to.handle.get(), type.get(), rows.memory.get(), rows.file.get(), H5P_DEFAULT, from.data()) < 0) {
    fail(ExitCode::io, "{}: rows {} to {} cannot be written: {}", where(dataset), first, first + count,
         hdf5_words().text);
  }
}

}  // namespace trireme::io
