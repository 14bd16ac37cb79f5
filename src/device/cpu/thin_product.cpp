#include "device/cpu/thin_product.h"

#include <stdexcept>
#include <type_traits>

#include "device/cpu/panels.h"
#include "device/cpu/product.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/thin_product.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_few_rows-inl.h"
#include "hwy/highway.h"

#ifndef ZT_THIN_PRODUCT_OPERANDS_
#define ZT_THIN_PRODUCT_OPERANDS_
namespace zt::cpu {
// What the kernels read: the few rows in fp32 (converted, where they came in 16 bits), the many as they are.
struct ThinOperands {
  const float* a = nullptr;
  std::int64_t lda = 0;
  ConstTensorView b;
  std::int64_t ldb = 0;
  const float* bias = nullptr;
};
}  // namespace zt::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

constexpr std::int64_t elements_a_task = 16384;  // of the large operand: about a microsecond's work
constexpr std::int64_t tile_floats = thin_extent * block_columns;

// Calls function(I) with the constant I = value, 1 <= value <= thin_extent.
template <int I = 1, class Function>
HWY_INLINE void with_constant(std::int64_t value, const Function& function) {
  if (value == I) {
    function(std::integral_constant<int, I>());
  } else if constexpr (I < thin_extent) {
    with_constant<I + 1>(value, function);
  }
}

// The rows of b that are read at once lie a stretch of rows apart: each is then the next of a stream of whole pages,
// which the processor fetches ahead. Short rows side by side are many streams that end at once: half as fast.
template <int M, typename T>
void dot_product_block(const ThinOperands& in, std::int64_t k, std::int64_t column, std::int64_t columns, float* tile,
                       std::int64_t tile_stride) {
  constexpr int at_once = M == 1 ? 8 : M <= 6 ? 4 : 2;  // as many sums as there are registers
  const T* b = in.b.as<T>() + column * in.ldb;
  const std::int64_t stretch = columns / at_once;
  for (std::int64_t j = 0; j < stretch; ++j)
    dot_products<M, at_once>(in.a, in.lda, b + j * in.ldb, stretch * in.ldb, k, tile + j, tile_stride, stretch);
  for (std::int64_t j = stretch * at_once; j < columns; ++j)
    dot_products<M, 1>(in.a, in.lda, b + j * in.ldb, in.ldb, k, tile + j, tile_stride);
}

template <int M, typename T>
void row_sum_block(const ThinOperands& in, std::int64_t k, std::int64_t column, std::int64_t columns, float* tile) {
  constexpr int at_once = M <= 4 ? 4 : 2;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(F32()));
  const T* b = in.b.as<T>() + column;
  std::int64_t c = 0;
  for (; c + at_once * lanes <= columns; c += at_once * lanes)
    sums_of_rows<M, at_once>(in.a, in.lda, b + c, in.ldb, k, tile + c, Whole{});
  for (; c + lanes <= columns; c += lanes) sums_of_rows<M, 1>(in.a, in.lda, b + c, in.ldb, k, tile + c, Whole{});
  if (c < columns)
    sums_of_rows<M, 1>(in.a, in.lda, b + c, in.ldb, k, tile + c, Part{static_cast<std::size_t>(columns - c)});
}

template <typename T>
void store_row(const float* in, const float* bias, T* out, std::int64_t n, bool add) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF value = load(d, in + i, extent);
    if (bias != nullptr) value = hn::Add(value, load(d, bias + i, extent));
    store_or_add(d, value, out + i, extent, add);
  });
}

// How the columns of the result are dealt out to tasks, and a task's to blocks whose results lie in a tile.
struct Division {
  std::int64_t range = 0, block = 0, tile_stride = 0;
};

Division divide_columns(const MatMul& op, int threads) {
  const std::int64_t all = op.n * op.k;
  if (op.transpose_b) {
    // The longer the stretches, the better; but every thread gets some.
    const std::int64_t elements = larger(elements_a_task, smaller(all / (4 * threads), 16 * elements_a_task));
    const std::int64_t block = larger(8, smaller(tile_floats / op.m, elements / op.k) / 8 * 8);
    const std::int64_t range = all <= 2 * elements_a_task ? op.n : larger(1, elements / (block * op.k)) * block;
    return {.range = range, .block = block, .tile_stride = tile_floats / op.m};
  }
  // Where a block is more than a task's work, its rows would be read by several threads: smaller blocks, of whole cache
  // lines of a row of b.
  const std::int64_t block = larger(32, smaller(block_columns, elements_a_task / op.k / 8 * 8));
  const std::int64_t blocks = larger(1, elements_a_task / (block_columns * op.k));
  return {.range = all <= 2 * elements_a_task ? op.n : blocks * block, .block = block, .tile_stride = block_columns};
}

void few_rows(const MatMul& op, const ThinOperands& in, Context& context) {
  const Division division = divide_columns(op, context.pool.threads());
  for_ranges(context, op.n, division.range, [&](std::int64_t first, std::int64_t count) {
    HWY_ALIGN float tile[tile_floats];
    for (std::int64_t column = first; column < first + count; column += division.block) {
      const std::int64_t columns = smaller(division.block, first + count - column);
      dispatch(op.b.dtype, [&]<typename T>(T*) {
        with_constant(op.m, [&]<int M>(std::integral_constant<int, M>) {
          if (op.transpose_b) {
            dot_product_block<M, T>(in, op.k, column, columns, tile, division.tile_stride);
          } else {
            row_sum_block<M, T>(in, op.k, column, columns, tile);
          }
        });
      });
      dispatch(op.out.dtype, [&]<typename T>(T*) {
        for (std::int64_t r = 0; r < op.m; ++r) {
          store_row(tile + r * division.tile_stride, in.bias == nullptr ? nullptr : in.bias + column,
                    op.out.as<T>() + r * op.ldc + column, columns, op.add);
        }
      });
    }
  });
}

