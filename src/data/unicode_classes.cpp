#include "data/unicode_classes.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <map>

#include "data/utf8.h"

namespace zt {
namespace {

// The version that ids are made by, whichever the installed ICU knows: a vocabulary must not split a text in another
// way after an upgrade of the system. tiktoken 0.14 and tokenizers 0.23 both know this one.
constexpr std::uint8_t unicode_version = 16;

struct Range {
  char32_t first, last;
};

// Assigned in Unicode 15.1 and 16: what an older ICU takes for unassigned.
constexpr Range newer_letters[] = {{0x1c89, 0x1c8a},   {0xa7cb, 0xa7cd},   {0xa7da, 0xa7dc},   {0x105c0, 0x105f3},
                                   {0x10d4a, 0x10d65}, {0x10d6f, 0x10d85}, {0x10ec2, 0x10ec4}, {0x11380, 0x11389},
                                   {0x1138b, 0x1138b}, {0x1138e, 0x1138e}, {0x11390, 0x113b5}, {0x113b7, 0x113b7},
                                   {0x113d1, 0x113d1}, {0x113d3, 0x113d3}, {0x11bc0, 0x11be0}, {0x13460, 0x143fa},
                                   {0x16100, 0x1611d}, {0x16d40, 0x16d6c}, {0x18cff, 0x18cff}, {0x1e5d0, 0x1e5ed},
                                   {0x1e5f0, 0x1e5f0}, {0x2ebf0, 0x2ee5d}};
constexpr Range newer_numbers[] = {{0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9}, {0x16130, 0x16139},
                                   {0x16d70, 0x16d79}, {0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa}};

CharacterClass class_of(UCharCategory category) {
  const std::uint32_t mask = U_MASK(category);
  if ((mask & U_GC_L_MASK) != 0) return CharacterClass::letter;
  if ((mask & U_GC_N_MASK) != 0) return CharacterClass::number;
  return CharacterClass::other;
}

bool is_newer_than_ours(UChar32 code_point) {
  UVersionInfo age;
  u_charAge(code_point, age);
  return age[0] > unicode_version;
}

}  // namespace

UnicodeClasses::UnicodeClasses() {
  std::vector<CharacterClass> all(code_point_count, CharacterClass::other);
  u_enumCharTypes(
      [](const void* context, UChar32 start, UChar32 limit, UCharCategory category) -> UBool {
        auto& classes =
            *const_cast<std::vector<CharacterClass>*>(static_cast<const std::vector<CharacterClass>*>(context));
        std::fill(classes.begin() + start, classes.begin() + limit, class_of(category));
        return 1;
      },
      &all);
  UVersionInfo known;
  u_getUnicodeVersion(known);
  if (known[0] > unicode_version) {
    for (char32_t c = 0; c < code_point_count; ++c) {
      if (all[c] != CharacterClass::other && is_newer_than_ours(static_cast<UChar32>(c)))
        all[c] = CharacterClass::other;
    }
  }
  for (const auto& [first, last] : newer_letters) std::fill(&all[first], &all[last] + 1, CharacterClass::letter);
  for (const auto& [first, last] : newer_numbers) std::fill(&all[first], &all[last] + 1, CharacterClass::number);
  // White_Space; no character above is one.
  for (char32_t c = 0; c < 0x10000; ++c) {
    if (u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE)) all[c] = CharacterClass::space;
  }

  std::copy_n(all.begin(), ascii_.size(), ascii_.begin());
  std::map<Block, std::uint16_t> seen;
  for (std::size_t first = 0; first < all.size(); first += block_size) {
    Block block;
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), block_size, block.begin());
    const auto [found, is_new] = seen.emplace(block, static_cast<std::uint16_t>(blocks_.size()));
    if (is_new) blocks_.push_back(block);
    block_of_.push_back(found->second);
  }
}

const UnicodeClasses& UnicodeClasses::table() {
  static const UnicodeClasses classes;
  return classes;
}

}  // namespace zt
