// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). The number at an index is a function of key and index alone: no state, no rank, no thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace zt {

// Mixes 64 bits (the finalizer of SplitMix64, Steele et al. 2014).
constexpr std::uint64_t mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// Derives an independent key from a key and a number or a name.
constexpr std::uint64_t derive_key(std::uint64_t key, std::uint64_t number) { return mix64(mix64(key) ^ number); }
constexpr std::uint64_t derive_key(std::uint64_t key, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, 64 bits
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return derive_key(key, hash);
}

// Four 32-bit words for one 64-bit counter.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter) {
  std::array<std::uint32_t, 4> x = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0,
                                    0};
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * x[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * x[2];
    x = {static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return x;
}

// The 32 random bits of element `index`: word index % 4 of block index / 4.
constexpr std::uint32_t random_bits(std::uint64_t key, std::uint64_t index) {
  return philox(key, index / 4)[index % 4];
}

// Uniform in [0, 1): the upper 24 bits.
constexpr float uniform_from_bits(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

}  // namespace zt
