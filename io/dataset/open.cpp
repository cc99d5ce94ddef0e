// Opens every data file of a job once and checks that they agree.
#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "io/dataset/dataset.h"
#include "io/dataset/expand.h"

namespace trireme::io {
namespace {

// "/climate/data[sample]": the dataset is one sample, it has no sample dimension.
constexpr std::string_view one_sample_mark = "[sample]";

struct Wanted {
  std::string field, dataset;
  bool one_sample = false;
};

std::vector<Wanted> wanted_fields(const std::map<std::string, std::string>& fields) {
  if (fields.empty()) fail(ExitCode::usage, "data.fields names no field; e.g. fields = {{ image = \"/image\" }}");
  std::vector<Wanted> wanted;
  for (const auto& [field, path] : fields) {
    Wanted entry{field, path, false};
    if (path.ends_with(one_sample_mark)) {
      entry.one_sample = true;
      entry.dataset.resize(path.size() - one_sample_mark.size());
    }
    if (!entry.dataset.starts_with('/')) entry.dataset.insert(entry.dataset.begin(), '/');
    wanted.push_back(std::move(entry));
  }
  return wanted;
}

std::string place(const DataFile& file, std::size_t field) {
  return file.path.string() + ":" + file.fields[field].path;
}

DataFile look_into(const std::filesystem::path& path, std::span<const Wanted> wanted) {
  DataFile file;
  file.path = path;
  const auto opened = Hdf5File::open(path);
  file.bytes = std::filesystem::file_size(path);
  for (const Wanted& entry : wanted) file.fields.push_back(opened->info(entry.dataset));
  return file;
}

bool has_scalar(const DataFile& file) {
  return std::any_of(file.fields.begin(), file.fields.end(), [](const DatasetInfo& f) { return f.shape.rank() == 0; });
}

// One sample a file: marked so, or a field is a scalar (a label), which no file of rows has.
bool is_one_sample(std::span<const Wanted> wanted, std::span<const DataFile> files) {
  if (std::any_of(wanted.begin(), wanted.end(), [](const Wanted& w) { return w.one_sample; })) return true;
  const auto scalar = std::find_if(files.begin(), files.end(), has_scalar);
  if (scalar == files.end()) return false;
  const auto rows = std::find_if_not(files.begin(), files.end(), has_scalar);
  if (rows == files.end()) return true;
  fail(ExitCode::data,
       "{} holds one sample (a field of it is a scalar), {} holds rows of samples; a job reads files of one kind",
       scalar->path.string(), rows->path.string());
}

void count_rows(DataFile& file) {
  file.samples = file.fields.front().shape[0];
  for (std::size_t i = 1; i < file.fields.size(); ++i) {
    const std::int64_t rows = file.fields[i].shape[0];
    if (rows == file.samples) continue;
    fail(ExitCode::data,
         "{}: {} has {} rows, {} has {}: fields need as many rows. If each file holds one sample and its datasets have "
         "no sample dimension, write \"{}[sample]\" in data.fields",
         file.path.string(), file.fields.front().path, file.samples, file.fields[i].path, rows,
         file.fields.front().path);
  }
}

void check_against(const DataFile& file, const DataFile& first, std::span<const Field> fields, bool one_sample) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const DatasetInfo& info = file.fields[i];
    const Shape shape = one_sample ? info.shape : info.shape.without_first();
    if (shape != fields[i].shape) {
      fail(ExitCode::data, "{}: a sample has shape {}, in {} it has {}; all files of a job need the same",
           place(file, i), shape.text(), first.path.string(), fields[i].shape.text());
    }
    if (info.dtype != fields[i].dtype) {
      fail(ExitCode::data,
           "{}: is stored as {} (read as {}), in {} as {} (read as {}); all files of a job need the same",
           place(file, i), info.stored_type, name_of(info.dtype), first.path.string(), first.fields[i].stored_type,
           name_of(fields[i].dtype));
    }
  }
}

// A header can claim what no file holds: below this, bytes of samples and chunks never wrap.
void check_size(std::span<const Field> fields, const DataFile& first) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto elements = static_cast<std::uint64_t>(fields[i].shape.elements());
    if (elements <= most / size_of(fields[i].dtype)) continue;
    fail(ExitCode::data, "{}: one sample has shape {}, {} values of {}: more than 1 TiB", place(first, i),
         fields[i].shape.text(), elements, name_of(fields[i].dtype));
  }
}

}  // namespace

Dataset Dataset::open(std::span<const std::filesystem::path> patterns,
                      const std::map<std::string, std::string>& fields) {
  const std::vector<Wanted> wanted = wanted_fields(fields);
  Dataset data;
  for (const std::filesystem::path& path : expand(patterns)) data.files_.push_back(look_into(path, wanted));
  if (data.files_.empty()) fail(ExitCode::usage, "the job names no data files");
  data.one_sample_files_ = is_one_sample(wanted, data.files_);
  const DataFile& first = data.files_.front();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const DatasetInfo& info = first.fields[i];
    data.fields_.push_back(
        {wanted[i].field, data.one_sample_files_ ? info.shape : info.shape.without_first(), info.dtype});
  }
  check_size(data.fields_, first);
  std::int64_t next = 0;
  for (DataFile& file : data.files_) {
    check_against(file, first, data.fields_, data.one_sample_files_);
    file.samples = 1;
    if (!data.one_sample_files_) count_rows(file);
    file.first_sample = next;
    next += file.samples;
  }
  if (next == 0) fail(ExitCode::data, "{}: no samples in {} file(s)", first.path.string(), data.files_.size());
  return data;
}

}  // namespace trireme::io
