// A config at any number of ranks, as their runs would plan it on this machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/fit_memory.h"
#include "app/planning.h"

namespace zt {

struct DealtConfig {
  ResolvedConfig config;
  ConfigSource source;    // that it was resolved from
  bool own_batch = true;  // false: the config's batch has given way
};

class Estimator {
 public:
  // Opens the data where they alone say how large the vocabulary is. UserError.
  explicit Estimator(ConfigSource source);

  // For so many ranks, with `sets` on top. A batch that cannot be dealt to them gives way, by as little as is needed:
  // first the number of micro-steps, so that the global batch stays, then the global batch, then the micro-batch.
  DealtConfig deal(int ranks, const std::vector<std::string>& sets) const;

  // Of a resolved config, which is settled, and of settled settings; without operations.
  Plan plan(ResolvedConfig& config, int ranks);
  Plan plan(const Settings& settings, int ranks);

  // What "auto" may be. `memory`: bytes of a rank; 0: as memory_of_a_rank().
  Fit fit(const DealtConfig& dealt, int ranks, std::int64_t memory);

 private:
  DealtConfig resolve(int ranks, const std::vector<std::string>& sets, const std::vector<std::string>& more) const;
  std::optional<DealtConfig> attempt(int ranks, const std::vector<std::string>& sets,
                                     const std::vector<std::string>& more) const;
  const ComputeChoice& choice(const DeviceSettings& device, int ranks);

  ConfigSource source_;
  std::int64_t vocab_size_ = 0;            // of the data; 0: the config has it
  std::map<bool, ComputeChoice> choices_;  // of one rank, of several: what they would compute on
};

}  // namespace zt
