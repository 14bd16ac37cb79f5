#include "device/cpu/panels.h"

#include <cstring>

// The baseline, AVX2 and AVX-512 (Highway's AVX3) are enough.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (0xFFLL | (1LL << 11) | (1LL << 12))
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/panels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "device/cpu/convert-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu::panels::HWY_NAMESPACE {

template <typename T>
void load_rows(const T* in, std::int64_t in_stride, float* out, std::int64_t out_stride, std::int64_t rows,
               std::int64_t columns) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* from = in + r * in_stride;
    float* to = out + r * out_stride;
    std::int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) store(load(from + c), to + c);
    for (; c < columns; ++c) to[c] = to_float(from[c]);
  }
}

template <typename T, bool add>
void store_rows(const float* in, std::int64_t in_stride, T* out, std::int64_t out_stride, std::int64_t rows,
                std::int64_t columns) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = in + r * in_stride;
    T* to = out + r * out_stride;
    std::int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      const auto value = load(from + c);
      if constexpr (add) {
        store(hn::Add(load(to + c), round_to(value, to)), to + c);
      } else {
        store(value, to + c);
      }
    }
    for (; c < columns; ++c) {
      if constexpr (add) {
        to[c] = from_float<T>(to_float(to[c]) + to_float(from_float<T>(from[c])));
      } else {
        to[c] = from_float<T>(from[c]);
      }
    }
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
      store_rows<T, true>(in, in_stride, static_cast<T*>(out), out_stride, rows, columns);
    } else {
      store_rows<T, false>(in, in_stride, static_cast<T*>(out), out_stride, rows, columns);
    }
  });
}

}  // namespace zt::cpu::panels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

namespace panels {
HWY_EXPORT(load_panel_on_target);
HWY_EXPORT(store_panel_on_target);
}  // namespace panels

void load_panel(DType dtype, const void* in, std::int64_t in_stride, float* out, std::int64_t out_stride,
                std::int64_t rows, std::int64_t columns) {
  using namespace panels;
  HWY_DYNAMIC_DISPATCH(load_panel_on_target)(dtype, in, in_stride, out, out_stride, rows, columns);
}

void store_panel(const float* in, std::int64_t in_stride, DType dtype, void* out, std::int64_t out_stride,
                 std::int64_t rows, std::int64_t columns, bool add) {
  using namespace panels;
  HWY_DYNAMIC_DISPATCH(store_panel_on_target)(in, in_stride, dtype, out, out_stride, rows, columns, add);
}

}  // namespace zt::cpu
#endif
