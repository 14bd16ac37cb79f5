#include "data/csv_number.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "data/message_text.h"

namespace zt {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string quoted(std::string_view field) { return "\"" + shown(field, 40) + "\""; }

std::string lower(std::string_view word) {
  std::string text(word);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_missing(std::string_view field) {
  static constexpr std::array<std::string_view, 7> words = {"", "na", "n/a", "nan", "null", "none", "?"};
  return field.size() <= 4 && std::ranges::find(words, lower(field)) != words.end();
}

bool is_decimal_comma(std::string_view field) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const std::size_t comma = field.find(',');
  return comma != std::string_view::npos && comma > 0 && comma + 1 < field.size() && is_digit(field[comma - 1]) &&
         is_digit(field[comma + 1]);
}

}  // namespace

CsvNumber read_csv_number(std::string_view field) {
  constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
  const std::string_view text = without_blanks(field);
  CsvNumber number;
  if (is_missing(text)) {
    number.fault = text.empty() ? "empty: a value is missing" : quoted(field) + ": a value is missing";
    return number;
  }
  // from_chars takes no +.
  const std::string_view digits = text.size() > 1 && text[0] == '+' && text[1] != '-' ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number.value);
  const bool whole = end == digits.data() + digits.size();
  if (error == std::errc::result_out_of_range && whole) {
    // strtod tells the two apart: what is too small for a double is as good as 0, what is too large is not.
    number.value = std::strtod(std::string(digits).c_str(), nullptr);
    if (std::abs(number.value) > largest) number.fault = quoted(field) + ", more than fp32 holds (3.4e38)";
  } else if (error != std::errc{} || !whole) {
    number.fault = quoted(field) + ", not a number" + (is_decimal_comma(text) ? " (decimals follow a point: 1.5)" : "");
  } else if (!std::isfinite(number.value)) {
    number.fault = quoted(field) + ", not finite";
  } else if (std::abs(number.value) > largest) {
    number.fault = quoted(field) + ", more than fp32 holds (3.4e38)";
  }
  if (!number.fault.empty()) number.value = 0.0;
  return number;
}

}  // namespace zt
