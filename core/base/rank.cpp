// The environment variables by which launchers number their processes.
#include "core/base/rank.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace trireme {
namespace {

std::optional<int> number(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

LaunchedAs launched_as() {
  // Open MPI's mpirun; MPICH's and Intel's; srun. Inside a job script Slurm sets SLURM_PROCID too, but no
  // SLURM_STEP_ID.
  constexpr const char* names[][3] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
                                      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE"}};
  for (const auto& [rank_name, size_name, local_name] : names) {
    const auto rank = number(rank_name), size = number(size_name);
    if (rank && size && *rank < *size) return {*rank, *size, std::max(1, number(local_name).value_or(*size)), true};
  }
  return {};
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown-host";
}

}  // namespace trireme
