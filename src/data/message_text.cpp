#include "data/message_text.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "data/utf8.h"

namespace zt {
namespace {

std::string escape(const char* format, std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), format, static_cast<unsigned>(value));
  return text.data();
}

// Characters that draw nothing, break the line or turn the direction of the rest of it.
bool is_invisible(char32_t c) {
  return (c >= 0x80 && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

// The character at `offset` as it is shown; moves offset past it.
std::string next_shown(std::string_view text, std::size_t& offset) {
  const std::size_t start = offset;
  const char32_t c = next_code_point(text, offset);
  if (c == no_code_point) {
    offset = start + 1;
    return escape("\\x%02x", static_cast<unsigned char>(text[start]));
  }
  switch (c) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  if (c < 0x20 || c == 0x7f) return escape("\\x%02x", c);
  if (is_invisible(c)) return escape("\\u%04x", c);
  return std::string(text.substr(start, offset - start));
}

}  // namespace

std::string shown(std::string_view text, std::size_t longest) {
  std::string out;
  std::size_t offset = 0;
  for (std::size_t count = 0; offset < text.size(); ++count) {
    if (count == longest) return out + "...";
    out += next_shown(text, offset);
  }
  return out;
}

std::string shown_path(const std::string& path) {
  constexpr std::size_t longest = 400;
  constexpr std::size_t end = 100;
  if (path.size() <= longest) return shown(path, longest);
  return shown(path, longest - end) + shown(std::string_view(path).substr(path.size() - end), end);
}

std::string origin_of(const std::string& key, const std::string& path) { return key + ": " + shown_path(path); }

std::string file_name(const std::string& path) { return shown(std::filesystem::path(path).filename().string(), 100); }

std::string shown(double number) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return std::string(text.data(), end);
}

std::string counted(std::int64_t count, std::string_view singular, std::string_view plural) {
  std::string text = std::to_string(count) + " ";
  if (count == 1) return text.append(singular);
  return plural.empty() ? text.append(singular) + "s" : text.append(plural);
}

std::string at_most(std::int64_t count) { return std::to_string(count) + (count > 1 ? " or less" : ""); }

}  // namespace zt
