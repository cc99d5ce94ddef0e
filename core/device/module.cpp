// make_cuda: finds and opens libtrireme_cuda.so; each thing that can be missing has its own message.
#include "core/device/module.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "core/base/error.h"

namespace trireme::device {

namespace {

// Beside the library (or program) this code is in, then beside the program, whichever has it.
std::vector<std::filesystem::path> places() {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&make_cpu), &here) != 0 && here.dli_fname != nullptr)
    found.push_back(std::filesystem::absolute(here.dli_fname, ignored).parent_path() / cuda_module_name);
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!ignored) found.push_back(program.parent_path() / cuda_module_name);
  return found;
}

std::string loader_words() {
  const char* words = dlerror();
  return words != nullptr ? words : "no reason given";
}

// The module stays open for good: kernels and objects of it live to the end of the process.
MakeDevice open_module() {
  static constexpr const char* remedy =
      "use device = \"cpu\", or install a build of Trireme made with the CUDA Toolkit";
  const auto candidates = places();
  for (const auto& path : candidates) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr)
      fail(ExitCode::usage, "cuda: the module {} does not load: {}; {}", path.string(), loader_words(), remedy);
    void* symbol = dlsym(module, make_device_symbol);
    if (symbol == nullptr)
      fail(ExitCode::usage, "cuda: the module {} is not one of this version: {}; {}", path.string(), loader_words(),
           remedy);
    return reinterpret_cast<MakeDevice>(symbol);
  }
  std::string looked;
  for (const auto& path : candidates) looked += (looked.empty() ? "" : ", ") + path.string();
  fail(ExitCode::usage, "cuda: no module {} (looked for {}); {}", cuda_module_name, looked, remedy);
}

}  // namespace

std::shared_ptr<Device> make_cuda(int local_rank) {
  static const MakeDevice make = open_module();
  try {
    return make(local_rank);
  } catch (const Error& error) {
    // Without a driver the CUDA run time only says that the driver is too old.
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL); driver != nullptr) {
      dlclose(driver);
      throw;
    }
    fail(ExitCode::usage, "cuda: no NVIDIA driver on this host: {} ({}); use device = \"cpu\", or install the driver",
         loader_words(), error.what());
  }
}

}  // namespace trireme::device
