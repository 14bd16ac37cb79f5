// Number formats of tensors in files: ours, and those that other programs store.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/dtype.h"

namespace zt {

enum class StoredType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64
};

std::int64_t size_of(StoredType type);      // bytes of an element
std::string_view name_of(StoredType type);  // as safetensors writes it: "F32", "BF16"
std::optional<StoredType> stored_type(std::string_view name);
StoredType stored_type(DType type);

// Formats whose elements become fp32: F32, F16, BF16 (without loss) and F64 (rounded to nearest even).
bool becomes_float(StoredType type);
// `raw`, little-endian as in files, may start at any address. It may lie in the last bytes of `out`'s own memory, where
// its elements are of 16 or 32 bits.
void to_floats(StoredType type, const void* raw, std::int64_t count, float* out);
// Rounds to nearest even; what fp16 cannot hold becomes infinite. `raw` may be `values` themselves.
void from_floats(const float* values, std::int64_t count, DType type, void* raw);

}  // namespace zt
