// Writing, describing and reading one slice file.
#include "io/checkpoint/slice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/fault.h"
#include "io/checkpoint/format.h"
#include "io/hdf5/hdf5.h"

namespace trireme::io {
namespace {

static_assert(std::endian::native == std::endian::little, "bulk bytes are written as they lie in memory");

constexpr std::size_t blocks_a_flush = 256;

std::uint64_t blocks_in(std::uint64_t bytes) { return (bytes + block_bytes - 1) / block_bytes; }

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

Shape flat(std::uint64_t elements) { return Shape{static_cast<std::int64_t>(elements)}; }

// Hash of a file's bytes outside `extents` (offset → length): HDF5's headers and gaps, a few KiB.
std::string hash_rest(const File& file, std::uint64_t size, std::map<std::uint64_t, std::uint64_t> extents) {
  extents.emplace(size, 0);
  std::vector<std::byte> rest;
  std::uint64_t at = 0;
  for (const auto& [offset, length] : extents) {
    if (offset < at) fail(ExitCode::data, "{}: two datasets overlap at byte {}", file.path().string(), offset);
    const std::size_t used = rest.size();
    rest.resize(used + (offset - at));
    file.read_at(std::span(rest).subspan(used), at);
    at = offset + length;
  }
  return hex(xxh3(rest));
}

std::uint64_t size_of_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) fail(ExitCode::data, "{}: missing", path.string());
    fail_errno(errno, path.string() + ": cannot be asked for its size");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t part_bytes(const Manifest::Arena& arena, std::uint64_t index, std::uint64_t count) {
  return slice_of(arena.elements, index, count).size() * size_of(arena.dtype);
}

}  // namespace

void write_slice(const std::filesystem::path& path, std::span<const SlicePart> parts,
                 const std::map<std::string, std::string>& attributes, const std::function<void()>& moved) {
  std::vector<std::uint64_t> offsets(parts.size()), blocks;
  std::uint64_t block_count = 0, blocks_at = 0;
  for (const SlicePart& part : parts) block_count += blocks_in(part.bytes.size());
  {
    const auto file = Hdf5File::create(path);
    for (const auto& [name, text] : attributes) file->write_attribute(name, text);
    const auto add = [&](const std::string& dataset, std::uint64_t elements, Dtype dtype) -> std::uint64_t {
      if (elements == 0) return 0;
      file->create_dataset(dataset, flat(elements), dtype, {});
      return file->offset(dataset);
    };
    for (std::size_t i = 0; i < parts.size(); ++i) {
      offsets[i] = add("/" + parts[i].arena, parts[i].bytes.size() / size_of(parts[i].dtype), parts[i].dtype);
    }
    blocks_at = add("/blocks", block_count, Dtype::i64);  // bit patterns of u64
    file->close();
  }
  // HDF5 is closed: opened for writing again it would cut the file to the length it believes in.
  File file(path, O_WRONLY);
  blocks.reserve(block_count);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    fault::point("writing_slice");
    for (std::uint64_t at = 0; at < parts[i].bytes.size(); at += block_bytes) {
      const auto block = parts[i].bytes.subspan(at, std::min<std::uint64_t>(block_bytes, parts[i].bytes.size() - at));
      blocks.push_back(xxh3(block));
      file.write_at(block, offsets[i] + at);
      // Flushed in pieces, so that the last flush, in which nothing is seen to move, stays short.
      if (blocks.size() % blocks_a_flush == 0) file.sync();
      moved();
    }
  }
  if (!blocks.empty()) file.write_at(std::as_bytes(std::span(blocks)), blocks_at);
  file.sync();
  moved();
  file.close();
  sync_folder(path.parent_path());
}

SliceFile describe_slice(const std::filesystem::path& folder, std::span<const Manifest::Arena> arenas,
                         std::uint64_t index, std::uint64_t count) {
  SliceFile slice;
  slice.file = slice_name(index, count);
  const std::filesystem::path path = folder / slice.file;
  slice.bytes = size_of_file(path);
  const auto hdf5 = Hdf5File::open(path);
  std::map<std::uint64_t, std::uint64_t> extents;
  const auto add = [&](const std::string& dataset, std::uint64_t elements, Dtype dtype) {
    if (elements == 0) return;
    const Shape shape = hdf5->info("/" + dataset).shape;
    if (shape != flat(elements)) {
      fail(ExitCode::data, "{}: /{} has shape {}, {} was to be written", path.string(), dataset, shape.text(),
           flat(elements).text());
    }
    slice.offsets[dataset] = hdf5->offset("/" + dataset);
    const std::uint64_t end = slice.offsets[dataset] + elements * size_of(dtype);
    if (end > slice.bytes) {
      fail(ExitCode::data, "{}: /{} ends at byte {} of a file of {}", path.string(), dataset, end, slice.bytes);
    }
    extents[slice.offsets[dataset]] = elements * size_of(dtype);
  };
  std::uint64_t block_count = 0;
  for (const Manifest::Arena& arena : arenas) {
    add(arena.name, slice_of(arena.elements, index, count).size(), arena.dtype);
    block_count += blocks_in(part_bytes(arena, index, count));
  }
  add("blocks", block_count, Dtype::i64);
  const File file(path, O_RDONLY);
  std::vector<std::uint64_t> blocks(block_count);
  if (block_count > 0) file.read_at(std::as_writable_bytes(std::span(blocks)), slice.offsets["blocks"]);
  slice.blocks_hash = hex(xxh3(std::as_bytes(std::span(blocks))));
  slice.rest_hash = hash_rest(file, slice.bytes, std::move(extents));
  return slice;
}

