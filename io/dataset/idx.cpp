// IDX files, plain or gzipped. The header is checked against what the file can hold before memory is taken.
#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/base/file.h"
#include "io/dataset/pack.h"

namespace trireme::io {
namespace {

// Bytes of a file in order; a gzipped one inflated (RFC 1952, several members in a row allowed).
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path)
      : file_(path, O_RDONLY), size_(std::filesystem::file_size(path)), buffer_(std::size_t{1} << 16) {
    std::array<std::byte, 2> magic{};
    if (size_ >= magic.size()) file_.read_at(magic, 0);
    gzip_ = magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (gzip_ && inflateInit2(&stream_, gzip_only) != Z_OK) fail(ExitCode::internal, "zlib cannot be started");
  }
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource() {
    if (gzip_) inflateEnd(&stream_);
  }

  // Bytes the file can expand to: deflate codes at most 1,032 bytes in one (258 in 2 bits).
  [[nodiscard]] std::uint64_t most() const { return gzip_ ? size_ * 1032 : size_; }

  // Fills `to` as far as the bytes go; returns how many came.
  std::size_t read(std::span<std::byte> to) {
    if (gzip_) return inflate_into(to);
    const std::size_t count = std::min<std::uint64_t>(to.size(), size_ - at_);
    file_.read_at(to.first(count), at_);
    at_ += count;
    return count;
  }

 private:
  std::size_t inflate_into(std::span<std::byte> to) {
    std::size_t filled = 0;
    while (filled < to.size()) {
      if (stream_.avail_in == 0) refill();
      if (stream_.avail_in == 0) {
        if (!between_members_) fail(ExitCode::data, "{}: its compressed bytes end early; copy it again", name());
        break;
      }
      between_members_ = false;
      const std::size_t room = std::min<std::size_t>(to.size() - filled, std::size_t{1} << 30);
      stream_.next_out = reinterpret_cast<Bytef*>(to.data() + filled);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      filled += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        between_members_ = true;
        inflateReset(&stream_);
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(ExitCode::data, "{}: its compressed bytes are damaged: {}; copy it again", name(),
             stream_.msg != nullptr ? stream_.msg : "zlib gives no reason");
      }
    }
    return filled;
  }

  void refill() {
    const std::size_t count = std::min<std::uint64_t>(buffer_.size(), size_ - at_);
    file_.read_at(std::span(buffer_).first(count), at_);
    at_ += count;
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(count);
  }

  [[nodiscard]] std::string name() const { return file_.path().string(); }

  File file_;
  std::uint64_t size_, at_ = 0;
  bool gzip_ = false, between_members_ = true;
  std::vector<std::byte> buffer_;
  z_stream stream_{};
};

struct IdxType {
  unsigned code;
  std::size_t bytes;  // as stored
  Dtype dtype;        // as read
};
constexpr std::array<IdxType, 6> idx_types = {{{0x08, 1, Dtype::u8},
                                               {0x09, 1, Dtype::i32},
                                               {0x0B, 2, Dtype::i32},
                                               {0x0C, 4, Dtype::i32},
                                               {0x0D, 4, Dtype::f32},
                                               {0x0E, 8, Dtype::f64}}};

constexpr std::size_t first_piece = std::size_t{1} << 24;

struct Header {
  IdxType type{};
  Shape shape;
};

Header read_header(ByteSource& source, const std::string& name) {
  std::array<std::byte, 4 + 4 * 255> bytes{};
  if (source.read(std::span(bytes).first(4)) != 4) fail(ExitCode::data, "{}: is shorter than an IDX header", name);
  const auto code = std::to_integer<unsigned>(bytes[2]);
  const auto rank = std::to_integer<std::size_t>(bytes[3]);
  const auto* const type =
      std::find_if(idx_types.begin(), idx_types.end(), [&](const IdxType& t) { return t.code == code; });
  if (bytes[0] != std::byte{0} || bytes[1] != std::byte{0} || type == idx_types.end()) {
    fail(ExitCode::data, "{}: is not an IDX file: it begins with {:02x} {:02x} {:02x}, expected 00 00 and a type", name,
         std::to_integer<unsigned>(bytes[0]), std::to_integer<unsigned>(bytes[1]), code);
  }
  if (rank == 0 || rank > Shape::max_rank) {
    fail(ExitCode::data, "{}: its header tells of {} dimensions, 1 to {} can be read", name, rank, Shape::max_rank);
  }
  const auto extents = std::span(bytes).subspan(4, 4 * rank);
  if (source.read(extents) != extents.size()) fail(ExitCode::data, "{}: ends within its header", name);
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::uint64_t total = type->bytes;
  for (std::size_t i = 0; i < rank; ++i) {
    for (std::size_t b = 0; b < 4; ++b) dims[i] = dims[i] << 8 | std::to_integer<std::int64_t>(extents[4 * i + b]);
    const auto extent = static_cast<std::uint64_t>(dims[i]);
    if (extent != 0 && total > source.most() / extent) {
      fail(ExitCode::data,
           "{}: its header tells of at least {} times {} bytes, the file can hold {}; it is damaged or truncated", name,
           extent, total, source.most());
    }
    total *= extent;
  }
  return {*type, Shape(std::span<const std::int64_t>(dims.data(), rank))};
}

// Big-endian values of `width` bytes, in place.
void to_native_order(std::span<std::byte> values, std::size_t width) {
  if (std::endian::native == std::endian::big || width == 1) return;
  for (std::size_t i = 0; i < values.size(); i += width) {
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i),
                 values.begin() + static_cast<std::ptrdiff_t>(i + width));
  }
}

// 8- and 16-bit signed integers to i32.
template <class Narrow>
std::vector<std::byte> widened(std::span<const std::byte> values) {
  const std::size_t count = values.size() / sizeof(Narrow);
  std::vector<std::byte> wide(count * sizeof(std::int32_t));
  for (std::size_t i = 0; i < count; ++i) {
    Narrow narrow = 0;
    std::memcpy(&narrow, values.data() + i * sizeof narrow, sizeof narrow);
    const std::int32_t value = narrow;
    std::memcpy(wide.data() + i * sizeof value, &value, sizeof value);
  }
  return wide;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) fail(ExitCode::data, "{}: no such file", path.string());
  ByteSource source(path);
  const Header header = read_header(source, path.string());
  IdxArray array;
  array.shape = header.shape;
  array.dtype = header.type.dtype;
  // Memory grows with what comes, not with what the header promises.
  const std::size_t promised = static_cast<std::size_t>(header.shape.elements()) * header.type.bytes;
  for (std::size_t have = 0; have < promised;) {
    array.values.resize(std::min(promised, std::max(first_piece, 2 * have)));
    have += source.read(std::span(array.values).subspan(have));
    if (have == array.values.size()) continue;
    fail(ExitCode::data, "{}: its header tells of {} bytes of values (shape {}), it has {}; it is truncated",
         path.string(), promised, header.shape.text(), have);
  }
  std::array<std::byte, 1> more{};
  if (source.read(more) != 0) {
    fail(ExitCode::data, "{}: goes on after the {} bytes of values its header tells of (shape {})", path.string(),
         array.values.size(), header.shape.text());
  }
  to_native_order(array.values, header.type.bytes);
  if (array.dtype == Dtype::i32 && header.type.bytes == 1) array.values = widened<std::int8_t>(array.values);
  if (array.dtype == Dtype::i32 && header.type.bytes == 2) array.values = widened<std::int16_t>(array.values);
  return array;
}

}  // namespace trireme::io
