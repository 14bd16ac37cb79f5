// Old names of keys, old switches that stand for a value of another key, and zero_optimization: true.
#include "config/keys.h"

namespace zt {
namespace {

// Takes the key out of its section; null when it is not there.
std::optional<Json> take(ConfigTree& tree, const std::string& path) {
  const Json* found = tree.find(path);
  if (found == nullptr) return std::nullopt;
  Json value = *found;
  Json* node = &tree.json;
  const std::vector<std::string> keys = split_path(path);
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) node = &*node->find(keys[i]);
  node->erase(keys.back());
  return value;
}

void put(ConfigTree& tree, const std::string& path, Json value) {
  Json* node = &tree.json;
  for (const std::string& key : split_path(path)) node = &(*node)[key];
  *node = std::move(value);
}

// Of a value that is no switch the check of the table tells.
void replace_switch(ConfigTree& tree, const Key& key, Problems& problems, std::vector<std::string>& notices) {
  const Json* found = tree.find(key.path);
  if (found == nullptr || !(found->is_boolean() || found->is_null() || is_auto(*found))) return;
  const Origin* origin = tree.origin_of(key.path);
  const Origin from = origin == nullptr ? Origin{} : *origin;
  const bool on = *take(tree, key.path) == true;
  tree.erase_origins_below(key.path);
  if (!on) return;
  const std::string meant = "\"" + key.text + "\": " + key.stands_for->dump();
  if (tree.find(key.text) != nullptr) {
    problems.push_back({key.path, from.text, "an old form of " + meant + ", which is given too: remove one of them"});
    return;
  }
  // A section that is switched off by null is no place for the new key.
  const std::string section = key.text.substr(0, key.text.rfind('.'));
  if (const Json* there = tree.find(section); section != key.text && there != nullptr && !there->is_object()) {
    if (!there->is_null()) return;  // which is told of
    take(tree, section);
  }
  notices.push_back(from.text + ": " + key.path + ": true is an old form of " + meant);
  put(tree, key.text, *key.stands_for);
  tree.origins[key.text] = {from.text, from.base, ""};
}

}  // namespace

void replace_old_forms(ConfigTree& tree, Problems& problems, std::vector<std::string>& notices) {
  for (const Key& key : key_table()) {
    if (key.kind == KeyKind::old_form) replace_switch(tree, key, problems, notices);
    if (key.kind != KeyKind::alias || tree.find(key.path) == nullptr) continue;
    const Origin* origin = tree.origin_of(key.path);
    const std::string where = origin == nullptr ? "" : origin->text;
    if (tree.find(key.text) != nullptr) {
      problems.push_back({key.path, where, "an old name of " + key.text + ", which is given too: remove one of them"});
      take(tree, key.path);
      continue;
    }
    notices.push_back(where + ": " + key.path + " is an old name of " + key.text);
    put(tree, key.text, *take(tree, key.path));
    std::map<std::string, Origin> moved;
    for (const auto& [path, from] : tree.origins) {
      if (path == key.path || path.starts_with(key.path + ".")) moved[key.text + path.substr(key.path.size())] = from;
    }
    tree.erase_origins_below(key.path);
    tree.origins.merge(moved);
  }
  const Json* zero = tree.find("zero_optimization");
  if (zero == nullptr || !zero->is_boolean()) return;
  const bool on = zero->get<bool>();
  const Origin* origin = tree.origin_of("zero_optimization");
  const Origin where = origin == nullptr ? Origin{} : *origin;
  if (on) notices.push_back(where.text + ": zero_optimization: true is an old form of \"stage\": 1");
  put(tree, "zero_optimization", Json::object({{"stage", on ? 1 : 0}}));
  tree.origins["zero_optimization.stage"] = where;
}

}  // namespace zt
