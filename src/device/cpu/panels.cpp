#include "device/cpu/panels.h"

#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/panels.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

// Fetches the row after the next ahead: rows of a panel lie far apart, where the processor does not see the next one
// coming (from main memory: 1.5 to 2.5 times as fast; from caches: the same).
template <typename T>
void load_rows(const T* in, std::int64_t in_stride, float* out, std::int64_t out_stride, std::int64_t rows,
               std::int64_t columns) {
  const F32 d;
  for (std::int64_t r = 0; r < rows; ++r, in += in_stride, out += out_stride) {
    const T* const ahead = r + 2 < rows ? in + 2 * in_stride : in;
    for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
      hwy::Prefetch(ahead + i);
      store(d, load(d, in + i, extent), out + i, extent);
    });
  }
}

template <bool add, typename T>
void store_rows(const float* in, std::int64_t in_stride, T* out, std::int64_t out_stride, std::int64_t rows,
                std::int64_t columns) {
  const F32 d;
  for (std::int64_t r = 0; r < rows; ++r, in += in_stride, out += out_stride) {
    for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
      store_or_add(d, load(d, in + i, extent), out + i, extent, add);
    });
  }
}

void load_panel_on_target(DType dtype, const void* in, std::int64_t in_stride, float* out, std::int64_t out_stride,
                          std::int64_t rows, std::int64_t columns) {
  dispatch(dtype,
           [&]<typename T>(T*) { load_rows(static_cast<const T*>(in), in_stride, out, out_stride, rows, columns); });
}

void store_panel_on_target(const float* in, std::int64_t in_stride, DType dtype, void* out, std::int64_t out_stride,
                           std::int64_t rows, std::int64_t columns, bool add) {
  dispatch(dtype, [&]<typename T>(T*) {
    if (add) {
      store_rows<true>(in, in_stride, static_cast<T*>(out), out_stride, rows, columns);
    } else {
      store_rows<false>(in, in_stride, static_cast<T*>(out), out_stride, rows, columns);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(load_panel_on_target);
HWY_EXPORT(store_panel_on_target);

void load_panel(DType dtype, const void* in, std::int64_t in_stride, float* out, std::int64_t out_stride,
                std::int64_t rows, std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(load_panel_on_target)(dtype, in, in_stride, out, out_stride, rows, columns);
}

void store_panel(const float* in, std::int64_t in_stride, DType dtype, void* out, std::int64_t out_stride,
                 std::int64_t rows, std::int64_t columns, bool add) {
  HWY_DYNAMIC_DISPATCH(store_panel_on_target)(in, in_stride, dtype, out, out_stride, rows, columns, add);
}

}  // namespace zt::cpu
#endif