// out[r, :] = sum over p of a[p, r] b[p, :] for R rows; b in fp32.
template <int K, int R, typename T>
void outer_products(const float* a, std::int64_t lda, const float* b, std::int64_t ldb, const float* bias, T* out,
                    std::int64_t ldc, std::int64_t n, bool add) {
  const F32 d;
  VF x[K][R];
  for (int p = 0; p < K; ++p) {
    for (int r = 0; r < R; ++r) x[p][r] = hn::Set(d, a[p * lda + r]);
  }
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF y[K];
    for (int p = 0; p < K; ++p) y[p] = load(d, b + p * ldb + i, extent);
    for (int r = 0; r < R; ++r) {
      VF sum = hn::Mul(x[0][r], y[0]);
      for (int p = 1; p < K; ++p) sum = hn::MulAdd(x[p][r], y[p], sum);
      if (bias != nullptr) sum = hn::Add(sum, load(d, bias + i, extent));
      store_or_add(d, sum, out + r * ldc + i, extent, add);
    }
  });
}

void small_depth(const MatMul& op, const ThinOperands& in, Context& context) {
  const std::int64_t range =
      op.m * op.n <= 2 * elements_a_task ? op.m : (larger(1, elements_a_task / op.n) + 3) / 4 * 4;
  for_ranges(context, op.m, range, [&](std::int64_t first, std::int64_t count) {
    dispatch(op.out.dtype, [&]<typename T>(T*) {
      with_constant(op.k, [&]<int K>(std::integral_constant<int, K>) {
        constexpr int at_once = K <= 4 ? 4 : 2;
        const auto run_rows = [&]<int R>(std::int64_t row, std::integral_constant<int, R>) {
          outer_products<K, R>(in.a + row, in.lda, in.b.as<float>(), in.ldb, in.bias, op.out.as<T>() + row * op.ldc,
                               op.ldc, op.n, op.add);
        };
        std::int64_t row = first;
        for (; row + at_once <= first + count; row += at_once) run_rows(row, std::integral_constant<int, at_once>());
        for (; row < first + count; ++row) run_rows(row, std::integral_constant<int, 1>());
      });
    });
  });
}

void thin_product(const MatMul& op, const ThinOperands& in, Context& context) {
  if (op.transpose_a) return small_depth(op, in, context);
  few_rows(op, in, context);
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(thin_product);

namespace {

// Where the fp32 copies of 16-bit operands lie in the shared scratch, in floats.
struct Copies {
  std::int64_t b_at = 0, bias_at = 0, floats = 0;
  bool a = false, b = false, bias = false;
};

Copies copies_of(const MatMul& op) {
  Copies copies;
  copies.a = op.a.dtype != DType::f32;
  copies.b = op.transpose_a && op.b.dtype != DType::f32;
  copies.bias = op.bias && op.bias.dtype != DType::f32;
  copies.b_at = copies.a ? round_up(op.m * op.k, 16) : 0;
  copies.bias_at = copies.b_at + (copies.b ? round_up(op.k * op.n, 16) : 0);
  copies.floats = copies.bias_at + (copies.bias ? round_up(op.n, 16) : 0);
  return copies;
}

}  // namespace

bool is_thin(const MatMul& op) {
  if (op.m <= 0 || op.n <= 0 || op.k <= 0) return false;
  return op.transpose_a ? !op.transpose_b && op.k <= thin_extent : op.m <= thin_extent;
}

WorkspaceNeed thin_workspace(const MatMul& op) {
  return {.per_worker = 0, .shared = copies_of(op).floats * static_cast<std::int64_t>(sizeof(float))};
}

void run_thin(const MatMul& op, Context& context) {
  const Copies copies = copies_of(op);
  if (context.shared_bytes < copies.floats * static_cast<std::int64_t>(sizeof(float)))
    throw std::logic_error("a thin matrix product was run that needs more scratch memory than was reserved");
  auto* const scratch = reinterpret_cast<float*>(context.shared);
  ThinOperands in{.a = static_cast<const float*>(op.a.data),
                  .lda = op.lda,
                  .b = op.b,
                  .ldb = op.ldb,
                  .bias = static_cast<const float*>(op.bias.data)};
  if (copies.a) {
    const std::int64_t rows = op.transpose_a ? op.k : op.m;
    const std::int64_t columns = op.transpose_a ? op.m : op.k;
    load_panel(op.a.dtype, op.a.data, op.lda, scratch, columns, rows, columns);
    in.a = scratch, in.lda = columns;
  }
  if (copies.b) {
    load_panel(op.b.dtype, op.b.data, op.ldb, scratch + copies.b_at, op.n, op.k, op.n);
    in.b = ConstTensorView(scratch + copies.b_at, op.k * op.n, DType::f32), in.ldb = op.n;
  }
  if (copies.bias) {
    load_panel(op.bias.dtype, op.bias.data, 0, scratch + copies.bias_at, 0, 1, op.n);
    in.bias = scratch + copies.bias_at;
  }
  HWY_DYNAMIC_DISPATCH(thin_product)(op, in, context);
}

}  // namespace zt::cpu
#endif
