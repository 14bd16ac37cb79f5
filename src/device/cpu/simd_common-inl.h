// Included once per instruction set, between foreach_target.h and the operations: tensors of any dtype as vectors of
// float, and loops over them.
//
// A loop over n elements calls its body for whole vectors and then once for what is left. The rest comes and goes by
// masked or padded vectors, so each element meets the same instructions wherever it lies, and no address matters.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/dtype.h"
#include "device/cpu/cpu_context.h"
#include "device/operations.h"

#if defined(ZT_SIMD_COMMON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZT_SIMD_COMMON_INL_H_
#undef ZT_SIMD_COMMON_INL_H_
#else
#define ZT_SIMD_COMMON_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using VF = hn::Vec<F32>;
using VU = hn::Vec<U32>;

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define ZT_SIMD_HAS_F16 1
#else
#define ZT_SIMD_HAS_F16 0
#endif
#if ZT_SIMD_HAS_F16
constexpr bool has_f16_conversion = true;
#else
constexpr bool has_f16_conversion = false;
#endif
#undef ZT_SIMD_HAS_F16
// Whether the processor loads and stores the first lanes of a vector of 16 or 32 bits without touching the rest.
constexpr bool has_masked_memory = HWY_TARGET == HWY_AVX3;

// Which elements a loop's body is called for: as many as a vector has, or the first `count` of one.
struct Whole {};
struct Part {
  std::size_t count;
};

// Calls body(i, Whole or Part) for i = 0, N, 2 N, ... below n, N lanes of a vector of D.
template <class D, class Body>
HWY_INLINE void for_vectors(D d, std::int64_t n, const Body& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole{});
  if (i < n) body(i, Part{static_cast<std::size_t>(n - i)});
}

// ---- 16-bit formats in registers. D is a tag of floats.

template <class D>
HWY_INLINE hn::Vec<D> widen(D d, bf16_t, hn::Vec<hn::Rebind<std::uint16_t, D>> bits) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> widen(D d, f16_t, hn::Vec<hn::Rebind<std::uint16_t, D>> bits) {
  if constexpr (has_f16_conversion) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  } else {
    HWY_ALIGN std::uint16_t in[hn::MaxLanes(d)];
    HWY_ALIGN float out[hn::MaxLanes(d)];
    hn::Store(bits, hn::Rebind<std::uint16_t, D>(), in);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) out[i] = to_float(f16_t{in[i]});
    return hn::Load(d, out);
  }
}

// The bits that core/dtype.h's from_float<bf16_t> gives, in the upper halves of the lanes (the lower are arbitrary).
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> rounded_bf16_bits(D, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fffU)), odd);
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  return hn::IfThenElse(is_nan, hn::Or(bits, hn::Set(du, 0x00400000U)), rounded);
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrow(D d, bf16_t, hn::Vec<D> value) {
  const hn::Rebind<std::uint16_t, D> d16;
  return hn::TruncateTo(d16, hn::ShiftRight<16>(rounded_bf16_bits(d, value)));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrow(D d, f16_t, hn::Vec<D> value) {
  const hn::Rebind<std::uint16_t, D> d16;
  if constexpr (has_f16_conversion) {
    return hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), value));
  } else {
    HWY_ALIGN float in[hn::MaxLanes(d)];
    HWY_ALIGN std::uint16_t out[hn::MaxLanes(d)];
    hn::Store(value, d, in);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) out[i] = from_float<f16_t>(in[i]).bits;
    return hn::Load(d16, out);
  }
}

// ---- Memory. Pointers need the alignment of an element only.

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* from) {
  return widen(d, T{}, hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from)));
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, float* to) {
  hn::StoreU(value, d, to);
}
template <class D, typename T>
HWY_INLINE void store(D d, hn::Vec<D> value, T* to) {
  hn::StoreU(narrow(d, T{}, value), hn::Rebind<std::uint16_t, D>(), reinterpret_cast<std::uint16_t*>(to));
}

// The same for a loop's body; lanes past a part load zeros and are not stored.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* from, Whole) {
  return load(d, from);
}
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* from, Part part) {
  if constexpr (has_masked_memory && std::is_same_v<T, float>) {
    return hn::MaskedLoad(hn::FirstN(d, part.count), d, from);
  } else if constexpr (has_masked_memory) {
    const hn::Rebind<std::uint16_t, D> d16;
    const auto* const bits = reinterpret_cast<const std::uint16_t*>(from);
    return widen(d, T{}, hn::MaskedLoad(hn::FirstN(d16, part.count), d16, bits));
  } else {
    HWY_ALIGN T padded[hn::MaxLanes(d)] = {};
    std::memcpy(padded, from, part.count * sizeof(T));
    return load(d, padded);
  }
}
template <class D, typename T>
HWY_INLINE void store(D d, hn::Vec<D> value, T* to, Whole) {
  store(d, value, to);
}
template <class D, typename T>
HWY_INLINE void store(D d, hn::Vec<D> value, T* to, Part part) {
  if constexpr (has_masked_memory && std::is_same_v<T, float>) {
    hn::BlendedStore(value, hn::FirstN(d, part.count), d, to);
  } else if constexpr (has_masked_memory) {
    const hn::Rebind<std::uint16_t, D> d16;
    auto* const bits = reinterpret_cast<std::uint16_t*>(to);
    hn::BlendedStore(narrow(d, T{}, value), hn::FirstN(d16, part.count), d16, bits);
  } else {
    HWY_ALIGN T padded[hn::MaxLanes(d)];
    store(d, value, padded);
    std::memcpy(to, padded, part.count * sizeof(T));
  }
}

