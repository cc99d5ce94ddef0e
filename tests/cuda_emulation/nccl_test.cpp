// NCCL's emulation between two and more processes: forked for each test, so this program itself never touches the
// device.
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "tests/cuda_emulation/sample_kernels.h"
#include "tests/cuda_emulation/seeds.h"

namespace trireme::cuda_emulation {
namespace {

constexpr std::size_t count = 100'000;  // more than a channel holds at once

struct Rank {
  int number, size;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
};

// Each of `size` processes runs the program; returns how many said that all is right.
int right_ranks(int size, const std::function<bool(Rank&)>& program, bool own_devices = true) {
  std::vector<pid_t> children;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      Rank me{rank, size, id};
      cudaSetDevice(own_devices ? rank : 0);
      const bool right = program(me);
      std::fflush(nullptr);
      _exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  int right = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    right += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  return right;
}

bool join(Rank& rank) { return ncclCommInitRank(&rank.comm, rank.size, rank.id, rank.number) == ncclSuccess; }

std::vector<float> fetch(const OnDevice& memory, cudaStream_t stream) {
  std::vector<float> host(memory.bytes / sizeof(float));
  cudaMemcpyAsync(host.data(), memory.data, memory.bytes, cudaMemcpyDefault, stream);
  return host;
}
bool all_are(const std::vector<float>& values, float value) {
  for (const float each : values)
    if (!(each == value)) return false;
  return true;
}

TEST(Nccl, MessagesAndSumsArriveUnderAllModes) {
  EXPECT_EQ(right_ranks(3,
                        [](Rank& rank) {
                          if (!join(rank)) return false;
                          bool right = true;
                          for (std::uint64_t seed = 1; seed <= 8; ++seed) {
                            begin(seed, mode_of(seed));
                            SampleStream stream;
                            OnDevice mine(count), theirs(count), small(5);
                            const int next = (rank.number + 1) % rank.size, last = (rank.number + 2) % rank.size;
                            fill(stream.stream, mine.data, static_cast<float>(rank.number + 1), count);
                            fill(stream.stream, small.data, static_cast<float>(rank.number), 5);
                            ncclGroupStart();  // two messages to one peer keep their order
                            ncclSend(mine.data, count, ncclFloat32, next, rank.comm, stream.stream);
                            ncclRecv(theirs.data, count, ncclFloat32, last, rank.comm, stream.stream);
                            ncclSend(small.data, 20, ncclUint8, next, rank.comm, stream.stream);
                            ncclRecv(small.data, 20, ncclUint8, last, rank.comm, stream.stream);
                            ncclGroupEnd();
                            ncclAllReduce(mine.data, mine.data, count, ncclFloat32, ncclSum, rank.comm, stream.stream);
                            right = right && all_are(fetch(theirs, stream.stream), static_cast<float>(last + 1)) &&
                                    all_are(fetch(small, stream.stream), static_cast<float>(last)) &&
                                    all_are(fetch(mine, stream.stream), 6) && take_finding().empty();
                          }
                          return right && ncclCommDestroy(rank.comm) == ncclSuccess;
                        }),
            3);
}

// 1 + 2⁻²⁴ + 2⁻²⁴ depends on the order; all ranks have the same.
TEST(Nccl, SumsHaveTheSameBitsOnAllRanksInAnOrderOfTheSeed) {
  const auto sum_of_seed = [](std::uint64_t seed, float& first) {
    std::array<int, 2> pipes{};
    if (pipe(pipes.data()) != 0) return 0;
    const int right = right_ranks(3, [&](Rank& rank) {
      begin(seed, Mode::random);
      if (!join(rank)) return false;
      SampleStream stream;
      OnDevice values(64);
      fill(stream.stream, values.data, rank.number == 0 ? 1.0f : 0x1p-24f, 64);
      ncclAllReduce(values.data, values.data, 64, ncclFloat32, ncclSum, rank.comm, stream.stream);
      const float result = fetch(values, stream.stream)[0];
      return write(pipes[1], &result, sizeof result) == sizeof result;
    });
    std::array<float, 3> results{};
    if (read(pipes[0], results.data(), sizeof results) != sizeof results) return 0;
    close(pipes[0]);
    close(pipes[1]);
    first = results[0];
    return right == 3 && results[0] == results[1] && results[1] == results[2] ? 3 : 0;
  };
  bool low = false, high = false;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    float result = 0;
    ASSERT_EQ(sum_of_seed(seed, result), 3) << seed;
    low = low || result == 1.0f;
    high = high || result > 1.0f;
  }
  EXPECT_TRUE(low && high);
}

// What a rank sends before its kernel has written it.
TEST(Nccl, SendThatDoesNotWaitForItsKernelIsCaught) {
  const auto program = [](Rank& rank, bool waits) {
    if (!join(rank)) return false;
    unsigned caught = 0;
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      bool right = true;
      for (const Mode mode : modes) {
        begin(seed, mode);
        SampleStream compute, comm;
        SampleEvent written;
        OnDevice values(64);
        for (float step = 1; step <= 4; ++step) {
          fill(compute.stream, values.data, step, 64);
          if (waits) {
            cudaEventRecord(written.event, compute.stream);
            cudaStreamWaitEvent(comm.stream, written.event, 0);
          }
          ncclAllReduce(values.data, values.data, 64, ncclFloat32, ncclSum, rank.comm, comm.stream);
          cudaStreamSynchronize(comm.stream);
          cudaStreamSynchronize(compute.stream);
          right = all_are(fetch(values, comm.stream), 2 * step) && right;
        }
        right = take_finding().empty() && right;
      }
      caught += right ? 0 : 1;
    }
    return waits ? caught == 0 : caught >= 23;  // 9 of 10
  };
  EXPECT_EQ(right_ranks(2, [&](Rank& rank) { return program(rank, true); }), 2);
  EXPECT_EQ(right_ranks(2, [&](Rank& rank) { return program(rank, false); }), 2);
}

