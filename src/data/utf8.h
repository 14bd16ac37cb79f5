// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF (RFC 3629).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zt {

constexpr char32_t code_point_count = 0x110000;
constexpr char32_t no_code_point = 0xffffffff;

// The code point that starts at text[offset] (offset < size), and moves offset past it; no_code_point if
// there is none, with offset left at the start of the broken sequence.
inline char32_t next_code_point(std::string_view text, std::size_t& offset) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(offset);
  if (lead < 0x80) {
    ++offset;
    return lead;
  }
  std::size_t length = 0;
  std::uint32_t value = 0;
  std::uint32_t smallest = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2, value = lead & 0x1f, smallest = 0x80;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3, value = lead & 0x0f, smallest = 0x800;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4, value = lead & 0x07, smallest = 0x10000;
  } else {
    return no_code_point;
  }
  if (text.size() - offset < length) return no_code_point;
  for (std::size_t i = 1; i < length; ++i) {
    const std::uint32_t following = byte(offset + i);
    if ((following & 0xc0) != 0x80) return no_code_point;
    value = (value << 6) | (following & 0x3f);
  }
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < smallest || value >= code_point_count || surrogate) return no_code_point;
  offset += length;
  return value;
}

inline void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3f));
    put(0x80 | ((code_point >> 6) & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

}  // namespace zt
