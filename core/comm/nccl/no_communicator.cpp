// Communicator of a build without NCCL: one rank alone.
#include "core/base/error.h"
#include "core/comm/nccl/communicator.h"

namespace trireme::comm {

struct Communicator::State {};

std::string Communicator::unique_id() {
  fail(ExitCode::usage,
       "cuda: this build of Trireme has no NCCL (there was no nccl.h), so it runs one rank; build with NCCL, "
       "start one rank, or use device = \"cpu\"");
}
std::string Communicator::version() { return "none"; }
Communicator::Communicator(const std::string&, int, int) { (void)unique_id(); }
Communicator::~Communicator() = default;
void Communicator::exchange(std::span<const Message>, int, device::Stream&) {}
void Communicator::sum(std::span<float>, device::Stream&) {}
void Communicator::sum(std::span<double>, device::Stream&) {}
std::string Communicator::failure() noexcept { return {}; }
void Communicator::abort() noexcept {}
void Communicator::finish() {}

}  // namespace trireme::comm
