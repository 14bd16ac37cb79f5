#include "data/idx_file.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <type_traits>

#include "core/errors.h"
#include "data/file_kind.h"
#include "data/input_file.h"
#include "data/message_text.h"

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
                                                   {Type::f32, 4, "floating-point numbers of 32 bits"},
                                                   {Type::f64, 8, "floating-point numbers of 64 bits"}}};
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

std::string counted_bytes(std::size_t count) { return counted(static_cast<std::int64_t>(count), "byte"); }

std::string follow(std::int64_t bytes) { return counted(bytes, "byte") + (bytes == 1 ? " follows" : " follow"); }

}  // namespace

IdxFile::IdxFile(const std::string& path, const std::string& key)
    : content_(InputFile(path, key, "an IDX file").take()) {
  const auto fail = [&](const std::string& what) { throw UserError(origin_of(key, path) + " " + what); };
  const std::size_t size = content_.size();
  constexpr std::size_t magic_bytes = 4;
  if (size < magic_bytes)
    fail("is cut short: it has " + counted_bytes(size) + ", an IDX header at least 8; get the file again");
  if (const std::string packed = packed_in_words(content_); !packed.empty()) fail(packed);
  if (byte_at(content_, 0) != 0 || byte_at(content_, 1) != 0) {
    fail("is no IDX file: it starts with the bytes " + first_bytes(content_) +
         ", an IDX file with 00 00, its type and its number of dimensions (images of bytes: 00 00 08 03); name an IDX "
         "file");
  }
  const TypeRow* row = row_of(byte_at(content_, 2));
  if (row == nullptr) {
    fail("is no IDX file: the third of its first bytes " + first_bytes(content_) +
         " should be the element type: 08 and 09 (bytes), 0b and 0c (integers), 0d and 0e (floating point); name an "
         "IDX file");
  }
  const std::size_t dimensions = byte_at(content_, 3);
  if (dimensions == 0)
    fail("has no dimensions (its fourth byte is 0): the first one is the number of samples; name an IDX file");
  header_bytes_ = magic_bytes + 4 * dimensions;
  if (size < header_bytes_) {
    fail("is cut short: it has " + counted_bytes(size) + ", its header of " +
         counted(static_cast<std::int64_t>(dimensions), "dimension") + " alone " + std::to_string(header_bytes_) +
         "; get the file again");
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
  if (elements == 0 && fits) fail("holds nothing: " + description() + " by its header; name a file with samples in it");
  std::int64_t promised = 0;
  fits = fits && !__builtin_mul_overflow(elements, row->bytes, &promised);
  const auto held = static_cast<std::int64_t>(size - header_bytes_);
  if (!fits || held < promised) {
    fail("is cut short: its header promises " + description() + (fits ? ", " + counted(promised, "byte") : "") +
         ", and " + follow(held) + " it; get the file again");
  }
  if (held > promised) {
    fail("goes on after its end: its header promises " + description() + ", " + counted(promised, "byte") + ", and " +
         follow(held) + " it; the file was damaged or joined with another: get it again");
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

std::int64_t IdxFile::first_beyond(double limit) const {
  const bool within = type_ == Type::u8 || ((type_ == Type::i8 || type_ == Type::i16) && limit >= 32768.0) ||
                      (type_ == Type::i32 && limit >= 2147483648.0);
  if (within) return -1;
  const std::int64_t count = items() * values_per_item_;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!(std::abs(value(i)) <= limit)) return i;
  }
  return -1;
}

double IdxFile::value(std::int64_t index) const {
  if (type_ == Type::f32) return static_cast<double>(element<float>(index));
  return type_ == Type::f64 ? element<double>(index) : static_cast<double>(integer(index));
}

}  // namespace zt
