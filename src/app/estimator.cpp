#include "app/estimator.h"

#include <algorithm>
#include <utility>

#include "config/problems.h"
#include "data/source.h"

namespace zt {

Estimator::Estimator(ConfigSource source) : source_(std::move(source)) {
  const Settings settings = deal(1, {}).config.settings;
  if (settings.model.type == "gpt" && settings.model.gpt.vocab_size == 0)
    vocab_size_ = open_dataset(settings).vocab_size;
}

DealtConfig Estimator::deal(int ranks, const std::vector<std::string>& sets) const {
  const std::string no_steps = "gradient_accumulation_steps=auto";
  const std::string no_batch = "train_batch_size=auto";
  try {
    return resolve(ranks, sets, {});
  } catch (const ConfigError&) {
    if (auto changed = attempt(ranks, sets, {no_steps})) return std::move(*changed);
    const auto alone = attempt(1, sets, {});
    if (alone) {  // the most whole rounds of micro-batches that the batch holds
      const BatchSettings& batch = alone->config.settings.batch;
      const std::int64_t whole = batch.train / (batch.micro * ranks) * batch.micro * ranks;
      if (whole > 0) {
        if (auto changed = attempt(ranks, sets, {no_steps, "train_batch_size=" + std::to_string(whole)}))
          return std::move(*changed);
      }
    }
    if (auto changed = attempt(ranks, sets, {no_batch})) return std::move(*changed);
    if (alone) {
      const std::int64_t micro = std::max<std::int64_t>(1, alone->config.settings.batch.micro / ranks);
      const std::string set_micro = "train_micro_batch_size_per_gpu=" + std::to_string(micro);
      if (auto changed = attempt(ranks, sets, {no_batch, set_micro})) return std::move(*changed);
    }
    throw;  // it is not the batch, or not it alone
  }
}

Plan Estimator::plan(ResolvedConfig& config, int ranks) {
  settle_here(config, vocab_size_, ranks, choice(config.settings.device, ranks));
  refuse_absurd_sizes(config.settings);
  return plan(config.settings, ranks);
}

Plan Estimator::plan(const Settings& settings, int ranks) {
  Plan made = plan_here(settings, ranks, choice(settings.device, ranks));
  made.operations = {};
  return made;
}

Fit Estimator::fit(const DealtConfig& dealt, int ranks, std::int64_t memory) {
  if (memory == 0) memory = memory_of_a_rank(dealt.config, ranks, choice(dealt.config.settings.device, ranks));
  return fit_memory(dealt.source, ranks, dealt.config, memory,
                    [&](ResolvedConfig& config) { return plan(config, ranks); });
}

DealtConfig Estimator::resolve(int ranks, const std::vector<std::string>& sets,
                               const std::vector<std::string>& more) const {
  ConfigSource source = source_;
  source.sets.insert(source.sets.end(), sets.begin(), sets.end());
  source.sets.insert(source.sets.end(), more.begin(), more.end());
  ResolvedConfig config = resolve_here(source, ranks);
  return {std::move(config), std::move(source), more.empty()};
}

std::optional<DealtConfig> Estimator::attempt(int ranks, const std::vector<std::string>& sets,
                                              const std::vector<std::string>& more) const {
  try {
    return resolve(ranks, sets, more);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

const ComputeChoice& Estimator::choice(const DeviceSettings& device, int ranks) {
  const auto found = choices_.find(ranks == 1);
  if (found != choices_.end()) return found->second;
  return choices_.emplace(ranks == 1, plan_compute(device, ranks)).first->second;
}

}  // namespace zt
