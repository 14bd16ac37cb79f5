// Included once per instruction set: the second half of sums over rows.

#if defined(ZT_SIMD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZT_SIMD_ROWS_INL_H_
#undef ZT_SIMD_ROWS_INL_H_
#else
#define ZT_SIMD_ROWS_INL_H_
#endif

#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_layout.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

template <typename T>
void add_partials_range(const float* partials, std::int64_t stride, std::int64_t chunks, T* out, std::int64_t n,
                        bool add) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF sum = hn::Zero(d);
    for (std::int64_t k = 0; k < chunks; ++k) sum = hn::Add(sum, load(d, partials + k * stride + i, extent));
    store_or_add(d, sum, out + i, extent, add);
  });
}

// out[n] (+)= the sum of partials[chunks][stride] over the chunks, in their order; 0 if there are none.
inline void add_partials(Context& context, const float* partials, std::int64_t stride, std::int64_t chunks,
                         const TensorView& out, std::int64_t columns, bool add) {
  constexpr std::int64_t columns_per_task = 256;
  for_ranges(context, columns, columns_per_task, [&](std::int64_t first, std::int64_t n) {
    dispatch(out.dtype, [&]<typename T>(T*) {
      add_partials_range(partials + first, stride, chunks, out.as<T>() + first, n, add);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#endif
