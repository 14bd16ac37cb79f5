#include "app/same_config.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "comm/agree.h"
#include "config/difference.h"
#include "core/json.h"

namespace zt {

void require_same_config(Communicator& communicator, const ResolvedConfig& config) {
  if (communicator.size() == 1) return;
  std::string first = config.json.dump();
  auto length = static_cast<std::int64_t>(communicator.rank() == 0 ? first.size() : 0);
  communicator.all_reduce_sum({&length, 1});
  first.resize(static_cast<std::size_t>(length));
  communicator.broadcast(std::as_writable_bytes(std::span(first)), 0);
  std::string mine;
  if (first != config.json.dump()) {
    for (const ConfigDifference& difference : config_differences(Json::parse(first), config.json, 3)) {
      const auto text = [](const Json& value) { return value.is_discarded() ? "\"(missing)\"" : value.dump(); };
      mine += (mine.empty() ? "" : "; ") + difference.path + ": " + text(difference.after) + " instead of " +
              text(difference.before);
    }
  }
  const std::vector<std::string> all = communicator.all_gather_strings(mine);
  const auto other = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  if (other == all.end()) return;
  fail_together<UserError>(communicator, "ranks have different configs: rank " + std::to_string(other - all.begin()) +
                                             " has " + *other +
                                             " of rank 0. All must be started with the same files and options; on "
                                             "hosts without a shared file system copy the config to all of them");
}

}  // namespace zt