// The error tells; the stream goes on only when the communicator is aborted.
bool is_told_and_ends(Rank& rank, std::size_t elements, ncclDataType_t type) {
  SampleStream stream;
  OnDevice values(256);
  if (!join(rank)) return false;
  ncclAllReduce(values.data, values.data, elements, type, ncclSum, rank.comm, stream.stream);
  ncclResult_t met = ncclSuccess;
  for (int round = 0; round < 3000 && met == ncclSuccess; ++round) {
    ncclCommGetAsyncError(rank.comm, &met);
    static_cast<void>(cudaStreamQuery(stream.stream));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool told = met == ncclInvalidUsage && !std::string(ncclGetLastError(rank.comm)).empty();
  const bool waits = cudaStreamQuery(stream.stream) == cudaErrorNotReady;
  ncclCommAbort(rank.comm);
  return told && waits && cudaStreamSynchronize(stream.stream) == cudaSuccess;
}
TEST(Nccl, DifferentSizesAreAnAsynchronousError) {
  EXPECT_EQ(right_ranks(2, [](Rank& rank) { return is_told_and_ends(rank, rank.number == 0 ? 64 : 65, ncclFloat32); }),
            2);
}
TEST(Nccl, DifferentTypesAreAnAsynchronousError) {
  EXPECT_EQ(right_ranks(
                2, [](Rank& rank) { return is_told_and_ends(rank, 64, rank.number == 0 ? ncclFloat32 : ncclFloat64); }),
            2);
}

TEST(Nccl, AbortEndsTheWaitForAPeerThatNeverComes) {
  EXPECT_EQ(right_ranks(2,
                        [](Rank& rank) {
                          if (!join(rank)) return false;
                          if (rank.number == 1) return true;
                          SampleStream stream;
                          OnDevice values(64);
                          ncclRecv(values.data, 64, ncclFloat32, 1, rank.comm, stream.stream);
                          std::thread watchdog([&] {
                            std::this_thread::sleep_for(std::chrono::milliseconds(200));
                            ncclCommAbort(rank.comm);
                          });
                          const cudaError_t ended = cudaStreamSynchronize(stream.stream);
                          watchdog.join();
                          return ended == cudaSuccess && take_finding().empty();
                        }),
            2);
}

TEST(Nccl, TwoRanksOnOneDeviceAreRefused) {
  EXPECT_EQ(right_ranks(
                2,
                [](Rank& rank) {
                  return ncclCommInitRank(&rank.comm, rank.size, rank.id, rank.number) == ncclInvalidUsage &&
                         std::string(ncclGetLastError(nullptr)).find("both on device 0") != std::string::npos;
                },
                false),
            2);
}

TEST(Nccl, HostMemoryIsRefused) {
  EXPECT_EQ(right_ranks(1,
                        [](Rank& rank) {
                          SampleStream stream;
                          std::vector<float> pageable(64);
                          return join(rank) &&
                                 ncclAllReduce(pageable.data(), pageable.data(), 64, ncclFloat32, ncclSum, rank.comm,
                                               stream.stream) == ncclUnhandledCudaError &&
                                 take_finding().find("ncclAllReduce") != std::string::npos;
                        }),
            1);
}

}  // namespace
}  // namespace trireme::cuda_emulation
