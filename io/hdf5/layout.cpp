// What a dataset looks like: finding and describing those that exist, creating new ones.
#include <algorithm>
#include <array>
#include <cstdlib>

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

bool is_half(hid_t stored) {
  if (H5Tget_class(stored) != H5T_FLOAT) return false;
  const TypeHandle half = memory_type(Dtype::f16);
  const TypeHandle native(H5Tcopy(stored));
  H5Tset_order(native.get(), H5Tget_order(half.get()));
  return H5Tequal(native.get(), half.get()) > 0;
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

std::uint64_t OpenHdf5File::offset(const std::string& dataset) const {
  const Hdf5Lock lock;
  const haddr_t address = H5Dget_offset(opened(dataset).handle.get());
  if (address == HADDR_UNDEF) {
    fail(ExitCode::internal, "{}: has no offset: it is not contiguous, or not allocated", where(dataset));
  }
  return address;
}

}  // namespace trireme::io
