#include "config/difference.h"

#include <algorithm>

#include "core/json.h"

namespace zt {

namespace {

const Json missing = Json(Json::value_t::discarded);

std::string text_of(const Json& value) { return value.is_discarded() ? "(missing)" : value.dump(); }

void list_differences(const Json& before, const Json& after, const std::string& path, std::size_t most,
                      std::vector<ConfigDifference>& found) {
  if (before == after && before.is_discarded() == after.is_discarded()) return;
  if (!before.is_object() || !after.is_object()) {
    if (found.size() < most) found.push_back({path, before, after});
    return;
  }
  std::vector<std::string> keys;
  for (const Json* side : {&before, &after}) {
    for (const auto& [key, value] : side->items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    list_differences(before.contains(key) ? before.at(key) : missing, after.contains(key) ? after.at(key) : missing,
                     path.empty() ? key : path + "." + key, most, found);
  }
}

}  // namespace

std::string ConfigDifference::text() const { return path + ": " + text_of(after) + ", before " + text_of(before); }

std::vector<ConfigDifference> config_differences(const Json& before, const Json& after, std::size_t most) {
  std::vector<ConfigDifference> found;
  list_differences(before, after, "", most, found);
  return found;
}

}  // namespace zt
