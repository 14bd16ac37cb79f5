#include "config/keys.h"

#include <cmath>

namespace zt {

Key used_key(KeyType type, std::string path, std::string help) {
  Key key;
  key.type = type;
  key.path = std::move(path);
  key.help = std::move(help);
  return key;
}

Key notice_key(KeyType type, std::string path, std::string help, std::string why) {
  Key key = used_key(type, std::move(path), std::move(help));
  key.kind = KeyKind::notice;
  key.text = std::move(why);
  return key;
}

Key refused_key(KeyType type, std::string path, std::string help, std::string use) {
  Key key = used_key(type, std::move(path), std::move(help));
  key.kind = KeyKind::refused;
  key.text = std::move(use);
  return key;
}

Key alias_key(std::string path, std::string new_path) {
  Key key = used_key(KeyType::anything, std::move(path), "old name of " + new_path);
  key.kind = KeyKind::alias;
  key.text = std::move(new_path);
  return key;
}

Key old_form_key(std::string path, std::string new_path, Json value) {
  Key key = used_key(KeyType::boolean, std::move(path), "old form of \"" + new_path + "\": " + value.dump());
  key.kind = KeyKind::old_form;
  key.text = std::move(new_path);
  key.stands_for = std::move(value);
  return key;
}

const std::vector<Key>& key_table() {
  static const std::vector<Key> table = [] {
    std::vector<Key> rows;
    add_own_keys(rows);
    add_general_keys(rows);
    add_optimizer_keys(rows);
    add_scheduler_keys(rows);
    add_zero_keys(rows);
    add_other_sections(rows);
    return rows;
  }();
  return table;
}

std::string selector_of(const std::string& path) {
  for (const char* section : {"model", "data", "optimizer", "scheduler"}) {
    if (path.starts_with(std::string(section) + ".") && path != std::string(section) + ".type") {
      return std::string(section) + ".type";
    }
  }
  return "";
}

std::string number_text(double value) {
  return Json(value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<std::int64_t>(value))
                                                                   : Json(value))
      .dump();
}

namespace {

std::string range_text(const Key& key) {
  std::string text;
  if (std::isfinite(key.minimum)) text += (key.minimum_excluded ? " above " : " from ") + number_text(key.minimum);
  if (std::isfinite(key.maximum)) text += (key.maximum_excluded ? " to below " : " to ") + number_text(key.maximum);
  return text;
}

std::string list_text(const Key& key, const std::string& what) {
  std::string text = "a list of ";
  if (key.shortest == key.longest) {
    text += std::to_string(key.shortest) + " ";
  } else if (key.shortest > 0) {
    text += "at least " + std::to_string(key.shortest) + " ";
  }
  return text + what + range_text(key);
}

std::string list_of_words_text(const Key& key) {
  std::string text = "a list of";
  for (const std::string& word : key.choices) {
    text += (&word == &key.choices.front() ? " \"" : &word == &key.choices.back() ? " and \"" : ", \"") + word + "\"";
  }
  return text;
}

std::string base_text(const Key& key) {
  switch (key.type) {
    case KeyType::section: return "a section { ... }";
    case KeyType::boolean: return "";  // two choices
    case KeyType::integer: return "an integer" + range_text(key);
    case KeyType::number: return "a number" + range_text(key);
    case KeyType::string: return "a text in quotes";
    case KeyType::choice: return "";
    case KeyType::path: return "a path in quotes";
    case KeyType::integers: return list_text(key, "integers");
    case KeyType::numbers: return list_text(key, "numbers");
    case KeyType::strings: return key.choices.empty() ? list_text(key, "texts") : list_of_words_text(key);
    case KeyType::columns:
      return list_text(key, "column names or numbers (the first is 1), or one of them without a list");
    case KeyType::anything: break;
  }
  return "anything";
}

}  // namespace

std::string describe_allowed(const Key& key) {
  std::vector<std::string> parts;
  if (const std::string base = base_text(key); !base.empty()) parts.push_back(base);
  if (key.type != KeyType::strings) {
    for (const std::string& word : key.choices) parts.push_back(Json(word).dump());
  }
  if (key.type == KeyType::boolean) parts.insert(parts.end(), {"true", "false"});
  if (key.may_be_auto) parts.emplace_back("\"auto\"");
  if (key.may_be_null) parts.emplace_back("null");
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " or " : ", ";
    text += parts[i];
  }
  if (key.any_case) text += ", in upper or lower case";
  return text;
}

std::string key_help() {
  std::string text;
  for (const Key& key : key_table()) {
    text += key.path;
    for (std::size_t i = 0; i < key.types.size(); ++i) text += (i == 0 ? " (" : ", ") + key.types[i];
    if (!key.types.empty()) text += ")";
    text += ": ";
    if (key.kind == KeyKind::alias || key.kind == KeyKind::old_form) {
      text += key.help + "\n";
      continue;
    }
    text += key.help;
    if (key.type != KeyType::section && key.type != KeyType::anything) text += "; " + describe_allowed(key);
    if (key.fallback) text += "; default " + key.fallback->dump();
    if (key.needed) text += "; required";
    if (key.kind == KeyKind::notice && !key.text.empty()) text += "; no effect: " + key.text;
    if (key.kind == KeyKind::refused) text += "; refused: " + key.text;
    text += "\n";
  }
  return text;
}

}  // namespace zt
