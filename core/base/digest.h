// SHA-256 (FIPS 180-4) for state_sha256, and XXH3-64 for blocks and start-up agreement.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace trireme {

class Sha256 {
 public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::string hex();  // 64 digits; ends the digest

 private:
  void compress(const std::byte* block);
  std::array<std::uint32_t, 8> state_;
  std::array<std::byte, 64> pending_{};
  std::uint64_t length_ = 0;
};

[[nodiscard]] std::uint64_t xxh3(std::span<const std::byte> bytes);
// XXH3-64 of a file's bytes, as 16 hex digits.
[[nodiscard]] std::string xxh3_of_file(const std::string& path);

template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& container) {
  return std::as_bytes(std::span(container));
}

}  // namespace trireme
