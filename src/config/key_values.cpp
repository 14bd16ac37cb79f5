#include "config/key_values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "core/json.h"

namespace zt {

std::string in_lower_case(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

namespace {

std::string shown_json(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (value.is_object() && text.size() > 2) return "a section { ... }";
  constexpr std::size_t longest = 80;
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

bool in_range(const Key& key, double value) {
  if (!std::isfinite(value)) return false;
  if (key.minimum_excluded ? value <= key.minimum : value < key.minimum) return false;
  return key.maximum_excluded ? value < key.maximum : value <= key.maximum;
}

// The value as an integer of 64 bits, also when written 5e8 or 2.0.
std::optional<Json> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return Json(static_cast<std::int64_t>(number));
  }
  if (value.is_number_integer()) return Json(value.get<std::int64_t>());
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::abs(number) < 0x1p63 && number == std::floor(number)) return Json(static_cast<std::int64_t>(number));
  }
  return std::nullopt;
}

// Why fp32, in which the run computes, cannot take a number of the config; empty: it can.
std::string beyond_fp32(const Key& key, double value) {
  constexpr double largest = std::numeric_limits<float>::max();
  constexpr double smallest = std::numeric_limits<float>::min();
  if (std::abs(value) > largest) return "; fp32 holds no number beyond 3.4e38";
  if (value != 0.0 && std::abs(value) < smallest)
    return std::string("; below 1.2e-38 it becomes 0 in fp32: write ") + (in_range(key, 0.0) ? "0 or " : "") +
           "a larger one";
  if (key.maximum_excluded && value < key.maximum && static_cast<double>(static_cast<float>(value)) >= key.maximum) {
    return "; in fp32 it is rounded to " + number_text(key.maximum);
  }
  return "";
}

std::string convert_list(const Key& key, const Json& value, const std::string& found, Json& out) {
  if (!value.is_array() || value.size() < key.shortest || value.size() > key.longest) return found;
  out = Json::array();
  for (const Json& element : value) {
    if (key.type == KeyType::strings) {
      if (!element.is_string()) return found;
      const auto& word = element.get_ref<const std::string&>();
      if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), word) == key.choices.end()) {
        const std::string near = nearest_word(word, key.choices);
        return found + (near.empty() ? "" : "; did you mean \"" + near + "\"?");
      }
      out.push_back(element);
      continue;
    }
    Json number;
    if (key.type == KeyType::integers) {
      const auto integer = as_integer(element);
      if (!integer) return found;
      number = *integer;
    } else {
      if (!element.is_number()) return found;
      number = element.get<double>() + 0.0;
    }
    if (!in_range(key, number.get<double>())) return found;
    if (key.type == KeyType::numbers) {
      const std::string beyond = beyond_fp32(key, number.get<double>());
      if (!beyond.empty()) return found + beyond;
    }
    out.push_back(number);
  }
  return "";
}

std::string convert_columns(const Key& key, const Json& value, const std::string& found, Json& out) {
  const Json list = value.is_array() ? value : Json::array({value});
  if (list.size() < key.shortest) return found;
  out = Json::array();
  for (const Json& element : list) {
    const auto number = as_integer(element);
    const bool named = element.is_string() && !element.get_ref<const std::string&>().empty();
    if (!named && (!number || number->get<std::int64_t>() < 1)) return found;
    out.push_back(named ? element : *number);
  }
  return "";
}

}  // namespace

std::string ValueReader::found_text(const Key& key, const std::string& path, const Json& value) const {
  return "found " + shown(path, value) + "; allowed: " + describe_allowed(key);
}

std::string ValueReader::shown(const std::string& path, const Json& value) const {
  const auto origin = tree_.origins.find(path);
  const bool is_scalar = value.is_number() || value.is_boolean() || value.is_null();
  if (is_scalar && origin != tree_.origins.end() && !origin->second.written.empty()) return origin->second.written;
  return shown_json(value);
}

std::string ValueReader::convert(const Key& key, const std::string& path, const Json& value, Json& out) const {
  const std::string wrong = convert_value(key, path, value, out);
  const bool has_advice = wrong.empty() || wrong.find("did you mean") != std::string::npos;
  return has_advice ? wrong : wrong + hint(key, path, value);
}

