#include "checkpoint/stored_type.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/errors.h"

namespace zt {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files hold little-endian numbers, which are copied as they are");

struct Row {
  StoredType type;
  std::string_view name;
  std::int64_t bytes;
};

// In the order of StoredType.
constexpr std::array<Row, 15> rows = {{{StoredType::boolean, "BOOL", 1},
                                       {StoredType::u8, "U8", 1},
                                       {StoredType::i8, "I8", 1},
                                       {StoredType::f8_e5m2, "F8_E5M2", 1},
                                       {StoredType::f8_e4m3, "F8_E4M3", 1},
                                       {StoredType::i16, "I16", 2},
                                       {StoredType::u16, "U16", 2},
                                       {StoredType::f16, "F16", 2},
                                       {StoredType::bf16, "BF16", 2},
                                       {StoredType::i32, "I32", 4},
                                       {StoredType::u32, "U32", 4},
                                       {StoredType::f32, "F32", 4},
                                       {StoredType::f64, "F64", 8},
                                       {StoredType::i64, "I64", 8},
                                       {StoredType::u64, "U64", 8}}};

const Row& row(StoredType type) { return rows.at(static_cast<std::size_t>(type)); }

// Ascending, each element read before its place is written: so `raw` may lie at the end of `out`.
template <typename T>
void convert(const void* raw, std::int64_t count, float* out) {
  const auto* from = static_cast<const char*>(raw);
  for (std::int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    if constexpr (std::is_same_v<T, double>) {
      out[i] = static_cast<float>(value);
    } else {
      out[i] = to_float(value);
    }
  }
}

}  // namespace

std::int64_t size_of(StoredType type) { return row(type).bytes; }
std::string_view name_of(StoredType type) { return row(type).name; }

std::optional<StoredType> stored_type(std::string_view name) {
  for (const Row& candidate : rows) {
    if (candidate.name == name) return candidate.type;
  }
  return std::nullopt;
}

StoredType stored_type(DType type) {
  switch (type) {
    case DType::bf16: return StoredType::bf16;
    case DType::f16: return StoredType::f16;
    case DType::f32: break;
  }
  return StoredType::f32;
}

bool becomes_float(StoredType type) {
  return type == StoredType::f32 || type == StoredType::f16 || type == StoredType::bf16 || type == StoredType::f64;
}

void to_floats(StoredType type, const void* raw, std::int64_t count, float* out) {
  if (count == 0) return;  // then the pointers may be null
  switch (type) {
    case StoredType::f32: std::memmove(out, raw, static_cast<std::size_t>(count) * sizeof(float)); return;
    case StoredType::f16: convert<f16_t>(raw, count, out); return;
    case StoredType::bf16: convert<bf16_t>(raw, count, out); return;
    case StoredType::f64: convert<double>(raw, count, out); return;
    default: throw RunError("elements of the format " + std::string(name_of(type)) + " are no weights");
  }
}

void from_floats(const float* values, std::int64_t count, DType type, void* raw) {
  dispatch(type, [&]<typename T>(T*) {
    auto* to = static_cast<char*>(raw);
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = from_float<T>(values[i]);
      std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
    }
  });
}

}  // namespace zt
