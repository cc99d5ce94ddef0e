// Datasets and their rows: what is stored, read and written.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "io/hdf5/file_impl.h"

namespace trireme::io {
namespace {

std::string filter_name(H5Z_filter_t filter, const char* stored_name) {
  switch (filter) {
    case H5Z_FILTER_DEFLATE: return "deflate";
    case H5Z_FILTER_SHUFFLE: return "shuffle";
    case H5Z_FILTER_FLETCHER32: return "fletcher32";
    case H5Z_FILTER_SZIP: return "szip";
    case H5Z_FILTER_NBIT: return "nbit";
    case H5Z_FILTER_SCALEOFFSET: return "scaleoffset";
    default: return fmt::format("filter {} ({})", filter, stored_name);
  }
}

// Names the filters, and refuses those this HDF5 cannot undo.
std::vector<std::string> filters_of(hid_t creation, const std::string& where) {
  std::vector<std::string> names;
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    std::array<char, 64> name{};
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                               name.size() - 1, name.data(), &config);
    names.push_back(filter_name(filter, name.data()));
    if (H5Zfilter_avail(filter) <= 0) {
      fail(ExitCode::data,
           "{}: is compressed by {}, which this HDF5 does not have: set HDF5_PLUGIN_PATH to the folder of its plugin, "
           "or repack the file with deflate (h5repack -f GZIP=4)",
           where, names.back());
    }
  }
  return names;
}

// HDF5 gives fill values for a virtual dataset's sources that are missing: refuse them here.
void check_virtual_sources(hid_t creation, const std::filesystem::path& file, const std::string& where) {
  std::size_t count = 0;
  if (H5Pget_virtual_count(creation, &count) < 0) fail_hdf5(where, "its virtual sources cannot be read");
  for (std::size_t i = 0; i < count; ++i) {
    const ssize_t length = H5Pget_virtual_filename(creation, i, nullptr, 0);
    std::string name(static_cast<std::size_t>(std::max<ssize_t>(length, 0)) + 1, '\0');
    H5Pget_virtual_filename(creation, i, name.data(), name.size());
    name.pop_back();
    // "." is this file, %b numbers a series of files that may end anywhere.
    if (name == "." || name.find('%') != std::string::npos) continue;
    std::error_code ignored;
    if (std::filesystem::exists(file.parent_path() / name, ignored) || std::filesystem::exists(name, ignored)) continue;
    if (std::getenv("HDF5_VDS_PREFIX") != nullptr) continue;
    fail(ExitCode::data, "{}: is a virtual dataset and its source {} does not exist", where, name);
  }
}

Shape shape_of(hid_t space, const std::string& where) {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank > Shape::max_rank) {
    fail(ExitCode::data, "{}: has {} dimensions, at most {} can be read", where, rank, Shape::max_rank);
  }
  std::array<hsize_t, Shape::max_rank> extents{};
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::transform(extents.begin(), extents.end(), dims.begin(), [](hsize_t n) { return static_cast<std::int64_t>(n); });
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
}

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

bool is_half(hid_t stored) {
  if (H5Tget_class(stored) != H5T_FLOAT) return false;
  const TypeHandle half = memory_type(Dtype::f16);
  const TypeHandle native(H5Tcopy(stored));
  H5Tset_order(native.get(), H5Tget_order(half.get()));
  return H5Tequal(native.get(), half.get()) > 0;
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

OpenHdf5File::Opened OpenHdf5File::open_dataset(const std::string& dataset) const {
  const std::string place = where(dataset);
  if (!has(dataset)) {
    const std::vector<std::string> names = datasets();
    const std::string near = nearest(dataset, names);
    if (!near.empty()) fail(ExitCode::data, "{}: no such dataset; did you mean {}?", place, near);
    std::string listed;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i) listed += (i == 0 ? "" : ", ") + names[i];
    fail(ExitCode::data, "{}: no such dataset; the file has {}", place, listed.empty() ? "none" : listed);
  }
  Opened found;
  found.handle = DatasetHandle(H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT));
  const TypeHandle stored(H5Dget_type(found.handle.get()));
  const SpaceHandle space(H5Dget_space(found.handle.get()));
  const PropertyHandle creation(H5Dget_create_plist(found.handle.get()));
  if (!stored || !space || !creation) fail_hdf5(place, "its description cannot be read");
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) fail(ExitCode::data, "{}: is empty (null)", place);
  found.type = element_type(stored.get(), place);
  found.info.path = dataset;
  found.info.shape = shape_of(space.get(), place);
  found.info.dtype = found.type.dtype;
  found.info.stored_type = found.type.stored;
  found.info.filters = filters_of(creation.get(), place);
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) check_virtual_sources(creation.get(), path_, place);
  if (H5Pget_layout(creation.get()) == H5D_CHUNKED) {
    std::array<hsize_t, H5S_MAX_RANK> chunk{};
    H5Pget_chunk(creation.get(), H5S_MAX_RANK, chunk.data());
    found.info.chunked = true;
    found.info.chunk_rows = static_cast<std::int64_t>(chunk[0]);
  }
  found.half = is_half(stored.get());
  if (found.info.chunked && found.info.filters.empty()) {
    // Unfiltered chunks are read piece by piece without the chunk cache, never more than what is asked for.
    const PropertyHandle access(H5Pcreate(H5P_DATASET_ACCESS));
    H5Pset_chunk_cache(access.get(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, 0, H5D_CHUNK_CACHE_W0_DEFAULT);
    found.handle = DatasetHandle();  // an open dataset keeps its cache
    found.handle = DatasetHandle(H5Dopen2(file_.get(), dataset.c_str(), access.get()));
    if (!found.handle) fail_hdf5(place, "cannot be opened");
  }
  return found;
}

