#include "config/schema.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "config/keys.h"
#include "core/json.h"

namespace zt {
namespace {

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string leaf_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

Json bound(double value) { return Json::parse(number_text(value)); }

void add_range(const Key& key, Json& schema) {
  if (std::isfinite(key.minimum)) schema[key.minimum_excluded ? "exclusiveMinimum" : "minimum"] = bound(key.minimum);
  if (std::isfinite(key.maximum)) schema[key.maximum_excluded ? "exclusiveMaximum" : "maximum"] = bound(key.maximum);
}

Json ranged(const Key& key, const char* type) {
  Json schema = {{"type", type}};
  add_range(key, schema);
  return schema;
}

Json list_of(const Key& key, Json items) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (key.shortest > 0) schema["minItems"] = key.shortest;
  if (key.longest != std::numeric_limits<std::size_t>::max()) schema["maxItems"] = key.longest;
  return schema;
}

// "^[aA][dD][aA][mM]$"
std::string in_any_case(const std::string& word) {
  std::string pattern = "^";
  for (const char c : word) {
    const auto sign = static_cast<unsigned char>(c);
    if (std::isalpha(sign) != 0) {
      pattern += {'[', static_cast<char>(std::tolower(sign)), static_cast<char>(std::toupper(sign)), ']'};
    } else {
      pattern += c;
    }
  }
  return pattern + "$";
}

// The forms that a value may have, one schema each.
std::vector<Json> forms_of(const Key& key) {
  std::vector<Json> forms;
  switch (key.type) {
    case KeyType::boolean: forms.push_back({{"type", "boolean"}}); break;
    case KeyType::integer: forms.push_back(ranged(key, "integer")); break;
    case KeyType::number: forms.push_back(ranged(key, "number")); break;
    case KeyType::string: forms.push_back({{"type", "string"}}); break;
    case KeyType::path: forms.push_back({{"type", "string"}, {"minLength", 1}}); break;
    case KeyType::integers: forms.push_back(list_of(key, ranged(key, "integer"))); break;
    case KeyType::numbers: forms.push_back(list_of(key, ranged(key, "number"))); break;
    case KeyType::strings:
      forms.push_back(list_of(key, key.choices.empty() ? Json{{"type", "string"}} : Json{{"enum", key.choices}}));
      break;
    case KeyType::columns: {
      const Json column = {{"anyOf", {{{"type", "string"}, {"minLength", 1}}, {{"type", "integer"}, {"minimum", 1}}}}};
      forms.push_back(list_of(key, column));
      forms.push_back(column);
      break;
    }
    case KeyType::choice: break;
    case KeyType::section:
    case KeyType::anything: return {};
  }
  if (!key.choices.empty() && key.type != KeyType::strings) {
    // The words as they are, for completion, and in any case.
    forms.push_back({{"enum", key.choices}});
    if (key.any_case) {
      for (const std::string& word : key.choices) forms.push_back({{"pattern", in_any_case(word)}, {"type", "string"}});
    }
  }
  const bool drops_auto = key.kind == KeyKind::notice || (key.kind == KeyKind::refused && !key.quiet.empty());
  if (key.may_be_auto || drops_auto || key.kind == KeyKind::old_form) forms.push_back({{"const", "auto"}});
  if (key.may_be_null || key.kind == KeyKind::old_form) forms.push_back({{"type", "null"}});
  return forms;
}

std::string description_of(const Key& key) {
  switch (key.kind) {
    case KeyKind::notice: return key.help + ". No effect" + (key.text.empty() ? "" : ": " + key.text);
    case KeyKind::refused: return key.help + ". Refused: " + key.text;
    default: return key.help;
  }
}

void describe(const Key& key, Json& schema) {
  schema["description"] = description_of(key);
  if (key.fallback) schema["default"] = *key.fallback;
  if (key.kind == KeyKind::alias || key.kind == KeyKind::old_form) schema["deprecated"] = true;
}

// Of a refused section that is switched off, and so passes.
Json switched_off() {
  const Json off = {{"enum", Json::array({false, nullptr, "auto"})}};
  return {
      {"anyOf", Json::array({off,
                             {{"type", "object"}, {"maxProperties", 0}},
                             {{"type", "object"}, {"properties", {{"enabled", off}}}, {"required", {"enabled"}}},
                             // Parts with switches of their own, at which the program looks closer; groups of one.
                             {{"type", "object"},
                              {"not", {{"required", {"enabled"}}}},
                              {"patternProperties", {{"_size$", {{"type", "number"}, {"maximum", 1}}}, {"^_", true}}},
                              {"additionalProperties", {{"type", "object"}}}}})}};
}

Json value_schema(const Key& key) {
  if (key.kind == KeyKind::refused && key.type == KeyType::section) return switched_off();
  if (key.kind == KeyKind::refused) {
    Json allowed = Json::array();
    for (const Json& value : key.quiet) {
      if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) allowed.push_back(value);
    }
    if (!key.quiet.empty()) allowed.push_back("auto");
    return allowed.empty() ? Json{{"not", Json::object()}} : Json{{"enum", allowed}};
  }
  std::vector<Json> forms = forms_of(key);
  if (forms.empty()) return Json::object();
  return forms.size() == 1 ? forms.front() : Json{{"anyOf", forms}};
}