// What to write instead, where that is certain to be accepted.
std::string ValueReader::hint(const Key& key, const std::string& path, const Json& value) const {
  const auto would_do = [&](const Json& other) {
    Json converted;
    if (other.is_discarded() || other.is_string()) return false;
    return other.is_null() ? key.may_be_null : convert_value(key, path, other, converted).empty();
  };
  // A longer text is no number or list within quotes, and may hold a JSON too deep to be compared or shown.
  constexpr std::size_t longest_hint = 256;
  if (value.is_array()) {
    Json numbers = Json::array();
    for (const Json& element : value) {
      const bool is_short = element.is_string() && element.get_ref<const std::string&>().size() <= longest_hint;
      numbers.push_back(is_short ? Json::parse(element.get_ref<const std::string&>(), nullptr, false) : element);
      if (numbers.back().is_discarded()) return "";
    }
    return numbers != value && would_do(numbers) ? " (without the quotes: " + numbers.dump() + ")" : "";
  }
  if (!value.is_string()) return "";
  std::string text = value.get<std::string>();
  if (text.size() > longest_hint) return "";
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(text.find_last_not_of(" \t") + 1);
  for (const auto& [word, meant] : key.meanings) {
    if (in_lower_case(text) == word) return "; did you mean " + meant + "?";
  }
  if (key.type == KeyType::boolean) {
    const std::string word = in_lower_case(text);
    if (word == "yes" || word == "on") return "; write true";
    if (word == "no" || word == "off") return "; write false";
  }
  if (key.type == KeyType::number || key.type == KeyType::integer) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && !std::isfinite(number)) return "; that is not a finite number";
  }
  if (in_lower_case(text) == "true" || in_lower_case(text) == "false") text = in_lower_case(text);
  if (would_do(Json::parse(text, nullptr, false))) return " (without the quotes: " + text + ")";
  if (key.type == KeyType::strings) {
    const Json list = Json::array({text});
    return would_do(list) ? " (as a list: " + list.dump() + ")" : "";
  }
  if (key.type != KeyType::integers && key.type != KeyType::numbers) return "";
  const Json list = Json::parse("[" + text + "]", nullptr, false);
  return would_do(list) ? " (as a list: " + list.dump() + ")" : "";
}

// --set has no quotes of its own: 42 may be a text.
Json ValueReader::as_text(const std::string& path, const Json& value) const {
  const auto origin = tree_.origins.find(path);
  const bool from_set = origin != tree_.origins.end() && origin->second.text == "--set";
  if (!from_set || !(value.is_number() || value.is_boolean()) || origin->second.written.empty()) return value;
  return origin->second.written;
}

std::string ValueReader::convert_value(const Key& key, const std::string& path, const Json& value, Json& out) const {
  const std::string found = found_text(key, path, value);
  switch (key.type) {
    case KeyType::boolean: out = value; return value.is_boolean() ? "" : found;
    case KeyType::integer: {
      const auto integer = as_integer(value);
      if (integer) out = *integer;
      if (integer && in_range(key, out.get<double>())) return "";
      if (value.is_number() && !integer && std::isinf(key.maximum) && std::abs(value.get<double>()) >= 0x1p63) {
        return found + ", of at most 64 bits (9223372036854775807)";
      }
      return found;
    }
    case KeyType::number:
      if (value.is_number()) {
        const double number = value.get<double>() + 0.0;  // -0 becomes 0
        out = number;
        if (in_range(key, number)) {
          const std::string beyond = beyond_fp32(key, number);
          return beyond.empty() ? "" : found + beyond;
        }
      }
      if (value.is_string() && !key.choices.empty()) return convert_choice(key, path, value, found, out);
      return found;
    case KeyType::string: out = as_text(path, value); return out.is_string() ? "" : found;
    case KeyType::choice: return convert_choice(key, path, value, found, out);
    case KeyType::path: return convert_path(key, path, as_text(path, value), found, out);
    case KeyType::integers:
    case KeyType::numbers:
    case KeyType::strings: return convert_list(key, value, found, out);
    case KeyType::columns: return convert_columns(key, value, found, out);
    case KeyType::section:
    case KeyType::anything: out = value; return "";
  }
  return "";
}

std::string ValueReader::convert_choice(const Key& key, const std::string& path, const Json& value,
                                        const std::string& found, Json& out) const {
  if (!value.is_string()) return found;
  const std::string word = value.get<std::string>();
  const auto is = [&](const std::string& choice) {
    return key.any_case ? in_lower_case(choice) == in_lower_case(word) : choice == word;
  };
  for (const std::string& choice : key.choices) {
    if (is(choice)) {
      out = choice;
      return "";
    }
  }
  for (const auto& [choice, use] : key.not_here) {
    if (is(choice)) return "found \"" + word + "\"; " + use;
  }
  std::string near = choice_meant(word, key.choices);
  // Names of two signs are each as near as the other: O4 is no misspelling of O0.
  if (near.empty()) near = nearest_word(word, key.choices);
  if (word.size() <= 2 && in_lower_case(near) != in_lower_case(word)) near.clear();
  if (!near.empty()) return found + "; did you mean " + Json(near).dump() + "?";
  if (!key.other_choices.empty()) return "found " + shown(path, value) + "; " + key.other_choices;
  return found;
}

std::string ValueReader::convert_path(const Key& key, const std::string& path, const Json& value,
                                      const std::string& found, Json& out) const {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) return found;
  const std::string word = value.get<std::string>();
  if (std::find(key.choices.begin(), key.choices.end(), word) != key.choices.end()) {
    out = word;
    return "";
  }
  // "character" is a word that was meant, "gpt2/vocab.json" is a path.
  if (!key.choices.empty() && word.find_first_of("/.") == std::string::npos) {
    std::string near = choice_meant(word, key.choices);
    if (near.empty()) near = nearest_word(word, key.choices);
    if (!near.empty()) return found + "; did you mean " + Json(near).dump() + "?";
  }
  const Origin* origin = tree_.origin_of(path);
  // Outputs start at the current directory, whichever file names them.
  const std::filesystem::path base =
      path == "training.output_dir" || origin == nullptr ? current_directory_ : origin->base;
  out = (base / value.get<std::string>()).lexically_normal().string();
  return "";
}

}  // namespace zt
