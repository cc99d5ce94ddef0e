// Writes HDF5 files by the library's own calls, in types and layouts that io/hdf5 reads and never writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::test {

struct RawDataset {
  std::string path;                    // "/group/image"
  std::string type;                    // "u8" "i8" "u16be" "i16le" "f16be" "f32be" "f80" "enum" "bits" …
  std::vector<std::uint64_t> extents;  // empty: scalar
  std::vector<double> values;          // converted by HDF5; bool, enum and bits: as bytes
  std::vector<std::uint64_t> chunk;    // empty: contiguous
  std::string filters;                 // any of "shuffle deflate fletcher32 nbit"
  std::string layout;                  // "", "compact", "external"
};

// A new file with these datasets; `userblock` bytes of 0x55 in front.
void write_raw(const std::filesystem::path& file, const std::vector<RawDataset>& datasets, std::uint64_t userblock = 0);
// u64 values as they are, which doubles cannot all hold.
void write_u64(const std::filesystem::path& file, const std::string& dataset, const std::vector<std::uint64_t>& values);
// kind: "text", "variable text", "variable rows", "compound", "reference", "opaque", "array", "nine dimensions",
// "null", "bits16", "filter": a dataset that cannot be a field.
void write_unreadable(const std::filesystem::path& file, const std::string& dataset, const std::string& kind);
// A virtual dataset: rows of `parts`' dataset one after the other (each of `rows` rows of `columns` u8).
void write_virtual(const std::filesystem::path& file, const std::string& dataset,
                   const std::vector<std::filesystem::path>& parts, std::uint64_t rows, std::uint64_t columns);
// Adds a soft link and an attribute of variable length.
void add_link(const std::filesystem::path& file, const std::string& from, const std::string& to);
void add_variable_attribute(const std::filesystem::path& file, const std::string& name, const std::string& text);
// File offset of the chunk with this row.
std::uint64_t chunk_offset(const std::filesystem::path& file, const std::string& dataset, std::uint64_t row);
// Holds the file open for writing until the returned function is called.
void hold_for_writing(const std::filesystem::path& file, int (*wait)());

}  // namespace trireme::test