class Writer {
 public:
  Json section(const std::string& path, const std::string& type) const {
    Json properties = Json::object();
    for (const Key& key : key_table()) {
      if (parent_of(key.path) != path || !is_for(key, type)) continue;
      const std::string name = leaf_of(key.path);
      Json schema = key_schema(key, type);
      // Without a type: what any of them takes.
      if (const auto other = properties.find(name); other != properties.end()) {
        if (key.kind == KeyKind::used) *other = Json{{"anyOf", Json::array({*other, std::move(schema)})}};
        continue;
      }
      properties[name] = std::move(schema);
    }
    if (path.empty()) properties["$schema"] = {{"type", "string"}};
    return {{"type", "object"},
            {"properties", std::move(properties)},
            {"patternProperties", {{"^_", true}}},
            {"additionalProperties", false}};
  }

 private:
  static bool is_for(const Key& key, const std::string& type) {
    return type.empty() || key.types.empty() || std::find(key.types.begin(), key.types.end(), type) != key.types.end();
  }

  static const Key* row(const std::string& path, const std::string& type) {
    for (const Key& key : key_table()) {
      if (key.path == path && is_for(key, type)) return &key;
    }
    return nullptr;
  }

  Json key_schema(const Key& key, const std::string& type) const {
    const bool is_open_section = key.type == KeyType::section && key.kind != KeyKind::refused;
    Json schema = is_open_section ? section_schema(key, type) : value_schema(key);
    if (key.kind == KeyKind::alias) {
      if (const Key* meant = row(key.text, type)) schema = key_schema(*meant, type);
    }
    describe(key, schema);
    return schema;
  }

  // A section may be null, or, where a key inside says which kind it is, one of several.
  Json section_schema(const Key& key, const std::string& type) const {
    const Key* selector = row(key.path + ".type", type);
    const bool selects = selector != nullptr && selector_of(key.path + ".x") == selector->path;
    std::vector<Json> forms = {Json{{"type", "null"}}};
    if (key.path == "zero_optimization") forms.push_back({{"type", "boolean"}, {"deprecated", true}});
    if (!selects) {
      forms.push_back(section(key.path, type));
      return {{"anyOf", forms}};
    }
    // Each type has a closed list of its own; a file that is laid over another may leave the type out.
    Json rules = Json::array();
    for (const std::string& word : selector->choices) {
      const Json is_it = selector->any_case ? Json{{"pattern", in_any_case(word)}} : Json{{"const", word}};
      rules.push_back({{"if", {{"type", "object"}, {"properties", {{"type", is_it}}}, {"required", {"type"}}}},
                       {"then", section(key.path, word)}});
    }
    rules.push_back({{"if", {{"type", "object"}, {"not", {{"required", {"type"}}}}}}, {"then", section(key.path, "")}});
    return {{"type", Json::array({"object", "null"})},
            {"properties", {{"type", key_schema(*selector, "")}}},
            {"allOf", std::move(rules)}};
  }
};

}  // namespace

Json config_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "A config of zerotrain, or a part of one"}};
  schema.update(Writer().section("", ""));
  return schema;
}

}  // namespace zt
