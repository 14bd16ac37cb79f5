// Every value of a tree against the table of keys.
#include <algorithm>

#include "config/key_values.h"
#include "config/keys.h"

namespace zt {
namespace {

bool is_off(const Json& value) { return value.is_null() || value == false || is_auto(value); }

// A section that is refused, but switched off, at its top or in each of its parts; or a group of one rank.
bool asks_for_nothing(const Json& section) {
  if (!section.is_object()) return is_off(section);
  const auto enabled = section.find("enabled");
  if (enabled != section.end() && is_off(*enabled)) return true;
  // compression_training: a part's switch lies one deeper.
  if (const auto shared = section.find("shared_parameters"); shared != section.end()) return asks_for_nothing(*shared);
  // Where the section is on, a part with a switch of its own, that is off, has to say so.
  const bool is_on = enabled != section.end();
  bool has_parts = !is_on;
  for (const auto& [name, value] : section.items()) {
    if (value.is_object()) {
      if (!asks_for_nothing(value) || (is_on && !value.contains("enabled"))) return false;
      has_parts = true;
    } else if (!is_on && !name.starts_with("_") && !(name.ends_with("_size") && value.is_number() && value <= 1)) {
      return false;
    }
  }
  return has_parts;
}

class Checker {
 public:
  Checker(const ConfigTree& tree, const std::filesystem::path& current_directory, Problems& problems,
          std::vector<std::string>& notices)
      : tree_(tree), values_(tree, current_directory), problems_(problems), notices_(notices) {
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
      if (key.any_case ? in_lower_case(word) == in_lower_case(given) : word == given) result_.selected[path] = word;
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
      // With a wrong type, what another type would not take says nothing.
      if (!type_known && key.kind == KeyKind::refused && tree_.find(selector) != nullptr) return nullptr;
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
    std::string suggestion = is_remark(name)
                                 ? "a remark stands in a comment, // ..., or under a name that begins with _"
                                 : suggest_key(section, name, result_.selected);
    // The list of a section's keys is told once.
    if (suggestion.starts_with("known here") && !listed_.insert(section).second) suggestion.clear();
    if (suggestion.empty() && section.empty()) suggestion = "DeepSpeed does not know it either: remove it";
    expect_misspelt_section(section, name);
    problem(path, "unknown key" + (suggestion.empty() ? "" : "; " + suggestion));
    return nullptr;
  }

  // JSON has no comments, so people write them as keys.
  static bool is_remark(const std::string& name) {
    const std::string word = in_lower_case(name.substr(std::min(name.size(), name.find_first_not_of("$@"))));
    return name.starts_with("//") || name.starts_with("#") || word == "comment" || word == "comments" ||
           word == "description" || word == "note" || word == "notes";
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
    // DeepSpeed drops it and takes its own default, which is as good where the key changes nothing.
    if (is_auto(value) && key.kind == KeyKind::notice) return notice(key, path);
    if (is_auto(value) && key.kind == KeyKind::refused && !key.quiet.empty()) {
      notices_.push_back(where(path) + ": " + path + ": \"auto\" counts as absent");
      return;
    }
    if (is_auto(value) && key.may_be_auto) {
      if (key.kind == KeyKind::refused) return problem(path, "found \"auto\"; " + key.text);
      if (key.kind == KeyKind::used) result_.given[path] = value;
      return;
    }
    if (value.is_string() && key.may_be_auto && in_lower_case(value.get<std::string>()) == "auto") {
      return problem(path, values_.found_text(key, path, value) + "; did you mean \"auto\"?");
    }
    Json converted;
    if (value.is_null() && key.may_be_null) {
      converted = value;
    } else if (const std::string wrong = values_.convert(key, path, value, converted); !wrong.empty()) {
      return problem(path, wrong);
    }
    const bool harmless = std::find(key.quiet.begin(), key.quiet.end(), converted) != key.quiet.end();
    if (key.kind == KeyKind::refused && !harmless)
      return problem(path, "found " + values_.shown(path, value) + "; " + key.text);
    if (key.kind == KeyKind::notice && !harmless) notice(key, path);
    if (key.kind == KeyKind::used || (key.kind == KeyKind::refused && key.fallback)) result_.given[path] = converted;
  }

  void check_section(const Key& key, const std::string& path, const Json& value) {
    if (value.is_null()) return;
    if (!value.is_object()) {
      if (key.kind == KeyKind::refused) {
        if (value == false) return;
        return problem(path, "found " + values_.shown(path, value) + "; " + key.text);
      }
      return problem(path, values_.found_text(key, path, value) + section_form(path, value));
    }
    if (key.kind == KeyKind::refused) {
      if (!asks_for_nothing(value)) problem(path, key.text);
      return;
    }
    const auto enabled = value.find("enabled");
    const bool off = value.empty() || (enabled != value.end() && (*enabled == false || is_auto(*enabled)));
    if (key.kind == KeyKind::notice && !off) notice(key, path);
    walk(value, path);
  }

  // "; write {"enabled": true}" where a section was given as the one value that says most.
  std::string section_form(const std::string& path, const Json& value) {
    for (const char* name : {"enabled", "type", "stage", "device", "action", "patience", "every"}) {
      const auto row = rows_.find(join_path(path, name));
      Json converted;
      if (row == rows_.end() || row->second->kind != KeyKind::used) continue;
      if (!value.is_null() && values_.convert(*row->second, row->first, value, converted).empty()) {
        return "; write {\"" + std::string(name) + "\": " + converted.dump() + "}";
      }
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
  ValueReader values_;
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