// value with zeros in the lanes past a part.
template <class D>
HWY_INLINE hn::Vec<D> valid_or_zero(D, hn::Vec<D> value, Whole) {
  return value;
}
template <class D>
HWY_INLINE hn::Vec<D> valid_or_zero(D d, hn::Vec<D> value, Part part) {
  return hn::IfThenElseZero(hn::FirstN(d, part.count), value);
}

// value rounded to T and back.
template <typename T, class D>
HWY_INLINE hn::Vec<D> rounded(D d, hn::Vec<D> value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, bf16_t>) {
    return hn::BitCast(d, hn::And(rounded_bf16_bits(d, value), hn::Set(hn::RebindToUnsigned<D>(), 0xffff0000U)));
  } else {
    return widen(d, T{}, narrow(d, T{}, value));
  }
}

// Stores value, or what `add` in operations.h asks for: round(to + round(value)).
template <class D, typename T, class Extent>
HWY_INLINE void store_or_add(D d, hn::Vec<D> value, T* to, Extent extent, bool add) {
  if (add) value = hn::Add(load(d, to, extent), rounded<T>(d, value));
  store(d, value, to, extent);
}

// ---- Sums along a row: four vectors take the row's vectors in turn, then are added pairwise. The order is fixed by
// the length and the number of lanes.
class RowSum {
 public:
  HWY_INLINE RowSum() : a_(hn::Zero(F32())), b_(a_), c_(a_), d_(a_) {}
  HWY_INLINE void add(VF value) {
    const VF next = hn::Add(a_, value);
    turn(next);
  }
  HWY_INLINE void add_product(VF x, VF y) {
    const VF next = hn::MulAdd(x, y, a_);
    turn(next);
  }
  HWY_INLINE float total() const {
    const F32 d;
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a_, c_), hn::Add(b_, d_))));
  }

 private:
  HWY_INLINE void turn(VF next) {
    a_ = b_;
    b_ = c_;
    c_ = d_;
    d_ = next;
  }
  VF a_, b_, c_, d_;
};

// ---- Conversion of whole ranges between a dtype known at run time and float.

template <typename T>
void widen_range(const T* in, float* out, std::int64_t n) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR { store(d, load(d, in + i, extent), out + i, extent); });
}

// The elements first ... first + n - 1 as floats: in place if they are, else converted into buffer.
inline const float* as_floats(const ConstTensorView& view, std::int64_t first, std::int64_t n, float* buffer) {
  if (view.dtype == DType::f32) return view.as<float>() + first;
  if (view.dtype == DType::bf16) {
    widen_range(view.as<bf16_t>() + first, buffer, n);
  } else {
    widen_range(view.as<f16_t>() + first, buffer, n);
  }
  return buffer;
}

template <typename T>
void store_or_add_range(const float* in, T* out, std::int64_t n, bool add) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    store_or_add(d, load(d, in + i, extent), out + i, extent, add);
  });
}

// Rounds floats into the elements first ... first + n - 1, adding if asked.
inline void store_floats(const float* in, const TensorView& out, std::int64_t first, std::int64_t n, bool add) {
  switch (out.dtype) {
    case DType::f32: return store_or_add_range(in, out.as<float>() + first, n, add);
    case DType::bf16: return store_or_add_range(in, out.as<bf16_t>() + first, n, add);
    case DType::f16: return store_or_add_range(in, out.as<f16_t>() + first, n, add);
  }
}

// ---- Cutting by shape.

constexpr std::int64_t elements_per_task = 32768;
// Elements that are worked on at once where buffers on the stack are needed.
constexpr std::int64_t piece = 512;

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

// Calls function(first, n) for ranges that cover [0, count), on the pool's threads.
template <class Function>
void for_ranges(Context& context, std::int64_t count, std::int64_t range, const Function& function) {
  context.pool.for_each(ceil_div(count, range), [&](std::int64_t task, int) {
    const std::int64_t first = task * range;
    function(first, smaller(range, count - first));
  });
}

// Rows per task such that a task has about elements_per_task elements.
inline std::int64_t rows_per_task(std::int64_t columns) { return larger(1, elements_per_task / larger(1, columns)); }

// Calls function(first, n) for the pieces of [0, count), one after the other.
template <class Function>
HWY_INLINE void for_pieces(std::int64_t count, const Function& function) {
  for (std::int64_t first = 0; first < count; first += piece) function(first, smaller(piece, count - first));
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#endif
