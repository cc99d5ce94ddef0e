// A dataset as text and back: how the rank that opened the files tells the others. Line by line, words separated by
// blanks and escaped; layouts that files share are told once.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/error.h"
#include "io/dataset/dataset.h"

namespace trireme::io {
namespace {

constexpr std::string_view first_line = "trireme-dataset 1";

// Blanks, control characters and '%' as %XX; an empty word as "%".
std::string escaped(std::string_view word) {
  if (word.empty()) return "%";
  std::string text;
  for (const char c : word) {
    const auto code = static_cast<unsigned char>(c);
    if (code <= ' ' || c == '%' || code == 0x7f) {
      text += fmt::format("%{:02x}", code);
    } else {
      text += c;
    }
  }
  return text;
}

[[noreturn]] void fail_text(std::string_view what) {
  fail(ExitCode::internal, "the text of a dataset is damaged: {}", what);
}

class Words {
 public:
  explicit Words(std::string_view text) : left_(text) {}

  std::string_view raw() {
    left_.remove_prefix(std::min(left_.find_first_not_of(" \n"), left_.size()));
    const std::size_t end = std::min(left_.find_first_of(" \n"), left_.size());
    const std::string_view word = left_.substr(0, end);
    left_.remove_prefix(end);
    if (word.empty()) fail_text("it ends early");
    return word;
  }
  std::string text() {
    const std::string_view word = raw();
    if (word == "%") return "";
    std::string plain;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word[i] != '%') {
        plain += word[i];
        continue;
      }
      unsigned code = 0;
      if (i + 2 >= word.size() || std::from_chars(&word[i + 1], &word[i + 1] + 2, code, 16).ptr != &word[i + 1] + 2) {
        fail_text(word);
      }
      plain += static_cast<char>(code);
      i += 2;
    }
    return plain;
  }
  template <class Integer>
  Integer number() {
    const std::string_view word = raw();
    Integer value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size()) fail_text(word);
    return value;
  }
  Shape shape() {
    std::vector<std::int64_t> dims(number<std::uint8_t>());
    for (std::int64_t& dim : dims) dim = number<std::int64_t>();
    return Shape(dims);
  }
  Dtype dtype() {
    const std::string_view word = raw();
    const std::optional<Dtype> dtype = dtype_named(word);
    if (!dtype) fail_text(word);
    return *dtype;
  }

 private:
  std::string_view left_;
};

std::string shape_words(const Shape& shape) {
  std::string text = std::to_string(shape.rank());
  for (const std::int64_t dim : shape.dims()) text += ' ' + std::to_string(dim);
  return text;
}

// All of a file but its path, size and number of rows.
std::string layout_of(const DataFile& file, bool one_sample) {
  std::string text;
  for (const DatasetInfo& info : file.fields) {
    text += fmt::format("{} {} {} {} {} {} {}", escaped(info.path),
                        shape_words(one_sample ? info.shape : info.shape.with_rows(0)), name_of(info.dtype),
                        escaped(info.stored_type), info.chunked ? 1 : 0, info.chunk_rows, info.filters.size());
    for (const std::string& filter : info.filters) text += ' ' + escaped(filter);
    text += '\n';
  }
  return text;
}

DatasetInfo read_info(Words& words) {
  DatasetInfo info;
  info.path = words.text();
  info.shape = words.shape();
  info.dtype = words.dtype();
  info.stored_type = words.text();
  info.chunked = words.number<int>() != 0;
  info.chunk_rows = words.number<std::int64_t>();
  info.filters.resize(words.number<std::uint8_t>());
  for (std::string& filter : info.filters) filter = words.text();
  return info;
}

}  // namespace

std::string Dataset::text() const {
  std::map<std::string, std::size_t> layouts;
  std::string layout_lines, file_lines;
  for (const DataFile& file : files_) {
    const auto [layout, is_new] = layouts.try_emplace(layout_of(file, one_sample_files_), layouts.size());
    if (is_new) layout_lines += layout->first;
    file_lines += fmt::format("{} {} {} {}\n", escaped(file.path.native()), file.bytes, file.samples, layout->second);
  }
  std::string field_lines;
  for (const Field& field : fields_) {
    field_lines += fmt::format("{} {} {}\n", escaped(field.name), shape_words(field.shape), name_of(field.dtype));
  }
  return fmt::format("{}\n{} {} {} {}\n{}{}{}", first_line, one_sample_files_ ? 1 : 0, fields_.size(), layouts.size(),
                     files_.size(), field_lines, layout_lines, file_lines);
}

Dataset Dataset::from_text(const std::string& text) {
  if (!text.starts_with(first_line)) fail_text("its first line");
  Words words(std::string_view(text).substr(first_line.size()));
  Dataset data;
  data.one_sample_files_ = words.number<int>() != 0;
  const auto fields = words.number<std::uint16_t>();
  const auto layout_count = words.number<std::uint32_t>();
  const auto file_count = words.number<std::uint32_t>();
  for (std::uint16_t i = 0; i < fields; ++i) {
    Field field;
    field.name = words.text();
    field.shape = words.shape();
    field.dtype = words.dtype();
    data.fields_.push_back(std::move(field));
  }
  std::vector<std::vector<DatasetInfo>> layouts;
  for (std::uint32_t i = 0; i < layout_count; ++i) {
    std::vector<DatasetInfo> layout;
    for (std::uint16_t f = 0; f < fields; ++f) layout.push_back(read_info(words));
    layouts.push_back(std::move(layout));
  }
  std::int64_t next = 0;
  for (std::uint32_t i = 0; i < file_count; ++i) {
    DataFile file;
    file.path = words.text();
    file.bytes = words.number<std::uint64_t>();
    file.samples = words.number<std::int64_t>();
    const auto layout = words.number<std::size_t>();
    if (layout >= layouts.size() || file.samples < 0) fail_text(file.path.native());
    file.fields = layouts[layout];
    for (DatasetInfo& info : file.fields) {
      if (!data.one_sample_files_) info.shape = info.shape.with_rows(file.samples);
    }
    file.first_sample = next;
    next += file.samples;
    data.files_.push_back(std::move(file));
  }
  return data;
}

}  // namespace trireme::io
