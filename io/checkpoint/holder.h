// Who holds a lease: a process, known well enough to tell whether it is dead. Inside io/checkpoint only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace trireme::io {

struct Holder {
  std::string host;  // for people
  std::string boot;  // boot id and pid name space: only with the same ones a pid means the same process
  std::int64_t pid = 0;
  std::uint64_t started = 0;  // clock ticks after boot: a pid that was used again differs
  std::string slurm_job;      // empty: none
  std::int64_t slurm_restarts = 0;
  std::string attempt;
  std::string nonce;  // tells two leases of one process apart
  std::uint64_t renewals = 0;
};

[[nodiscard]] Holder this_process(const std::string& attempt);
// Surely dead: its process is gone (or a zombie) on this very host, or its Slurm job was started again as us.
[[nodiscard]] bool is_dead(const Holder& holder, const Holder& us);
[[nodiscard]] std::string describe(const Holder& holder);  // "node17, pid 4711 (Slurm job 12), attempt a3f"

// lease.json. Read: nothing where there is no file or no whole one.
[[nodiscard]] std::optional<Holder> read_holder(const std::filesystem::path& file);
// By rename, but not flushed: after a crash of the machine nobody holds it.
void write_holder(const std::filesystem::path& file, const Holder& holder);

}  // namespace trireme::io
