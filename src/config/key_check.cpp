// Every value of a tree against the table of keys.
#include <algorithm>
#include <cmath>

#include "config/keys.h"

namespace zt {
namespace {

std::string shown_json(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (value.is_object() && text.size() > 2) return "a section { ... }";
  constexpr std::size_t longest = 80;
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

std::string lower(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
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
    return "; below 1.2e-38 it becomes 0 in fp32: write 0 or a larger one";
  if (key.maximum_excluded && value < key.maximum && static_cast<double>(static_cast<float>(value)) >= key.maximum) {
    return "; in fp32 it is rounded to " + number_text(key.maximum);
  }
  return "";
}

class Checker {
 public:
  Checker(const ConfigTree& tree, const std::filesystem::path& current_directory, Problems& problems,
          std::vector<std::string>& notices)
      : tree_(tree), current_directory_(current_directory), problems_(problems), notices_(notices) {
    for (const Key& key : key_table()) rows_.emplace(key.path, &key);
  }

  CheckedValues check() {
    for (const char* section : {"model", "data", "optimizer", "scheduler"}) select(section);
    walk(tree_.json, "");
    for (const Key& key : key_table()) {
      if (key.needed) need(key);
    }
    return std::move(result_);
  }

 private:
  // Finds the section's type first: it decides which other rows apply.
  void select(const std::string& section) {
    const std::string path = section + ".type";
    const Key& key = *rows_.find(path)->second;
    const Json* value = tree_.find(path);
    if (value == nullptr) {
      if (key.fallback) result_.selected[path] = key.fallback->get<std::string>();
      return;
    }
    if (!value->is_string()) return;
    for (const std::string& word : key.choices) {
      const auto& given = value->get_ref<const std::string&>();
      if (key.any_case ? lower(word) == lower(given) : word == given) result_.selected[path] = word;
    }
  }

  void walk(const Json& section, const std::string& path) {
    for (const auto& [name, value] : section.items()) {
      if (name.starts_with("_") || name == "$schema") continue;
      if (name.empty()) {
        problems_.push_back({join_path(path, "\"\""), where(join_path(path, name)), "a key without a name: remove it"});
        continue;
      }
      const std::string key_path = join_path(path, name);
      if (const Key* key = row_for(key_path, path, name)) check_value(*key, key_path, value);
    }
  }

  // The row that applies, or null after telling what is wrong.
  const Key* row_for(const std::string& path, const std::string& section, const std::string& name) {
    const std::string selector = selector_of(path);
    const auto selected = result_.selected.find(selector);
    const bool type_known = selector.empty() || selected != result_.selected.end();
    const auto [first, last] = rows_.equal_range(path);
    std::string others;
    for (auto it = first; it != last; ++it) {
      const Key& key = *it->second;
      if (!type_known || key.types.empty()) return &key;
      for (const std::string& type : key.types) {
        if (type == selected->second) return &key;
        if (key.kind == KeyKind::used) others += (others.empty() ? "" : ", ") + type;
      }
    }
    // With a missing or wrong type one message, about the type, is enough.
    if (!type_known && tree_.find(selector) != nullptr) return nullptr;
    if (first != last) {
      const std::string base = selector.substr(0, selector.find('.'));
      const std::string counterpart = counterpart_of(path);
      const std::string fix =
          !counterpart.empty() ? "use " + counterpart
          : where(selector) == "--set" && where(path) != "--set"
              ? "replace the section: --set '" + base + "={\"type\": \"" + selected->second + "\", ...}'"
              : "remove it";
      problem(path,
              "a key of " + selector + " " + others + "; " + selector + " is " + selected->second + " here: " + fix);
      return nullptr;
    }
    std::string suggestion = suggest_key(section, name, result_.selected);
    // The list of a section's keys is told once.
    if (suggestion.starts_with("known here") && !listed_.insert(section).second) suggestion.clear();
    expect_misspelt_section(section, name);
    problem(path, "unknown key" + (suggestion.empty() ? "" : "; " + suggestion));
    return nullptr;
  }

  // A section under a misspelt name is not missing, too.
  void expect_misspelt_section(const std::string& section, const std::string& name) {
    if (!section.empty()) return;
    std::vector<std::string> sections;
    for (const char* path : {"model", "data", "optimizer", "scheduler"}) {
      if (tree_.find(path) == nullptr) sections.emplace_back(path);
    }
    if (const std::string near = nearest_word(name, sections); !near.empty()) result_.wrong.insert(near);
  }

  void check_value(const Key& key, const std::string& path, const Json& value) {
    if (key.kind == KeyKind::alias) return;  // told by replace_old_forms
    if (key.type == KeyType::section) return check_section(key, path, value);
    if (is_auto(value) && key.may_be_auto) {
      if (key.kind == KeyKind::refused) return problem(path, "found \"auto\"; " + key.text);
      if (key.kind == KeyKind::used) result_.given[path] = value;
      if (key.kind == KeyKind::notice) notice(key, path);
      return;
    }
    if (value.is_string() && key.may_be_auto && lower(value.get<std::string>()) == "auto") {
      return problem(path, found_text(key, path, value) + "; did you mean \"auto\"?");
    }
    Json converted;
    if (value.is_null() && key.may_be_null) {
      converted = value;
    } else if (const std::string wrong = convert(key, path, value, converted); !wrong.empty()) {
      return problem(path, wrong);
    }
    const bool harmless = std::find(key.quiet.begin(), key.quiet.end(), converted) != key.quiet.end();
    if (key.kind == KeyKind::refused && !harmless)
      return problem(path, "found " + shown(path, value) + "; " + key.text);
    if (key.kind == KeyKind::notice && !harmless) notice(key, path);
    if (key.kind == KeyKind::used || (key.kind == KeyKind::refused && key.fallback)) result_.given[path] = converted;
  }

  void check_section(const Key& key, const std::string& path, const Json& value) {
    if (value.is_null()) return;
    if (!value.is_object()) {
      if (key.kind == KeyKind::refused) {
        if (value == false) return;
        return problem(path, "found " + shown(path, value) + "; " + key.text);
      }
      return problem(path, found_text(key, path, value) + section_form(path, value));
    }
    const auto enabled = value.find("enabled");
    const bool off = value.empty() || (enabled != value.end() && (*enabled == false || is_auto(*enabled)));
    if (key.kind == KeyKind::refused) {
      if (!off) problem(path, key.text);
      return;
    }
    if (key.kind == KeyKind::notice && !off) notice(key, path);
    walk(value, path);
  }

  std::string found_text(const Key& key, const std::string& path, const Json& value) const {
    return "found " + shown(path, value) + "; allowed: " + describe_allowed(key);
  }

  // "; write {"enabled": true}" where a section was given as the one value that says most.
  std::string section_form(const std::string& path, const Json& value) {
    for (const char* name : {"enabled", "type", "stage", "action", "patience", "every"}) {
      const auto row = rows_.find(join_path(path, name));
      Json converted;
      if (row == rows_.end() || row->second->kind != KeyKind::used) continue;
      if (!value.is_null() && convert_value(*row->second, row->first, value, converted).empty()) {
        return "; write {\"" + std::string(name) + "\": " + converted.dump() + "}";
      }
    }
    return "";
  }

  // The value in the table's type; returns what is wrong, or nothing.
  std::string convert(const Key& key, const std::string& path, const Json& value, Json& out) {
    const std::string wrong = convert_value(key, path, value, out);
    const bool has_advice = wrong.empty() || wrong.find("did you mean") != std::string::npos;
    return has_advice ? wrong : wrong + hint(key, path, value);
  }

  // What to write instead, where that is certain to be accepted.
  std::string hint(const Key& key, const std::string& path, const Json& value) {
    const auto would_do = [&](const Json& other) {
      Json converted;
      if (other.is_discarded() || other.is_string()) return false;
      return other.is_null() ? key.may_be_null : convert_value(key, path, other, converted).empty();
    };
    if (value.is_array()) {
      Json numbers = Json::array();
      for (const Json& element : value) {
        numbers.push_back(element.is_string() ? Json::parse(element.get_ref<const std::string&>(), nullptr, false)
                                              : element);
        if (numbers.back().is_discarded()) return "";
      }
      return numbers != value && would_do(numbers) ? " (without the quotes: " + numbers.dump() + ")" : "";
    }
    if (!value.is_string()) return "";
    std::string text = value.get<std::string>();
    for (const auto& [word, meant] : key.meanings) {
      if (lower(text) == word) return "; did you mean " + meant + "?";
    }
    if (lower(text) == "true" || lower(text) == "false") text = lower(text);
    if (would_do(Json::parse(text, nullptr, false))) return " (without the quotes: " + text + ")";
    if (key.type != KeyType::integers && key.type != KeyType::numbers) return "";
    const Json list = Json::parse("[" + text + "]", nullptr, false);
    return would_do(list) ? " (as a list: " + list.dump() + ")" : "";
  }

  // --set has no quotes of its own: 42 may be a text.
  Json as_text(const std::string& path, const Json& value) const {
    const auto origin = tree_.origins.find(path);
    const bool from_set = origin != tree_.origins.end() && origin->second.text == "--set";
    if (!from_set || !(value.is_number() || value.is_boolean()) || origin->second.written.empty()) return value;
    return origin->second.written;
  }

  std::string convert_value(const Key& key, const std::string& path, const Json& value, Json& out) {
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
      case KeyType::path: return convert_path(path, as_text(path, value), found, out);
      case KeyType::integers:
      case KeyType::numbers:
      case KeyType::strings: return convert_list(key, value, found, out);
      case KeyType::columns: return convert_columns(key, value, found, out);
      case KeyType::section:
      case KeyType::anything: out = value; return "";
    }
    return "";
  }

  std::string convert_choice(const Key& key, const std::string& path, const Json& value, const std::string& found,
                             Json& out) {
    if (!value.is_string()) return found;
    const std::string word = value.get<std::string>();
    const auto is = [&](const std::string& choice) {
      return key.any_case ? lower(choice) == lower(word) : choice == word;
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
    if (word.size() <= 2 && lower(near) != lower(word)) near.clear();
    if (!near.empty()) return found + "; did you mean " + Json(near).dump() + "?";
    if (!key.other_choices.empty()) return "found " + shown(path, value) + "; " + key.other_choices;
    return found;
  }

  std::string convert_path(const std::string& path, const Json& value, const std::string& found, Json& out) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) return found;
    const Origin* origin = tree_.origin_of(path);
    // Outputs start at the current directory, whichever file names them.
    const std::filesystem::path base =
        path == "training.output_dir" || origin == nullptr ? current_directory_ : origin->base;
    out = (base / value.get<std::string>()).lexically_normal().string();
    return "";
  }

