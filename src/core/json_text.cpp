#include "core/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/json.h"

namespace zt {

namespace {

void append_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, 40> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::general, 9).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  out += text;
  if (text.find_first_not_of("-0123456789") == std::string_view::npos) out += ".0";  // readers see: no integer
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
    append_number(out, value.get<double>());
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

JsonLine::JsonLine(std::string& out) : out_(out) { out_ += '{'; }

JsonLine& JsonLine::key(std::string_view name) {
  if (!first_) out_ += ", ";
  first_ = false;
  out_ += '"';
  out_ += name;
  out_ += "\": ";
  return *this;
}

void JsonLine::text(std::string_view name, std::string_view value) {
  key(name);
  out_ += '"';
  out_ += value;
  out_ += '"';
}

void JsonLine::boolean(std::string_view name, bool value) {
  key(name);
  out_ += value ? "true" : "false";
}

void JsonLine::integer(std::string_view name, std::int64_t value) {
  key(name);
  std::array<char, 24> buffer{};
  out_.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

void JsonLine::number(std::string_view name, double value) {
  key(name);
  append_number(out_, value);
}

void JsonLine::end() { out_ += "}\n"; }

}  // namespace zt