const OpenHdf5File::Opened& OpenHdf5File::opened(const std::string& dataset) const {
  if (!file_) fail(ExitCode::internal, "{}: is closed", path_.string());
  const auto found = opened_.find(dataset);
  if (found != opened_.end()) return found->second;
  return opened_.emplace(dataset, open_dataset(dataset)).first->second;
}

DatasetInfo OpenHdf5File::info(const std::string& dataset) const {
  const Hdf5Lock lock;
  return opened(dataset).info;
}

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

void OpenHdf5File::create_dataset(const std::string& dataset, const Shape& shape, Dtype dtype, const Creation& how) {
  const Hdf5Lock lock;
  std::array<hsize_t, Shape::max_rank> extents{};
  for (int i = 0; i < shape.rank(); ++i) extents[static_cast<std::size_t>(i)] = static_cast<hsize_t>(shape[i]);
  const SpaceHandle space(shape.rank() == 0 ? H5Screate(H5S_SCALAR)
                                            : H5Screate_simple(shape.rank(), extents.data(), nullptr));
  const PropertyHandle links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.get(), 1);
  const PropertyHandle creation(H5Pcreate(H5P_DATASET_CREATE));
  const PropertyHandle access(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
  if (how.chunk_rows > 0 && shape.rank() > 0 && shape.elements() > 0) {
    std::array<hsize_t, Shape::max_rank> chunk = extents;
    chunk[0] = static_cast<hsize_t>(std::min(how.chunk_rows, shape[0]));
    H5Pset_chunk(creation.get(), shape.rank(), chunk.data());
    if (how.shuffle) H5Pset_shuffle(creation.get());
    if (how.deflate > 0) H5Pset_deflate(creation.get(), static_cast<unsigned>(how.deflate));
    if (how.fletcher32) H5Pset_fletcher32(creation.get());
    // Writes that end within a chunk find it in the cache: a filtered one would be decoded and encoded again.
    const std::size_t bytes = static_cast<std::size_t>(shape.elements(1, shape.rank())) * size_of(dtype) * chunk[0];
    H5Pset_chunk_cache(access.get(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, std::max<std::size_t>(bytes, std::size_t{1} << 20),
                       H5D_CHUNK_CACHE_W0_DEFAULT);
  } else {
    H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY);
  }
  const TypeHandle type = file_type(dtype);
  Opened made;
  made.handle = DatasetHandle(
      H5Dcreate2(file_.get(), dataset.c_str(), type.get(), space.get(), links.get(), creation.get(), access.get()));
  if (!made.handle) fail_hdf5(where(dataset), fmt::format("cannot be created with shape {}", shape.text()));
  made.info.path = dataset;
  made.info.shape = shape;
  made.type = element_type(type.get(), where(dataset));
  made.info.dtype = made.type.dtype;
  made.info.stored_type = made.type.stored;
  made.info.chunked = H5Pget_layout(creation.get()) == H5D_CHUNKED;
  made.info.chunk_rows = made.info.chunked ? std::min(how.chunk_rows, shape[0]) : 0;
  made.info.filters = filters_of(creation.get(), where(dataset));
  made.half = dtype == Dtype::f16;
  opened_.insert_or_assign(dataset, std::move(made));
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
    fail(ExitCode::io, "{}: rows {} to {} cannot be written: {}", where(dataset), first, first + count, hdf5_words());
  }
}

std::uint64_t OpenHdf5File::offset(const std::string& dataset) const {
  const Hdf5Lock lock;
  const haddr_t address = H5Dget_offset(opened(dataset).handle.get());
  if (address == HADDR_UNDEF) {
    fail(ExitCode::internal, "{}: has no offset: it is not contiguous, or not allocated", where(dataset));
  }
  return address;
}

}  // namespace trireme::io
