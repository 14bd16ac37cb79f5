#include "app/init/commented_config.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "config/keys.h"
#include "core/json.h"

namespace zt {

namespace {

constexpr std::size_t widest = 110;  // signs of a line

// The lines of a comment, wrapped.
std::string comment(const std::string& text, const std::string& indent) {
  std::string result, line = indent + "//";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + word.size() + 1 > widest) {
      result += line + "\n";
      line = indent + "//";
    }
    line += " " + word;
  }
  return result + line + "\n";
}

std::string explanation_of(const Key& key) {
  const bool names_choices =
      !key.choices.empty() && std::all_of(key.choices.begin(), key.choices.end(),
                                          [&](const auto& word) { return key.help.find(word) != std::string::npos; });
  const bool says_all =
      key.type == KeyType::section || key.type == KeyType::path || key.type == KeyType::string || names_choices;
  return key.help + (says_all ? "" : " (" + describe_allowed(key) + ")");
}

class Writer {
 public:
  explicit Writer(const CommentedConfig& config) : config_(config) {}

  std::string section(const Json& section, const std::string& path, const std::string& indent) const {
    std::string text = "{\n";
    std::size_t left = section.size();
    for (const auto& [name, value] : section.items()) {
      const std::string key_path = path.empty() ? name : path + "." + name;
      if (path.empty() && value.is_object() && left < section.size()) text += "\n";
      const std::string remark = config_.remark_on(key_path);
      text += comment(explanation_of(row_of(key_path)) + (remark.empty() ? "" : ". " + remark), indent) + indent +
              Json(name).dump() + ": ";
      text += value.is_object() ? this->section(value, key_path, indent + "  ") : value_text(value);
      text += --left > 0 ? ",\n" : "\n";
    }
    return text + indent.substr(2) + "}";
  }

 private:
  const Key& row_of(const std::string& path) const {
    const std::string selector = selector_of(path);
    const Json* type = selector.empty() ? nullptr : config_.find(selector);
    for (const Key& key : key_table()) {
      const bool applies = key.types.empty() ||
                           (type != nullptr &&
                            std::find(key.types.begin(), key.types.end(), type->get<std::string>()) != key.types.end());
      if (key.path == path && key.kind == KeyKind::used && applies) return key;
    }
    throw std::logic_error("no key " + path + " in the table of keys");
  }

  // Lists on one line, with blanks.
  static std::string value_text(const Json& value) {
    if (!value.is_array()) return value.dump();
    std::string text = "[";
    for (const Json& entry : value) text += (text.size() > 1 ? ", " : "") + entry.dump();
    return text + "]";
  }

  const CommentedConfig& config_;
};

}  // namespace

void CommentedConfig::set(const std::string& path, Json value) {
  for (auto& [known, old] : values_) {
    if (known == path) {
      old = std::move(value);
      return;
    }
  }
  values_.emplace_back(path, std::move(value));
}

const Json* CommentedConfig::find(const std::string& path) const {
  for (const auto& [known, value] : values_) {
    if (known == path) return &value;
  }
  return nullptr;
}

std::string CommentedConfig::remark_on(const std::string& path) const {
  const auto found = remarks_.find(path);
  return found == remarks_.end() ? "" : found->second;
}

Json CommentedConfig::json() const {
  Json json = Json::object();
  for (const auto& [path, value] : values_) {
    Json* place = &json;
    std::istringstream names(path);
    for (std::string name; std::getline(names, name, '.');) place = &(*place)[name];
    *place = value;
  }
  return json;
}

std::string CommentedConfig::text(const std::vector<std::string>& head) const {
  std::string text;
  for (const std::string& line : head) text += "// " + line + "\n";
  return text + Writer(*this).section(json(), "", "  ") + "\n";
}

}  // namespace zt
