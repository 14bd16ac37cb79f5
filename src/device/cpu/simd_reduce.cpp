// Sums: over rows (gradients of biases), exact sums of values and squares, checksums.
#include <atomic>
#include <bit>
#include <cmath>
#include <new>

#include "core/random.h"
#include "device/cpu/simd.h"
#include "device/cpu/simd_layout.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_reduce.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_rows-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

// partial[0 ... columns) = sum over `rows` rows, one after the other.
template <typename T>
void add_rows(const T* in, std::int64_t stride, std::int64_t rows, std::int64_t columns, float* partial) {
  const F32 d;
  for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR { store(d, hn::Zero(d), partial + i, extent); });
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {  // the partial sums are fetched once for four rows
    const T* row = in + r * stride;
    for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
      VF sum = hn::Add(load(d, partial + i, extent), load(d, row + i, extent));
      sum = hn::Add(sum, load(d, row + stride + i, extent));
      sum = hn::Add(sum, load(d, row + 2 * stride + i, extent));
      sum = hn::Add(sum, load(d, row + 3 * stride + i, extent));
      store(d, sum, partial + i, extent);
    });
  }
  for (; r < rows; ++r) {
    const T* row = in + r * stride;
    for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
      store(d, hn::Add(load(d, partial + i, extent), load(d, row + i, extent)), partial + i, extent);
    });
  }
}

void bias_gradient(const BiasGradient& op, Context& context) {
  constexpr std::int64_t columns_per_task = 1024;
  const std::int64_t chunks = row_chunks(op.rows);
  const std::int64_t blocks = ceil_div(op.columns, columns_per_task);
  auto* partials = reinterpret_cast<float*>(context.shared);
  const std::int64_t stride = partial_stride(op.columns);
  context.pool.for_each(chunks * blocks, [&](std::int64_t task, int) {
    const std::int64_t chunk = task / blocks;
    const std::int64_t column = task % blocks * columns_per_task;
    const std::int64_t row = chunk * rows_per_chunk;
    dispatch(op.d_out.dtype, [&]<typename T>(T*) {
      add_rows(op.d_out.as<T>() + row * op.columns + column, op.columns, smaller(rows_per_chunk, op.rows - row),
               smaller(columns_per_task, op.columns - column), partials + chunk * stride + column);
    });
  });
  add_partials(context, partials, stride, chunks, op.d_bias, op.columns, op.add);
}

// ---- Sum of squares

constexpr std::int64_t block = 128;

// The sum of the squares of `block` elements: element i belongs to partial sum i % 8. Squares of floats are exact in
// double, so fused multiplication and addition rounds like separate ones.
template <typename T>
HWY_INLINE double sum_of_block(const T* in) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> df;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  constexpr std::size_t vectors = 8 / lanes;
  HWY_ALIGN double partial[8];
  hn::Vec<decltype(d)> sums[vectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (std::int64_t i = 0; i < block; i += 8) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto x = hn::PromoteTo(d, load(df, in + i + v * lanes));
      sums[v] = hn::MulAdd(x, x, sums[v]);
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) hn::Store(sums[v], d, partial + v * lanes);
  return ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
         ((partial[4] + partial[5]) + (partial[6] + partial[7]));
}

// The same of several blocks side by side: as many chains of additions as the processor can overlap, and the partial
// sums of two blocks are added in the same registers, in the order that sum_of_block has.
constexpr std::int64_t blocks_at_once = 4;
#if HWY_TARGET == HWY_AVX3
template <typename T>
HWY_INLINE void sums_of_blocks(const T* in, double* out) {
  const hn::FixedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Half<decltype(d)> half;
  const hn::Half<decltype(half)> quarter;
  hn::Vec<decltype(d)> sums[blocks_at_once];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (std::int64_t i = 0; i < block; i += 8) {
    for (std::int64_t b = 0; b < blocks_at_once; ++b) {
      const auto x = hn::PromoteTo(d, load(df, in + b * block + i));
      sums[b] = hn::MulAdd(x, x, sums[b]);
    }
  }
  for (std::int64_t b = 0; b < blocks_at_once; b += 2) {
    // Pairs 0 + 1, 2 + 3, 4 + 5, 6 + 7, of the two blocks in turn.
    const auto pairs =
        hn::Add(hn::InterleaveLower(d, sums[b], sums[b + 1]), hn::InterleaveUpper(d, sums[b], sums[b + 1]));
    const auto low = hn::LowerHalf(half, pairs);
    const auto high = hn::UpperHalf(half, pairs);
    const auto first = hn::Add(hn::LowerHalf(quarter, low), hn::UpperHalf(quarter, low));
    const auto second = hn::Add(hn::LowerHalf(quarter, high), hn::UpperHalf(quarter, high));
    hn::StoreU(hn::Add(first, second), quarter, out + b);
  }
}
#else
template <typename T>
HWY_INLINE void sums_of_blocks(const T* in, double* out) {
  for (std::int64_t b = 0; b < blocks_at_once; ++b) out[b] = sum_of_block(in + b * block);
}
#endif

