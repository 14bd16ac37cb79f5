#include "data/terminal_text.h"

#include "data/message_text.h"
#include "data/utf8.h"

namespace zt {

std::string shown_lines(std::string_view text) {
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const char32_t c = next_code_point(text, offset);
    if (c == no_code_point) ++offset;  // the byte alone
    const std::string_view character = text.substr(start, offset - start);
    const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == no_code_point;
    if (is_control && c != '\n' && c != '\t') {
      out += shown(character);
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace zt
