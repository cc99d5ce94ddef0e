// `trireme version`: this build and this machine, as bug reports need them.
#include <dlfcn.h>

#include <array>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/backend/cpu/cpu.h"
#include "core/backend/cuda/cuda.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/threads.h"
#include "core/base/version.h"
#include "core/cli/cli.h"
#include "core/device/module.h"
#include "io/hdf5/hdf5.h"

namespace trireme::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

// MPI_Get_library_version may be called before MPI_Init; looked up by name, since mpi.h stays in comm/mpi.
std::string mpi() {
  using Function = int (*)(char*, int*);
  const auto get = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (get == nullptr) return "none (built for one rank)";
  std::vector<char> text(8193);  // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI, 8,192 in MPICH
  int length = 0;
  if (get(text.data(), &length) != 0) return "unknown";
  const std::string words = text.data();
  return words.substr(0, words.find_first_of(",\n"));
}

std::string cuda() {
  try {
    const std::string name = device::make_cuda(0)->name();
    const auto words = reinterpret_cast<backend::DescribeCuda>(device::cuda_symbol(backend::cuda_description_symbol));
    return name + ", " + words();
  } catch (const Error& error) {
    return std::string("none: ") + error.what();
  }
}

// Of the instruction sets that kernels choose by, those that this processor has.
std::vector<std::string> cpu_features() {
  const std::set<std::string> wanted{"avx2",        "fma",      "f16c",     "avx512f", "avx512bw", "avx512_vnni",
                                     "avx512_bf16", "amx_tile", "amx_bf16", "asimd",   "sve"};
  std::ifstream file("/proc/cpuinfo");
  std::vector<std::string> found;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) {
      if (wanted.count(word) != 0) found.push_back(word);
    }
    break;
  }
  return found;
}

int show(bool json) {
  const std::vector<std::string> features = cpu_features();
  std::string joined;
  for (const std::string& feature : features) {
    if (!joined.empty()) joined += ' ';
    joined += feature;
  }
  const std::string name = device::make_cpu()->name();
  const Json document{{"trireme", version()},
                      {"compiler", compiler()},
                      {"mpi", mpi()},
                      {"hdf5", io::hdf5_version()},
                      {"cpu_backend", backend::cpu_description()},
                      {"cuda", cuda()},
                      {"cpu", name},
                      {"cpu_features", features},
                      {"cores", usable_cores()}};
  if (json) {
    log::info("{}", document.dump(2));
    return static_cast<int>(ExitCode::done);
  }
  log::info("trireme {}", version());
  for (const auto& [key, value] : document.items()) {
    if (key == "trireme") continue;
    log::info("  {:13}{}", key,
              key == "cpu_features" ? joined
              : value.is_string()   ? value.get<std::string>()
                                    : value.dump());
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace

void add_version(Command program) {
  Command command = program.add("version", "Versions of Trireme and of what it runs on");
  command.footer("Example:\n  trireme version --json");
  const auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "print one JSON document");
  command.does([json] { return show(*json); });
}

}  // namespace trireme::cli
