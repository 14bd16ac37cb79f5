#include "inference/text_stream.h"

#include <algorithm>

#include "data/utf8.h"

namespace zt {

namespace {

constexpr char32_t replacement_character = 0xfffd;

// Whether more bytes could still make a character of these, which are none.
bool may_become_character(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes.front());
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() >= length) return false;
  return std::all_of(bytes.begin() + 1, bytes.end(),
                     [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; });
}

}  // namespace

std::string TextStream::add(std::string_view bytes) {
  if (stopped_) return "";
  held_ += bytes;
  std::size_t end = held_.size();
  if (!stop_.empty()) {
    if (const std::size_t at = held_.find(stop_); at != std::string::npos) {
      stopped_ = true;
      return give_out(at, true);
    }
    // The longest end that the stop text begins with.
    for (std::size_t length = std::min(stop_.size() - 1, end); length > 0; --length) {
      if (std::string_view(held_).substr(end - length) == std::string_view(stop_).substr(0, length)) {
        end -= length;
        break;
      }
    }
  }
  return give_out(end, false);
}

std::string TextStream::finish() { return stopped_ ? "" : give_out(held_.size(), true); }

std::string TextStream::give_out(std::size_t end, bool is_end) {
  std::string text;
  const std::string_view bytes = std::string_view(held_).substr(0, end);
  std::size_t at = 0;
  while (at < end) {
    const std::size_t start = at;
    if (next_code_point(bytes, at) != no_code_point) {
      text.append(bytes, start, at - start);
      continue;
    }
    if (!is_end && may_become_character(bytes.substr(start))) break;
    append_utf8(text, replacement_character);
    ++at;
  }
  held_.erase(0, at);
  return text;
}

}  // namespace zt