SliceReader::SliceReader(const Manifest& manifest, std::uint64_t index)
    : manifest_(manifest), slice_(manifest.slices.at(index)) {
  const std::filesystem::path path = manifest.folder / slice_.file;
  const std::uint64_t size = size_of_file(path);
  if (size != slice_.bytes) {
    fail(ExitCode::data, "{}: {} bytes, {} were written; the file is {}", path.string(), size, slice_.bytes,
         size < slice_.bytes ? "truncated" : "not the one that was saved");
  }
  file_ = File(path, O_RDONLY);
  std::map<std::uint64_t, std::uint64_t> extents;
  std::size_t block_count = 0;
  for (const Manifest::Arena& arena : manifest.arenas) {
    Part part{0, part_bytes(arena, index, manifest.slices.size()), block_count};
    if (part.bytes > 0) {
      part.offset = slice_.offsets.at(arena.name);
      extents[part.offset] = part.bytes;
      block_count += blocks_in(part.bytes);
    }
    parts_.push_back(part);
  }
  blocks_.resize(block_count);
  if (block_count > 0) {
    const std::uint64_t at = slice_.offsets.at("blocks");
    extents[at] = block_count * sizeof(std::uint64_t);
    file_.read_at(std::as_writable_bytes(std::span(blocks_)), at);
  }
  const std::string blocks_hash = hex(xxh3(std::as_bytes(std::span(blocks_))));
  if (blocks_hash != slice_.blocks_hash) {
    fail(ExitCode::data, "{}: /blocks has checksum {}, the manifest says {}; the file was changed", path.string(),
         blocks_hash, slice_.blocks_hash);
  }
  const std::string rest_hash = hash_rest(file_, size, std::move(extents));
  if (rest_hash != slice_.rest_hash) {
    fail(ExitCode::data, "{}: HDF5's own bytes have checksum {}, the manifest says {}; the file was changed",
         path.string(), rest_hash, slice_.rest_hash);
  }
}

void SliceReader::check(std::size_t arena, std::uint64_t block, std::span<const std::byte> bytes) const {
  const std::uint64_t recorded = blocks_[parts_[arena].first_block + block], computed = xxh3(bytes);
  if (recorded != computed) {
    fail(ExitCode::data, "{}: /{}: block {} (bytes {} to {} of the file) has checksum {}, /blocks says {}",
         file_.path().string(), manifest_.arenas[arena].name, block, parts_[arena].offset + block * block_bytes,
         parts_[arena].offset + block * block_bytes + bytes.size(), hex(computed), hex(recorded));
  }
}

void SliceReader::read(std::size_t arena, std::uint64_t begin, std::span<std::byte> to) {
  const Part& part = parts_[arena];
  if (begin + to.size() > part.bytes) {
    fail(ExitCode::internal, "{}: bytes {} to {} of /{}, which has {}", file_.path().string(), begin, begin + to.size(),
         manifest_.arenas[arena].name, part.bytes);
  }
  const std::uint64_t end = begin + to.size();
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t block = at / block_bytes, block_at = block * block_bytes;
    const std::uint64_t block_end = std::min(block_at + block_bytes, part.bytes), stop = std::min(block_end, end);
    const auto piece = to.subspan(at - begin, stop - at);
    if (at == block_at && stop == block_end) {  // whole: straight into place
      file_.read_at(piece, part.offset + at);
      check(arena, block, piece);
    } else {
      scratch_.resize(block_end - block_at);
      file_.read_at(scratch_, part.offset + block_at);
      check(arena, block, scratch_);
      std::memcpy(piece.data(), scratch_.data() + (at - block_at), piece.size());
    }
    at = stop;
  }
}

}  // namespace trireme::io