  static std::string convert_list(const Key& key, const Json& value, const std::string& found, Json& out) {
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

  static std::string convert_columns(const Key& key, const Json& value, const std::string& found, Json& out) {
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

  void need(const Key& key) {
    if (tree_.find(key.path) != nullptr) return;
    for (std::string path = key.path; path.find('.') != std::string::npos;) {
      path.resize(path.rfind('.'));
      if (result_.wrong.contains(path)) return;  // the section itself is wrong, which has been told
    }
    const std::string selector = selector_of(key.path);
    if (!selector.empty()) {
      const auto selected = result_.selected.find(selector);
      if (selected == result_.selected.end()) return;
      if (!key.types.empty() && std::find(key.types.begin(), key.types.end(), selected->second) == key.types.end())
        return;
    }
    problem(key.path, "missing; allowed: " + describe_allowed(key) + ": " + key.help);
  }

  // A number as it was written: 1e9, not 1000000000.0.
  std::string shown(const std::string& path, const Json& value) const {
    const auto origin = tree_.origins.find(path);
    const bool is_scalar = value.is_number() || value.is_boolean() || value.is_null();
    if (is_scalar && origin != tree_.origins.end() && !origin->second.written.empty()) return origin->second.written;
    return shown_json(value);
  }

  std::string where(const std::string& path) const {
    const Origin* origin = tree_.origin_of(path);
    return origin == nullptr ? "" : origin->text;
  }

  void problem(const std::string& path, std::string text) {
    result_.wrong.insert(path);
    problems_.push_back({path, where(path), std::move(text)});
  }

  void notice(const Key& key, const std::string& path) {
    if (key.text.empty()) return;
    notices_.push_back(where(path) + ": " + path + ": has no effect: " + key.text);
  }

  const ConfigTree& tree_;
  const std::filesystem::path& current_directory_;
  Problems& problems_;
  std::vector<std::string>& notices_;
  std::multimap<std::string, const Key*> rows_;
  std::set<std::string> listed_;  // sections whose keys have been told
  CheckedValues result_;
};

}  // namespace

CheckedValues check_keys(const ConfigTree& tree, const std::filesystem::path& current_directory, Problems& problems,
                         std::vector<std::string>& notices) {
  return Checker(tree, current_directory, problems, notices).check();
}

}  // namespace zt