template <typename T>
std::int64_t count_not_finite(const T* in, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += std::isfinite(to_float(in[i])) ? 0 : 1;
  return count;
}

template <typename T>
void add_squares(const T* in, std::int64_t count, Accumulator& out) {
  // A finite float's square is far below double's largest, so only non-finite elements make the sum so.
  const auto add = [&](double sum, const T* from, std::int64_t n) {
    if (std::isfinite(sum)) {
      exact_sum_add(out.limbs, sum);
    } else {
      out.not_finite += count_not_finite(from, n);
    }
  };
  std::int64_t first = 0;
  for (; first + blocks_at_once * block <= count; first += blocks_at_once * block) {
    double sums[blocks_at_once];
    sums_of_blocks(in + first, sums);
    for (std::int64_t b = 0; b < blocks_at_once; ++b) add(sums[b], in + first + b * block, block);
  }
  for (; first < count; first += block) {
    const std::int64_t n = smaller(block, count - first);
    if (n == block) {
      add(sum_of_block(in + first), in + first, n);
    } else {
      T padded[block] = {};
      std::memcpy(padded, in + first, static_cast<std::size_t>(n) * sizeof(T));
      add(sum_of_block(padded), in + first, n);
    }
  }
}

void add_values(const float* in, std::int64_t count, Accumulator& out) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isfinite(in[i])) {
      exact_sum_add(out.limbs, static_cast<double>(in[i]));
    } else {
      ++out.not_finite;
    }
  }
}

// Each worker adds to its own accumulator in its scratch; integers are added in any order.
template <class Function>
void accumulate(Context& context, std::int64_t count, Accumulator& out, const Function& function) {
  static_assert(elements_per_task % block == 0);
  for (int w = 0; w < context.pool.threads(); ++w) new (context.of(w)) Accumulator{};
  context.pool.for_each(ceil_div(count, elements_per_task), [&](std::int64_t task, int worker) {
    const std::int64_t first = task * elements_per_task;
    auto& own = *std::launder(reinterpret_cast<Accumulator*>(context.of(worker)));
    function(first, smaller(elements_per_task, count - first), own);
  });
  for (int w = 0; w < context.pool.threads(); ++w) {
    const auto& own = *std::launder(reinterpret_cast<const Accumulator*>(context.of(w)));
    for (std::size_t i = 0; i < own.limbs.size(); ++i) out.limbs[i] += own.limbs[i];
    out.not_finite += own.not_finite;
  }
}

void sum_squares(const SumSquares& op, Context& context) {
  accumulate(context, op.in.count, *op.out, [&](std::int64_t first, std::int64_t n, Accumulator& own) {
    dispatch(op.in.dtype, [&]<typename T>(T*) { add_squares(op.in.as<T>() + first, n, own); });
  });
}

void sum_values(const SumValues& op, Context& context) {
  accumulate(context, op.count, *op.out,
             [&](std::int64_t first, std::int64_t n, Accumulator& own) { add_values(op.in + first, n, own); });
}

// ---- Checksum. Plain integer code: the compiler makes vectors of it where 64-bit products are in the set.

void checksum(const Checksum& op, Context& context) {
  std::atomic<std::uint64_t> total = 0;
  for_ranges(context, op.in.count, elements_per_task, [&](std::int64_t begin, std::int64_t count) {
    float buffer[piece];
    std::uint64_t sum = 0;
    for_pieces(count, [&](std::int64_t offset, std::int64_t n) HWY_ATTR {
      const float* values = as_floats(op.in, begin + offset, n, buffer);
      const auto first = static_cast<std::uint64_t>(op.first_element + begin + offset);
      const std::uint64_t tensor = op.tensor_index << 40;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::uint64_t place = mix64(tensor ^ (first + static_cast<std::uint64_t>(i)));
        sum += mix64(place ^ std::bit_cast<std::uint32_t>(values[i]));
      }
    });
    total.fetch_add(sum, std::memory_order_relaxed);
  });
  *op.out += total;
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(bias_gradient);
HWY_EXPORT(sum_squares);
HWY_EXPORT(sum_values);
HWY_EXPORT(checksum);

WorkspaceNeed workspace_of(const BiasGradient& op) {
  return {.per_worker = 0, .shared = partials_bytes(op.rows, op.columns)};
}
void run(const BiasGradient& op, Context& context) { HWY_DYNAMIC_DISPATCH(bias_gradient)(op, context); }

static constexpr WorkspaceNeed one_accumulator = {.per_worker = (sizeof(Accumulator) + 63) / 64 * 64, .shared = 0};

WorkspaceNeed workspace_of(const SumSquares&) { return one_accumulator; }
void run(const SumSquares& op, Context& context) { HWY_DYNAMIC_DISPATCH(sum_squares)(op, context); }

WorkspaceNeed workspace_of(const SumValues&) { return one_accumulator; }
void run(const SumValues& op, Context& context) { HWY_DYNAMIC_DISPATCH(sum_values)(op, context); }

WorkspaceNeed workspace_of(const Checksum&) { return {}; }
void run(const Checksum& op, Context& context) { HWY_DYNAMIC_DISPATCH(checksum)(op, context); }

}  // namespace zt::cpu
#endif
