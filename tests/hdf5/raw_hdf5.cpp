// Plain HDF5 calls; every failure is a test failure by exception.
#include "tests/hdf5/raw_hdf5.h"

#include <fmt/core.h>
#include <hdf5.h>

#include <stdexcept>

namespace trireme::test {
namespace {

hid_t check(hid_t id) {
  if (id < 0) throw std::runtime_error("a test file could not be written: an HDF5 call failed");
  return id;
}

hid_t half_float(bool big_endian) {
  const hid_t type = check(H5Tcopy(big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE));
  check(H5Tset_fields(type, 15, 10, 5, 0, 10));
  check(H5Tset_precision(type, 16));
  check(H5Tset_size(type, 2));
  check(H5Tset_ebias(type, 15));
  return type;
}

hid_t enumeration(const std::vector<std::string>& names) {
  const hid_t type = check(H5Tenum_create(H5T_STD_I8LE));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = static_cast<std::int8_t>(i);
    check(H5Tenum_insert(type, names[i].c_str(), &value));
  }
  return type;
}

hid_t type_named(const std::string& name) {
  if (name == "f16le" || name == "f16be") return half_float(name == "f16be");
  if (name == "bool") return enumeration({"FALSE", "TRUE"});
  if (name == "enum") return enumeration({"CAT", "DOG", "BIRD"});
  if (name == "bits") return check(H5Tcopy(H5T_STD_B8LE));
  if (name == "i12be") {  // 12 bits of 16, as cameras store
    const hid_t type = check(H5Tcopy(H5T_STD_U16BE));
    check(H5Tset_precision(type, 12));
    return type;
  }
  const hid_t types[] = {H5T_STD_U8LE,   H5T_STD_I8LE,   H5T_STD_U16LE,     H5T_STD_U16BE,  H5T_STD_I16LE,
                         H5T_STD_I16BE,  H5T_STD_U32LE,  H5T_STD_U32BE,     H5T_STD_I32LE,  H5T_STD_I32BE,
                         H5T_STD_I64LE,  H5T_STD_I64BE,  H5T_STD_U64BE,     H5T_IEEE_F32LE, H5T_IEEE_F32BE,
                         H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_NATIVE_LDOUBLE};
  const std::string names[] = {"u8",    "i8",    "u16le", "u16be", "i16le", "i16be", "u32le", "u32be", "i32le",
                               "i32be", "i64le", "i64be", "u64be", "f32le", "f32be", "f64le", "f64be", "f80"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (names[i] == name) return check(H5Tcopy(types[i]));
  }
  throw std::runtime_error("no such type in raw_hdf5: " + name);
}

hid_t intermediate_groups() {
  const hid_t links = check(H5Pcreate(H5P_LINK_CREATE));
  check(H5Pset_create_intermediate_group(links, 1));
  return links;
}

void write_dataset(hid_t file, const std::filesystem::path& path, const RawDataset& raw) {
  const hid_t type = type_named(raw.type);
  const std::vector<hsize_t> extents(raw.extents.begin(), raw.extents.end());
  const std::vector<hsize_t> chunk(raw.chunk.begin(), raw.chunk.end());
  const int rank = static_cast<int>(extents.size());
  const hid_t space = check(rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, extents.data(), nullptr));
  const hid_t creation = check(H5Pcreate(H5P_DATASET_CREATE));
  if (!chunk.empty()) check(H5Pset_chunk(creation, rank, chunk.data()));
  if (raw.filters.find("nbit") != std::string::npos) check(H5Pset_nbit(creation));
  if (raw.filters.find("shuffle") != std::string::npos) check(H5Pset_shuffle(creation));
  if (raw.filters.find("deflate") != std::string::npos) check(H5Pset_deflate(creation, 4));
  if (raw.filters.find("fletcher32") != std::string::npos) check(H5Pset_fletcher32(creation));
  if (raw.layout == "compact") check(H5Pset_layout(creation, H5D_COMPACT));
  if (raw.layout == "external") check(H5Pset_external(creation, (path.string() + ".raw").c_str(), 0, H5F_UNLIMITED));
  const hid_t links = intermediate_groups();
  const hid_t dataset = check(H5Dcreate2(file, raw.path.c_str(), type, space, links, creation, H5P_DEFAULT));
  if (raw.type == "bool" || raw.type == "enum" || raw.type == "bits") {
    std::vector<std::uint8_t> bytes;
    for (const double value : raw.values) bytes.push_back(static_cast<std::uint8_t>(value));
    check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()));
  } else if (!raw.values.empty()) {
    check(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.values.data()));
  }
  check(H5Dclose(dataset));
  check(H5Sclose(space));
  check(H5Pclose(creation));
  check(H5Pclose(links));
  check(H5Tclose(type));
}

