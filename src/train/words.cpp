#include "train/words.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "core/json.h"

namespace zt {

std::string seconds_in_words(double seconds) {
  if (seconds < 60.0) return fixed(seconds, 1) + " s";
  const auto whole = static_cast<long long>(seconds);
  std::array<char, 64> text{};
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return text.data();
}

std::string count_exactly(double count) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.17g", count);
  return text.data();
}

std::string significant(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

void put_number(nlohmann::ordered_json& object, const std::string& key, double value) {
  if (std::isfinite(value)) {
    object[key] = value;
    return;
  }
  object[key] = nullptr;
  object["not_finite"] = std::isnan(value) ? "nan" : "inf";
}

}  // namespace zt
