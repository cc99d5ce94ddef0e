// Philox 4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy
// as 1, 2, 3", SC'11. No state: a number is a function of its address, so ranks, threads and restarts
// change nothing. The same arithmetic runs in host and device code.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TRIREME_HOST_DEVICE __host__ __device__
#else
#define TRIREME_HOST_DEVICE
#endif

namespace trireme {

struct Philox4 {
  std::uint32_t x[4];
};

// Ten rounds over counter (c0..c3) with key (k0, k1).
TRIREME_HOST_DEVICE constexpr Philox4 philox(Philox4 counter, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter.x[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter.x[2];
    counter = {{static_cast<std::uint32_t>(p1 >> 32) ^ counter.x[1] ^ k0, static_cast<std::uint32_t>(p1),
                static_cast<std::uint32_t>(p0 >> 32) ^ counter.x[3] ^ k1, static_cast<std::uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// Where a stream of random numbers starts: 128 bits that a tuple of coordinates was hashed to, by Philox itself.
struct RandomKey {
  std::uint32_t k0 = 0, k1 = 0, c2 = 0, c3 = 0;

  friend constexpr bool operator==(const RandomKey&, const RandomKey&) = default;
};

// Models: (seed, step, micro-batch, ordinal of the op). Transforms: (seed, purpose, position).
// Distinct `purpose` values keep the two apart.
enum class Purpose : std::uint32_t { model = 0, parameter = 1, shuffle = 2, transform = 3 };

TRIREME_HOST_DEVICE constexpr RandomKey random_key(std::uint64_t seed, Purpose purpose, std::uint64_t a,
                                                   std::uint32_t b, std::uint32_t c) {
  const Philox4 first = philox({{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32), b, c}},
                               static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  const Philox4 key = philox(first, static_cast<std::uint32_t>(purpose), 0x54726972u);
  return {key.x[0], key.x[1], key.x[2], key.x[3]};
}

// Numbers 4·block … 4·block + 3 of the stream.
TRIREME_HOST_DEVICE constexpr Philox4 random_block(const RandomKey& key, std::uint64_t block) {
  return philox({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), key.c2, key.c3}}, key.k0,
                key.k1);
}
// Number `index` of the stream.
TRIREME_HOST_DEVICE constexpr std::uint32_t random_bits(const RandomKey& key, std::uint64_t index) {
  return random_block(key, index / 4).x[index % 4];
}
// Uniform in [0, 1) with 24 bits, exact in f32.
TRIREME_HOST_DEVICE constexpr float to_uniform(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f);
}
// Uniform integer in [0, bound), bound ≥ 1, from 32 bits (Lemire 2019, eq. for multiply-shift, without rejection:
// bias below bound ÷ 2^32).
TRIREME_HOST_DEVICE constexpr std::uint32_t to_below(std::uint32_t bits, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{bits} * bound) >> 32);
}

}  // namespace trireme
