#include "report/markup.h"

#include <cassert>
#include <cstdint>

namespace zt {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

// Bytes of the character that begins at `at`; 0: there is none that is valid.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(text[index]); };
  const std::uint8_t first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return 0;
  }
  const std::uint8_t second = byte(at + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  // U+FFFE and U+FFFF are not allowed in XML.
  const bool excluded = first == 0xef && second == 0xbf && byte(at + 2) >= 0xbe;
  return overlong || no_character || excluded ? 0 : length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    const char c = text[i];
    if (length == 0) {
      out += replacement;
    } else if (length > 1) {
      out += text.substr(i, length);
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if ((static_cast<std::uint8_t>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += replacement;
    } else {
      out += c;
    }
    i += length == 0 ? 1 : length;
  }
  return out;
}

void Markup::start(std::string_view name, Attributes attributes) {
  out_ += '<';
  out_ += name;
  for (const auto& [key, value] : attributes) {
    out_ += ' ';
    out_ += key;
    out_ += "=\"";
    out_ += escaped(value);
    out_ += '"';
  }
}

void Markup::open(std::string_view name, Attributes attributes) {
  start(name, attributes);
  out_ += '>';
  opened_.emplace_back(name);
}

void Markup::close() {
  assert(!opened_.empty());
  out_ += "</" + opened_.back() + ">";
  opened_.pop_back();
}

void Markup::empty(std::string_view name, Attributes attributes) {
  start(name, attributes);
  out_ += "/>";
}

void Markup::text(std::string_view text) { out_ += escaped(text); }

void Markup::element(std::string_view name, Attributes attributes, std::string_view content) {
  open(name, attributes);
  text(content);
  close();
}

std::string Markup::take() {
  assert(opened_.empty());
  return std::move(out_);
}

}  // namespace zt
