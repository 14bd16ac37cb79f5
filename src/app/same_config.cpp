#include "app/same_config.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "comm/agree.h"

namespace zt {

namespace {

// The values of the two that differ, as "key: theirs, mine"; at most `most`.
void list_differences(const Json& theirs, const Json& mine, const std::string& path, std::size_t most,
                      std::vector<std::string>& found) {
  if (theirs == mine) return;
  if (!theirs.is_object() || !mine.is_object()) {
    if (found.size() < most) found.push_back(path + ": " + mine.dump() + " instead of " + theirs.dump());
    return;
  }
  std::vector<std::string> keys;
  for (const Json* side : {&theirs, &mine}) {
    for (const auto& [key, value] : side->items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  const Json missing = "(missing)";
  for (const std::string& key : keys) {
    const std::string below = path.empty() ? key : path + "." + key;
    list_differences(theirs.contains(key) ? theirs.at(key) : missing, mine.contains(key) ? mine.at(key) : missing,
                     below, most, found);
  }
}

}  // namespace

void require_same_config(Communicator& communicator, const ResolvedConfig& config) {
  if (communicator.size() == 1) return;
  std::string first = config.json.dump();
  auto length = static_cast<std::int64_t>(communicator.rank() == 0 ? first.size() : 0);
  communicator.all_reduce_sum({&length, 1});
  first.resize(static_cast<std::size_t>(length));
  communicator.broadcast(std::as_writable_bytes(std::span(first)), 0);
  std::vector<std::string> differences;
  if (first != config.json.dump()) list_differences(Json::parse(first), config.json, "", 3, differences);
  std::string mine;
  for (const std::string& difference : differences) mine += (mine.empty() ? "" : "; ") + difference;
  const std::vector<std::string> all = communicator.all_gather_strings(mine);
  const auto other = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  if (other == all.end()) return;
  fail_together<UserError>(communicator, "ranks have different configs: rank " + std::to_string(other - all.begin()) +
                                             " has " + *other +
                                             " of rank 0. All must be started with the same files and options; on "
                                             "hosts without a shared file system copy the config to all of them");
}

}  // namespace zt