hid_t unreadable_type(const std::string& kind) {
  if (kind == "text" || kind == "variable text") {
    const hid_t type = check(H5Tcopy(H5T_C_S1));
    check(H5Tset_size(type, kind == "text" ? 8 : H5T_VARIABLE));
    return type;
  }
  if (kind == "variable rows") return check(H5Tvlen_create(H5T_NATIVE_INT32));
  if (kind == "compound") {
    const hid_t type = check(H5Tcreate(H5T_COMPOUND, 8));
    check(H5Tinsert(type, "x", 0, H5T_NATIVE_FLOAT));
    check(H5Tinsert(type, "y", 4, H5T_NATIVE_FLOAT));
    return type;
  }
  if (kind == "reference") return check(H5Tcopy(H5T_STD_REF_OBJ));
  if (kind == "opaque") return check(H5Tcreate(H5T_OPAQUE, 5));
  if (kind == "bits16") return check(H5Tcopy(H5T_STD_B16LE));
  if (kind == "array") {
    const hsize_t extents[] = {2, 3};
    return check(H5Tarray_create2(H5T_NATIVE_FLOAT, 2, extents));
  }
  return check(H5Tcopy(H5T_NATIVE_FLOAT));
}

}  // namespace

void write_raw(const std::filesystem::path& path, const std::vector<RawDataset>& datasets, std::uint64_t userblock) {
  const hid_t creation = check(H5Pcreate(H5P_FILE_CREATE));
  check(H5Pset_userblock(creation, userblock));
  const hid_t file = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT));
  for (const RawDataset& raw : datasets) write_dataset(file, path, raw);
  check(H5Pclose(creation));
  check(H5Fclose(file));
}

void write_u64(const std::filesystem::path& path, const std::string& name, const std::vector<std::uint64_t>& values) {
  const hid_t file = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const hsize_t rows = values.size();
  const hid_t space = check(H5Screate_simple(1, &rows, nullptr));
  const hid_t dataset =
      check(H5Dcreate2(file, name.c_str(), H5T_STD_U64BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  check(H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  check(H5Dclose(dataset));
  check(H5Sclose(space));
  check(H5Fclose(file));
}

void write_unreadable(const std::filesystem::path& path, const std::string& name, const std::string& kind) {
  const hid_t file = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const hid_t type = unreadable_type(kind);
  const hsize_t extents[9] = {2, 1, 1, 1, 1, 1, 1, 1, 1};
  const hid_t space = check(kind == "null" ? H5Screate(H5S_NULL)
                                           : H5Screate_simple(kind == "nine dimensions" ? 9 : 1, extents, nullptr));
  const hid_t creation = check(H5Pcreate(H5P_DATASET_CREATE));
  if (kind == "filter") {
    const hsize_t chunk = 1;
    check(H5Pset_chunk(creation, 1, &chunk));
    // Optional, so that the file can be written without it: 32001 is registered for blosc.
    check(H5Pset_filter(creation, 32001, H5Z_FLAG_OPTIONAL, 0, nullptr));
  }
  const hid_t dataset = check(H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  check(H5Dclose(dataset));
  check(H5Pclose(creation));
  check(H5Sclose(space));
  check(H5Tclose(type));
  check(H5Fclose(file));
}

void write_virtual(const std::filesystem::path& path, const std::string& name,
                   const std::vector<std::filesystem::path>& parts, std::uint64_t rows, std::uint64_t columns) {
  const hid_t file = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const hsize_t all[2] = {rows * parts.size(), columns}, part[2] = {rows, columns};
  const hid_t space = check(H5Screate_simple(2, all, nullptr)), source = check(H5Screate_simple(2, part, nullptr));
  const hid_t creation = check(H5Pcreate(H5P_DATASET_CREATE));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const hsize_t start[2] = {i * rows, 0};
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, part, nullptr));
    check(H5Pset_virtual(creation, space, parts[i].c_str(), name.c_str(), source));
  }
  check(H5Sselect_all(space));
  const hid_t dataset = check(H5Dcreate2(file, name.c_str(), H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  check(H5Dclose(dataset));
  check(H5Pclose(creation));
  check(H5Sclose(source));
  check(H5Sclose(space));
  check(H5Fclose(file));
}

void add_link(const std::filesystem::path& path, const std::string& from, const std::string& to) {
  const hid_t file = check(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  check(H5Lcreate_soft(to.c_str(), file, from.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  check(H5Fclose(file));
}

void add_variable_attribute(const std::filesystem::path& path, const std::string& name, const std::string& text) {
  const hid_t file = check(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  const hid_t type = check(H5Tcopy(H5T_C_S1));
  check(H5Tset_size(type, H5T_VARIABLE));
  const hid_t space = check(H5Screate(H5S_SCALAR));
  const hid_t attribute = check(H5Acreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  const char* const words = text.c_str();
  check(H5Awrite(attribute, type, &words));
  check(H5Aclose(attribute));
  check(H5Sclose(space));
  check(H5Tclose(type));
  check(H5Fclose(file));
}

std::uint64_t chunk_offset(const std::filesystem::path& path, const std::string& name, std::uint64_t row) {
  const hid_t file = check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const hid_t dataset = check(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  const hid_t space = check(H5Dget_space(dataset));
  std::vector<hsize_t> at(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)), 0);
  at[0] = row;
  unsigned mask = 0;
  haddr_t address = 0;
  hsize_t bytes = 0;
  check(H5Dget_chunk_info_by_coord(dataset, at.data(), &mask, &address, &bytes));
  check(H5Sclose(space));
  check(H5Dclose(dataset));
  check(H5Fclose(file));
  return address;
}

void hold_for_writing(const std::filesystem::path& path, int (*wait)()) {
  const hid_t file = check(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  wait();
  check(H5Fclose(file));
}

}  // namespace trireme::test
