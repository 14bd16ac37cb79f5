// What GPT-2's pattern asks of a character: \p{L}, \p{N} and \s, as tiktoken and tokenizers answer (Unicode 16).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace zt {

enum class CharacterClass : std::uint8_t { other, letter, number, space };

class UnicodeClasses {
 public:
  // The one table, made by the first caller in about a millisecond; several threads may call.
  static const UnicodeClasses& table();

  CharacterClass of(char32_t code_point) const {  // below code_point_count
    return blocks_[block_of_[code_point >> block_bits]][code_point & (block_size - 1)];
  }
  CharacterClass of_ascii(unsigned char byte) const { return ascii_[byte]; }  // below 128

 private:
  static constexpr unsigned block_bits = 8;
  static constexpr char32_t block_size = 1U << block_bits;
  using Block = std::array<CharacterClass, block_size>;

  UnicodeClasses();

  std::array<CharacterClass, 128> ascii_{};
  std::vector<std::uint16_t> block_of_;
  std::vector<Block> blocks_;  // equal ones once
};

}  // namespace zt
