// Included once per instruction set, after simd_common-inl.h: products of a few rows of floats with many rows of any
// dtype, a block of columns at a time.

#if defined(ZT_SIMD_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZT_SIMD_FEW_ROWS_INL_H_
#undef ZT_SIMD_FEW_ROWS_INL_H_
#else
#define ZT_SIMD_FEW_ROWS_INL_H_
#endif

#include "device/cpu/simd_common-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

constexpr std::int64_t block_columns = 64;  // that are worked on at once

// to[0 ... 3] = the sums of the lanes of a, b, c and e, each in the same order.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void store_sums(VF a, VF b, VF c, VF e, float* to) {
  to[0] = hn::GetLane(a);
  to[1] = hn::GetLane(b);
  to[2] = hn::GetLane(c);
  to[3] = hn::GetLane(e);
}
#else
template <class D>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4> > sum_of_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
HWY_INLINE void store_sums(VF a, VF b, VF c, VF e, float* to) {
  const F32 d;
  const hn::RepartitionToWide<F32> pairs;
  const VF ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const VF ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  const auto sums = sum_of_blocks(d, hn::Add(hn::BitCast(d, low), hn::BitCast(d, high)));
  hn::StoreU(sums, hn::FixedTag<float, 4>(), to);
}
#endif

// tile[r * tile_stride + j * step] = dot product of rows r of a and j of b, for M rows and J.
template <int M, int J, typename T>
void dot_products(const float* a, std::int64_t lda, const T* b, std::int64_t ldb, std::int64_t k, float* tile,
                  std::int64_t tile_stride = block_columns, std::int64_t step = 1) {
  const F32 d;
  constexpr int all = (M * J + 3) / 4 * 4;
  VF sums[all];
  for (VF& sum : sums) sum = hn::Zero(d);
  for_vectors(d, k, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF y[J];
    for (int j = 0; j < J; ++j) y[j] = load(d, b + j * ldb + i, extent);
    for (int r = 0; r < M; ++r) {
      const VF x = load(d, a + r * lda + i, extent);
      for (int j = 0; j < J; ++j) sums[r * J + j] = hn::MulAdd(x, y[j], sums[r * J + j]);
    }
  });
  float totals[all];
  for (int s = 0; s < all; s += 4) store_sums(sums[s], sums[s + 1], sums[s + 2], sums[s + 3], totals + s);
  for (int r = 0; r < M; ++r) {
    for (int j = 0; j < J; ++j) tile[r * tile_stride + j * step] = totals[r * J + j];
  }
}

// tile[r, c] = sum over p of a[r, p] b[p, c] for M rows and the columns of V vectors.
template <int M, int V, typename T, class Extent>
void sums_of_rows(const float* a, std::int64_t lda, const T* b, std::int64_t ldb, std::int64_t k, float* tile,
                  Extent extent) {
  const F32 d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  VF sums[M][V];
  for (auto& row : sums) {
    for (VF& sum : row) sum = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < k; ++p, b += ldb) {
    VF y[V];
    for (int v = 0; v < V; ++v) y[v] = load(d, b + v * lanes, extent);
    for (int r = 0; r < M; ++r) {
      const VF x = hn::Set(d, a[r * lda + p]);
      for (int v = 0; v < V; ++v) sums[r][v] = hn::MulAdd(x, y[v], sums[r][v]);
    }
  }
  for (int r = 0; r < M; ++r) {
    for (int v = 0; v < V; ++v) hn::StoreU(sums[r][v], d, tile + r * block_columns + v * lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#endif
