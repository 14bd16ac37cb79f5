// Twins of gpu.h's wrappers of tensor-core and copy instructions, by the register layouts of the PTX manual
// (mma.m16n8k16, ldmatrix), which gpu.h repeats.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "block.h"

namespace zt::emulation {

// The half with index 0 (low) or 1 of a register, as a float.
template <typename T>
float element(std::uint32_t pair, int half) {
  return static_cast<float>(std::bit_cast<T>(static_cast<std::uint16_t>(pair >> (16 * half))));
}

// What a lane brings to mma: its registers' halves, as numbers.
struct MmaOperands {
  std::array<std::array<float, 2>, 4> a;
  std::array<std::array<float, 2>, 2> b;
};

// Row `row` of a matrix of 16-bit elements, as a lane of ldmatrix brings it. Reading it here, before the lanes meet,
// shows a missing __syncwarp between the writing lane and this one.
inline std::array<std::uint16_t, 8> matrix_row(const void* row, const std::source_location& where) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
    fail_kernel("gives ldmatrix a row that is no multiple of 16", where);
  std::array<std::uint16_t, 8> elements;
  std::memcpy(elements.data(), row, sizeof elements);
  return elements;
}

inline void load_matrices(const char* name, std::uint32_t (&registers)[4], const void* row, bool transposed,
                          const std::source_location& where) {
  using Row = std::array<std::uint16_t, 8>;
  const auto major = static_cast<std::size_t>(lane() / 4);
  const auto pair = static_cast<std::size_t>(lane() % 4 * 2);
  const auto loaded = collective(name, 0xffffffffU, matrix_row(row, where), where, [&](const Meeting& meeting) {
    std::array<std::uint32_t, 4> result;
    for (std::size_t m = 0; m < 4; ++m) {
      const auto at = [&](std::size_t r, std::size_t column) -> std::uint32_t {
        return meeting.of<Row>(static_cast<int>(8 * m + r))[column];
      };
      result[m] =
          transposed ? at(pair, major) | at(pair + 1, major) << 16 : at(major, pair) | at(major, pair + 1) << 16;
    }
    return result;
  });
  for (std::size_t m = 0; m < 4; ++m) registers[m] = loaded[m];
}

}  // namespace zt::emulation

namespace zt::gpu {

// Products are exact, sums are taken in double and rounded once: no claim about a tensor core's own rounding.
template <typename T>
void mma_m16n8k16(float (&accumulator)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  std::source_location where = std::source_location::current()) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  using emulation::Meeting;
  using emulation::MmaOperands;
  const int group = emulation::lane() / 4;
  const int pair = emulation::lane() % 4 * 2;
  MmaOperands mine;
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t r = 0; r < 4; ++r) mine.a[r][h] = emulation::element<T>(a[r], static_cast<int>(h));
    for (std::size_t r = 0; r < 2; ++r) mine.b[r][h] = emulation::element<T>(b[r], static_cast<int>(h));
  }
  const auto sums = emulation::collective("mma_m16n8k16", 0xffffffffU, mine, where, [&](const Meeting& meeting) {
    std::array<double, 4> result = {};
    for (int holder = 0; holder < 4; ++holder) {  // the lane of a group of four that has k = 2 holder and on, + 8
      const auto from_a = meeting.of<MmaOperands>(4 * group + holder);
      for (std::size_t column = 0; column < 2; ++column) {
        const auto from_b = meeting.of<MmaOperands>(4 * (pair + static_cast<int>(column)) + holder);
        for (std::size_t upper_k = 0; upper_k < 2; ++upper_k) {
          for (std::size_t h = 0; h < 2; ++h) {
            const double b_value = from_b.b[upper_k][h];
            result[column] += from_a.a[2 * upper_k][h] * b_value;
            result[2 + column] += from_a.a[2 * upper_k + 1][h] * b_value;
          }
        }
      }
    }
    return result;
  });
  for (std::size_t i = 0; i < 4; ++i) accumulator[i] = static_cast<float>(accumulator[i] + sums[i]);
}

inline void ldmatrix_x4(std::uint32_t (&registers)[4], const void* row,
                        std::source_location where = std::source_location::current()) {
  emulation::load_matrices("ldmatrix_x4", registers, row, false, where);
}

inline void ldmatrix_x4_transposed(std::uint32_t (&registers)[4], const void* row,
                                   std::source_location where = std::source_location::current()) {
  emulation::load_matrices("ldmatrix_x4_transposed", registers, row, true, where);
}

inline void cp_async_16(void* shared, const void* global, int valid_bytes = 16,
                        std::source_location where = std::source_location::current()) {
  emulation::queue_copy(shared, global, valid_bytes, where);
}
inline void cp_async_commit() { emulation::commit_copies(); }
template <int Groups>
void cp_async_wait() {
  emulation::wait_for_copies(Groups);
}

inline std::uint32_t opaque(std::uint32_t value) { return value; }

inline float exp2_fast(float value) {
  const float result = std::exp2(value);
  return result < 0x1p-126F ? 0.0F : result;  // NaN stays
}

}  // namespace zt::gpu
