#include "data/idx_file.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>
#include <type_traits>

#include "core/errors.h"
#include "data/input_file.h"

namespace zt {

struct IdxFile::TypeRow {
  Type type;
  std::int64_t bytes;  // of an element
  const char* name;
};

const IdxFile::TypeRow* IdxFile::row_of(std::uint8_t type) {
  static constexpr std::array<TypeRow, 6> rows = {{{Type::u8, 1, "unsigned bytes"},
                                                   {Type::i8, 1, "signed bytes"},
                                                   {Type::i16, 2, "integers of 16 bits"},
                                                   {Type::i32, 4, "integers of 32 bits"},
                                                   {Type::f32, 4, "numbers of 32 bits"},
                                                   {Type::f64, 8, "numbers of 64 bits"}}};
  for (const TypeRow& row : rows) {
    if (static_cast<std::uint8_t>(row.type) == type) return &row;
  }
  return nullptr;
}

namespace {

std::uint8_t byte_at(std::string_view bytes, std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); }

// The first bytes in hex, for messages: "89 50 4e 47".
std::string first_bytes(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size() && i < 4; ++i) {
    std::array<char, 4> two{};
    std::snprintf(two.data(), two.size(), "%02x", static_cast<unsigned>(byte_at(bytes, i)));
    text += (i > 0 ? " " : "") + std::string(two.data());
  }
  return text;
}

}  // namespace

IdxFile::IdxFile(const std::string& path, const std::string& key)
    : content_(InputFile(path, key, "an IDX file").take()) {
  const auto fail = [&](const std::string& what) { throw UserError(key + ": " + path + " " + what); };
  const std::size_t size = content_.size();
  constexpr std::size_t magic_bytes = 4;
  if (size < magic_bytes) fail("is cut short: it has " + std::to_string(size) + " bytes, an IDX header at least 8");
  if (byte_at(content_, 0) != 0 || byte_at(content_, 1) != 0) {
    fail("is no IDX file: it starts with the bytes " + first_bytes(content_) +
         ", an IDX file with 00 00, its type and its number of dimensions (images of bytes: 00 00 08 03)");
  }
  const TypeRow* row = row_of(byte_at(content_, 2));
  if (row == nullptr) {
    fail("is no IDX file: the third of its first bytes " + first_bytes(content_) +
         " should be the element type: 08 and 09 (bytes), 0b and 0c (integers), 0d and 0e (floating point)");
  }
  const std::size_t dimensions = byte_at(content_, 3);
  if (dimensions == 0) fail("has no dimensions (its fourth byte is 0): the first one is the number of samples");
  header_bytes_ = magic_bytes + 4 * dimensions;
  if (size < header_bytes_) {
    fail("is cut short: it has " + std::to_string(size) + " bytes, its header of " + std::to_string(dimensions) +
         " dimension(s) alone " + std::to_string(header_bytes_));
  }
  type_ = row->type;
  std::int64_t elements = 1;
  bool fits = true;
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::int64_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | byte_at(content_, magic_bytes + 4 * d + i);
    dimensions_.push_back(length);
    fits = fits && !__builtin_mul_overflow(elements, length, &elements);
    if (d > 0) fits = fits && !__builtin_mul_overflow(values_per_item_, length, &values_per_item_);
  }
  if (elements == 0 && fits) fail("holds nothing: " + description() + " by its header");
  std::int64_t promised = 0;
  fits = fits && !__builtin_mul_overflow(elements, row->bytes, &promised);
  const auto held = static_cast<std::int64_t>(size - header_bytes_);
  if (!fits || held < promised) {
    fail("is cut short: its header promises " + description() +
         (fits ? ", " + std::to_string(promised) + " bytes" : "") + ", and " + std::to_string(held) +
         " bytes follow it; get the file again");
  }
  if (held > promised) {
    fail("goes on after its end: its header promises " + description() + ", " + std::to_string(promised) +
         " bytes, and " + std::to_string(held) + " bytes follow it; the file was damaged or joined with another");
  }
}

bool IdxFile::holds_integers() const { return type_ != Type::f32 && type_ != Type::f64; }

std::string IdxFile::description() const {
  std::string text;
  for (const std::int64_t length : dimensions_) text += (text.empty() ? "" : " x ") + std::to_string(length);
  return text + " " + row_of(static_cast<std::uint8_t>(type_))->name;
}

template <typename T>
T IdxFile::element(std::int64_t index) const {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  Bits bits = 0;
  const std::size_t first = header_bytes_ + static_cast<std::size_t>(index) * sizeof(T);
  for (std::size_t i = 0; i < sizeof(T); ++i) bits = bits << 8 | byte_at(content_, first + i);
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(bits);
  } else {
    return static_cast<T>(bits);  // two's complement
  }
}

void IdxFile::features(std::int64_t index, std::span<float> out) const {
  const std::int64_t first = index * values_per_item_;
  if (type_ == Type::u8) {
    const char* bytes = content_.data() + header_bytes_ + first;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(static_cast<std::uint8_t>(bytes[i])) / 255.0F;
    }
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    out[i] = type_ == Type::f32   ? element<float>(at)
             : type_ == Type::f64 ? static_cast<float>(element<double>(at))
                                  : static_cast<float>(integer(at));
  }
}

std::int64_t IdxFile::integer(std::int64_t index) const {
  switch (type_) {
    case Type::u8: return element<std::uint8_t>(index);
    case Type::i8: return element<std::int8_t>(index);
    case Type::i16: return element<std::int16_t>(index);
    default: return element<std::int32_t>(index);
  }
}

std::int64_t IdxFile::first_not_finite() const {
  if (holds_integers()) return -1;
  const std::int64_t count = items() * values_per_item_;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = type_ == Type::f32 ? static_cast<double>(element<float>(i)) : element<double>(i);
    if (!(std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max()))) return i;
  }
  return -1;
}

}  // namespace zt
