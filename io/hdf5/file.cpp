// A file as a whole: its datasets, its attributes, its end.
#include <algorithm>

#include "core/base/error.h"
#include "io/hdf5/file_impl.h"

namespace trireme::io {
namespace {

herr_t collect_dataset(hid_t /*root*/, const char* name, const H5O_info_t* object, void* names) {
  if (object->type == H5O_TYPE_DATASET)
    static_cast<std::vector<std::string>*>(names)->push_back(std::string("/") + name);
  return 0;
}

// Attributes live in an object header, which takes 64 KiB.
constexpr std::size_t largest_attribute = 60000;

TypeHandle text_type(std::size_t size) {
  TypeHandle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), size);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

}  // namespace

OpenHdf5File::OpenHdf5File(std::filesystem::path path, FileHandle file)
    : path_(std::move(path)), file_(std::move(file)) {}

OpenHdf5File::~OpenHdf5File() {
  const Hdf5Lock lock;
  opened_.clear();
  static_cast<void>(file_.close());
}

std::string OpenHdf5File::where(const std::string& dataset) const { return path_.string() + ":" + dataset; }

std::vector<std::string> OpenHdf5File::datasets() const {
  const Hdf5Lock lock;
  std::vector<std::string> names;
#if H5_VERSION_GE(1, 12, 0)
  const herr_t status = H5Ovisit(file_.get(), H5_INDEX_NAME, H5_ITER_NATIVE, collect_dataset, &names, H5O_INFO_BASIC);
#else
  const herr_t status = H5Ovisit(file_.get(), H5_INDEX_NAME, H5_ITER_NATIVE, collect_dataset, &names);
#endif
  if (status < 0) fail_hdf5(path_.string(), "its datasets cannot be listed");
  std::sort(names.begin(), names.end());
  return names;
}

bool OpenHdf5File::has(const std::string& dataset) const {
  const Hdf5Lock lock;
  if (!file_ || dataset.empty() || dataset == "/") return false;
  // H5Lexists wants every group on the way to exist.
  for (std::size_t end = dataset.find('/', 1);; end = dataset.find('/', end + 1)) {
    if (H5Lexists(file_.get(), dataset.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) break;
  }
  return DatasetHandle(H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT)).operator bool();
}

void OpenHdf5File::write_attribute(const std::string& name, const std::string& text) {
  const Hdf5Lock lock;
  if (text.size() > largest_attribute) {
    fail(ExitCode::internal, "{}: attribute '{}' has {} bytes, at most {} fit", path_.string(), name, text.size(),
         largest_attribute);
  }
  if (H5Aexists(file_.get(), name.c_str()) > 0) H5Adelete(file_.get(), name.c_str());
  const TypeHandle type = text_type(std::max<std::size_t>(text.size(), 1));
  const SpaceHandle space(H5Screate(H5S_SCALAR));
  const AttributeHandle attribute(
      H5Acreate2(file_.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute || H5Awrite(attribute.get(), type.get(), text.c_str()) < 0) {
    fail_hdf5(path_.string(), fmt::format("attribute '{}' cannot be written", name));
  }
}

std::optional<std::string> OpenHdf5File::attribute(const std::string& name) const {
  const Hdf5Lock lock;
  if (H5Aexists(file_.get(), name.c_str()) <= 0) return std::nullopt;
  const std::string what = fmt::format("attribute '{}' cannot be read", name);
  const AttributeHandle attribute(H5Aopen(file_.get(), name.c_str(), H5P_DEFAULT));
  if (!attribute) fail_hdf5(path_.string(), what);
  const TypeHandle stored(H5Aget_type(attribute.get()));
  const SpaceHandle space(H5Aget_space(attribute.get()));
  if (H5Tget_class(stored.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1) {
    fail(ExitCode::data, "{}: attribute '{}' is not one text", path_.string(), name);
  }
  if (H5Tis_variable_str(stored.get()) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute.get(), stored.get(), &text) < 0) fail_hdf5(path_.string(), what);
    std::string copy = text != nullptr ? text : "";
    H5free_memory(text);
    return copy;
  }
  std::string text(H5Tget_size(stored.get()), '\0');
  if (H5Aread(attribute.get(), stored.get(), text.data()) < 0) fail_hdf5(path_.string(), what);
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

void OpenHdf5File::close() {
  const Hdf5Lock lock;
  if (!file_) return;
  opened_.clear();
  const bool flushed = H5Fflush(file_.get(), H5F_SCOPE_LOCAL) >= 0;
  const std::string words = flushed ? "" : hdf5_words().text;
  const bool closed = file_.close();
  if (!flushed) fail(ExitCode::io, "{}: cannot be written: {}", path_.string(), words);
  if (!closed) fail(ExitCode::io, "{}: cannot be closed: {}", path_.string(), hdf5_words().text);
}

}  // namespace trireme::io
