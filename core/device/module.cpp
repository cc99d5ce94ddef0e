// cuda_symbol and make_cuda: libtrireme_cuda.so is found and opened; each thing that can be missing has its own
// message.
#include "core/device/module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/base/error.h"

namespace trireme::device {

namespace {

constexpr const char* remedy = "use device = \"cpu\", or install a build of Trireme made with the CUDA Toolkit";

// Beside the library (or program) this code is in, then beside the program, whichever has it.
std::vector<std::filesystem::path> places() {
  if (const char* named = std::getenv(cuda_module_variable); named != nullptr && *named != '\0') return {named};
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

std::filesystem::path module_path() {
  const auto candidates = places();
  for (const auto& path : candidates) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  std::string looked;
  for (const auto& path : candidates) looked += (looked.empty() ? "" : ", ") + path.string();
  fail(ExitCode::usage, "cuda: no module {} (looked for {}); {}", cuda_module_name, looked, remedy);
}

// Stays open for good: kernels and objects of it live to the end of the process.
struct Module {
  std::filesystem::path path = module_path();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  Module() {
    if (handle == nullptr)
      fail(ExitCode::usage, "cuda: the module {} does not load: {}; {}", path.string(), loader_words(), remedy);
  }
};

}  // namespace

void* cuda_symbol(const char* name) {
  static const Module module;  // tried again where it threw
  void* symbol = dlsym(module.handle, name);
  if (symbol == nullptr)
    fail(ExitCode::usage, "cuda: the module {} is not one of this version: {}; {}", module.path.string(),
         loader_words(), remedy);
  return symbol;
}

std::shared_ptr<Device> make_cuda(int local_rank) {
  const auto make = reinterpret_cast<MakeDevice>(cuda_symbol(make_device_symbol));
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
