#include "app/amounts.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include "core/errors.h"

namespace zt {

namespace {

// 1000 or 1024 to the power that a letter stands for; 0: none.
double power_of(char letter, double base) {
  switch (letter) {
    case 'k':
    case 'K': return base;
    case 'M': return base * base;
    case 'G': return base * base * base;
    case 'T': return base * base * base * base;
    default: return 0.0;
  }
}

// The unit's worth; 0: it is none.
double worth_of(std::string_view unit, bool of_bytes) {
  if (of_bytes && unit.ends_with("/s")) unit.remove_suffix(2);
  if (of_bytes && unit.ends_with('B')) unit.remove_suffix(1);
  if (unit.empty()) return 1.0;
  if (!of_bytes && unit == "B") return 1e9;
  if (of_bytes && unit.size() == 2 && unit[1] == 'i') return power_of(unit[0], 1024.0);
  return unit.size() == 1 ? power_of(unit[0], 1000.0) : 0.0;
}

double amount(const std::string& option, const std::string& text, bool of_bytes) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const double worth = error == std::errc() ? worth_of(unit, of_bytes) : 0.0;
  value *= worth;
  if (!(value >= 1.0 && value <= 1e18)) {
    throw UserError(option + " must be " +
                    (of_bytes ? "a number of bytes, as 80GB or 64GiB" : "a number, as 7.5e9 or 7.5B") +
                    ", from 1 to 1e18, not \"" + text + "\"");
  }
  return value;
}

}  // namespace

double count_of(const std::string& option, const std::string& text) { return amount(option, text, false); }
double bytes_of(const std::string& option, const std::string& text) { return amount(option, text, true); }

}  // namespace zt
