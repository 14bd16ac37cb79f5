#include "config/resolve_again.h"

#include <utility>

#include "core/errors.h"

namespace zt {

ResumedBatch batch_of(const Json& resolved, const std::string& origin) {
  const auto number = [&](const char* key) {
    const auto found = resolved.find(key);
    const std::int64_t value = found != resolved.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
    if (value < 1) throw RunError(origin + ": " + key + " is no number of samples");
    return value;
  };
  ResumedBatch batch{number("train_batch_size"), number("train_micro_batch_size_per_gpu"), ""};
  const auto types = resolved.find("data_types");
  if (types != resolved.end() && types->is_object() && types->contains("grad_accum_dtype") &&
      types->at("grad_accum_dtype").is_string()) {
    batch.grad_accum_dtype = types->at("grad_accum_dtype").get<std::string>();
  }
  return batch;
}

ResolvedConfig resolve_again(const Json& resolved, int world_size, const std::vector<std::string>& sets,
                             ResolveOptions options) {
  if (!options.resumed) options.resumed = batch_of(resolved, "the config of the run");
  std::vector<std::string> all;
  for (const auto& [key, value] : resolved.items()) {
    const bool is_batch =
        key == "train_batch_size" || key == "train_micro_batch_size_per_gpu" || key == "gradient_accumulation_steps";
    if (!is_batch) all.push_back(key + "=" + value.dump());
  }
  all.insert(all.end(), sets.begin(), sets.end());
  return resolve_config({}, all, world_size, options);
}

}  // namespace zt
