#include "core/number_text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace zt {

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

namespace {

// Three significant digits with the unit that fits.
std::string with_unit(double value, const std::array<const char*, 5>& units, double step) {
  std::size_t unit = 0;
  while (std::abs(value) >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  const int decimals = unit == 0 ? (value == std::floor(value) ? 0 : 2) : (value < 10 ? 2 : value < 100 ? 1 : 0);
  return fixed(value, decimals) + units.at(unit);
}

}  // namespace

std::string bytes_in_words(std::int64_t bytes) {
  return with_unit(static_cast<double>(bytes), {" B", " kB", " MB", " GB", " TB"}, 1000.0);
}

std::string count_in_words(double count) { return with_unit(count, {"", " k", " M", " G", " T"}, 1000.0); }

}  // namespace zt
