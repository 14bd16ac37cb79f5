// Cutting a text into the pieces within which byte pairs are merged, by GPT-2's pattern
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that belongs to no UTF-8 character (RFC 3629) is a character of its own, neither letter, number nor space.
#pragma once

#include <string_view>

#include "data/unicode_classes.h"
#include "data/utf8.h"

namespace zt {

class PieceSplitter {
 public:
  explicit PieceSplitter(std::string_view text) : text_(text) {}

  // Where the piece ends that starts at `at` (< text.size(), where the text or another piece starts).
  std::size_t end_of_piece(std::size_t at) const {
    if (text_[at] == '\'') {
      if (const std::size_t length = contraction(at); length > 0) return at + length;
    }
    Character first = character(at);
    if (text_[at] == ' ' && at + 1 < text_.size()) {
      const Character second = character(at + 1);
      if (second.kind != CharacterClass::space) return end_of_run(at + 1 + second.length, second.kind);
    }
    if (first.kind != CharacterClass::space) return end_of_run(at + first.length, first.kind);
    // The last space of a run goes with what follows, or stands alone.
    std::size_t last = at, end = at + first.length;
    while (end < text_.size()) {
      const Character next = character(end);
      if (next.kind != CharacterClass::space) return last > at ? last : end;
      last = end;
      end += next.length;
    }
    return end;
  }

 private:
  struct Character {
    CharacterClass kind;
    std::size_t length;  // in bytes
  };

  Character character(std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {classes_.of_ascii(byte), 1};
    std::size_t end = at;
    const char32_t code_point = next_code_point(text_, end);
    if (code_point == no_code_point) return {CharacterClass::other, 1};
    return {classes_.of(code_point), end - at};
  }

  std::size_t end_of_run(std::size_t at, CharacterClass kind) const {
    while (at < text_.size()) {
      const Character next = character(at);
      if (next.kind != kind) return at;
      at += next.length;
    }
    return at;
  }

  std::size_t contraction(std::size_t at) const {
    const auto byte = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    switch (byte(at + 1)) {
      case 's':
      case 't':
      case 'm':
      case 'd': return 2;
      case 'r':
      case 'v': return byte(at + 2) == 'e' ? 3 : 0;
      case 'l': return byte(at + 2) == 'l' ? 3 : 0;
      default: return 0;
    }
  }

  std::string_view text_;
  const UnicodeClasses& classes_ = UnicodeClasses::table();
};

// The largest place <= `at` (< text.size()) where a piece ends and another starts whatever stands before and behind: at
// the start of a line, between two lines that end and start with a visible sign of ASCII. 0: there is none.
inline std::size_t piece_cut_before(std::string_view text, std::size_t at) {
  const auto is_visible = [&](std::size_t i) { return text[i] > ' ' && text[i] < 0x7f; };
  for (; at >= 2; --at) {
    if (text[at - 1] == '\n' && is_visible(at - 2) && is_visible(at)) return at;
  }
  return 0;
}

}  // namespace zt
