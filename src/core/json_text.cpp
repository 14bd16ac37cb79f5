#include "core/json_text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace zt {

namespace {

std::string number_text(double number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 40> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.9g", number);
  std::string text = buffer.data();
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";  // readers see that it is no integer
  return text;
}

void write(const nlohmann::ordered_json& value, int indent, int depth, std::string& out) {
  const auto new_line = [&](int levels) {
    if (indent >= 0) out += "\n" + std::string(static_cast<std::size_t>(indent * levels), ' ');
  };
  const auto separate = [&](bool first) {
    if (!first) out += indent >= 0 ? "," : ", ";
    new_line(depth + 1);
  };
  if (value.is_number_float()) {
    out += number_text(value.get<double>());
  } else if (value.is_object() && !value.empty()) {
    out += '{';
    bool first = true;
    for (const auto& item : value.items()) {
      separate(first);
      first = false;
      out += nlohmann::ordered_json(item.key()).dump() + ": ";
      write(item.value(), indent, depth + 1, out);
    }
    new_line(depth);
    out += '}';
  } else if (value.is_array() && !value.empty()) {
    out += '[';
    bool first = true;
    for (const auto& element : value) {
      separate(first);
      first = false;
      write(element, indent, depth + 1, out);
    }
    new_line(depth);
    out += ']';
  } else {
    out += value.dump();
  }
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  std::string out;
  write(value, indent, 0, out);
  return out;
}

}  // namespace zt
