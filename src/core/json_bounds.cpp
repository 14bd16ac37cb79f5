#include "core/json_bounds.h"

#include <vector>

namespace zt {
namespace {

// The closing quote of the text that is opened at `at`, or the end.
std::size_t end_of_text(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

}  // namespace

std::string beyond_json_bounds(std::string_view text, const JsonBounds& bounds) {
  std::vector<std::size_t> names;  // seen in each object or list that is open
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"': at = end_of_text(text, at); break;
      case '{':
      case '[':
        if (names.size() == bounds.deepest)
          return "is nested more than " + std::to_string(bounds.deepest) + " deep at its byte " + std::to_string(at);
        names.push_back(0);
        break;
      case '}':
      case ']':
        if (!names.empty()) names.pop_back();
        break;
      case ':':
        if (!names.empty() && ++names.back() > bounds.most_names) {
          return "has an object of more than " + std::to_string(bounds.most_names) + " names at its byte " +
                 std::to_string(at);
        }
        break;
      default: break;
    }
  }
  return {};
}

}  // namespace zt
