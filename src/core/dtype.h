// Number formats that tensors are held in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace zt {

enum class DType : std::uint8_t { f32, bf16, f16 };

constexpr std::size_t size_of(DType type) { return type == DType::f32 ? 4 : 2; }
constexpr bool is_16_bit(DType type) { return type != DType::f32; }

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32: return "fp32";
    case DType::bf16: return "bf16";
    case DType::f16: return "fp16";
  }
  return "?";
}

// Storage types. They carry bits only; arithmetic is done in float.
struct bf16_t {
  std::uint16_t bits;
};
struct f16_t {
  std::uint16_t bits;
};

// Scalar conversions: to 16 bits rounding to nearest, ties to even; a value beyond the largest finite
// one becomes infinite, NaN stays NaN. The vector kernels of every backend agree with these to the bit.
inline float to_float(float value) { return value; }
inline float to_float(bf16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
float to_float(f16_t value);

template <typename T>
T from_float(float value);
template <>
inline float from_float<float>(float value) {
  return value;
}
template <>
inline bf16_t from_float<bf16_t>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x0040U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}
template <>
f16_t from_float<f16_t>(float value);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<bf16_t> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<f16_t> {
  static constexpr DType value = DType::f16;
};

// Calls f with a null pointer of the storage type that `type` names: dispatch(t, [&]<typename T>(T*) {...}).
template <typename F>
decltype(auto) dispatch(DType type, F&& f) {
  switch (type) {
    case DType::bf16: return f(static_cast<bf16_t*>(nullptr));
    case DType::f16: return f(static_cast<f16_t*>(nullptr));
    case DType::f32: break;
  }
  return f(static_cast<float*>(nullptr));
}

}  // namespace zt
