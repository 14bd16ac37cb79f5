// The rules of resolve_config, by subject. Internal to config/.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "config/keys.h"
#include "config/resolve.h"

namespace zt {

class Resolver {
 public:
  Resolver(const ConfigTree& tree, int world_size, const ResolveOptions& options, Problems& problems,
           std::vector<std::string>& notices);

  void apply_rules();
  Json to_json() const;
  Settings to_settings() const;
  LeftOpen left_open() const;
  std::int64_t memory_limit() const;

 private:
  // Each resolves the "auto" of its keys, fills computed defaults and reports contradictions.
  void resolve_batch();
  void resolve_resumed_batch();
  bool set_on_command_line(const std::string& path) const;
  void resolve_precision();
  void tell_unused_sections();
  void refuse_several_precisions(const std::vector<std::string>& enabled);
  void resolve_masters();
  void resolve_amp();
  void tell_fp16_averages(const std::string& level);
  void resolve_amp_scale(const std::string& level);
  void resolve_formats();  // of sums and of what is sent
  void resolve_loss_scale();
  void tell_static_scale();
  void take_pretrained_model();
  bool fits_pretrained(const std::string& key, const Json& theirs) const;
  // A key that is left open, in a config whose weights nobody has looked at: they may bring any value.
  bool comes_with_weights(const std::string& path) const;
  void resolve_model();
  void resolve_data();
  void resolve_synthetic_data();
  void resolve_text_data();
  void resolve_text_format();
  void resolve_csv_data();
  void resolve_token_files();
  void resolve_idx_data();
  void resolve_optimizer();
  void resolve_momentum();
  void resolve_rates_of_muon(bool schedule_sets_rate);
  void resolve_excluded_decay();
  void resolve_scheduler();
  void resolve_warmup();
  void resolve_cycle();
  void resolve_cycle_momentum();
  void resolve_zero();
  void check_offload();
  void tell_accumulation_order();
  void resolve_guards();
  void check_report_delay();
  void resolve_rest();
  void check_device();
  void tell_idle_keys();

  OptimizerSettings optimizer_settings() const;
  SchedulerSettings scheduler_settings() const;

  bool given(const std::string& path) const { return checked_.given.contains(path); }
  bool is(const std::string& selector, const std::string& type) const;
  // Has a value of the right type (given or a default), so that rules may read it.
  bool known(std::initializer_list<const char*> paths) const;
  template <typename T>
  T get(const std::string& path) const {
    return values_.at(path).get<T>();
  }
  bool is_true(const std::string& path) const;
  bool holds_auto(const std::string& path) const;
  void set_auto(const std::string& path, const Json& value, const std::string& why = "");
  std::string shown(const std::string& path) const;  // the value, a number as it was written
  std::string where(const std::string& path) const;  // "gpt.json:12", or empty
  void problem(const std::string& path, const std::string& text);
  void notice(const std::string& path, const std::string& text);
  bool applies(const Key& key) const;
  bool differs_from_default(const std::string& path) const;  // given, and not as the table has it
  std::string preset() const;                                // the name of the precision's (core/precision.h)
  void set_precision(Settings& settings) const;

  const ConfigTree& tree_;
  std::int64_t world_size_;
  const ResolveOptions& options_;
  Problems& problems_;
  std::vector<std::string>& notices_;
  CheckedValues checked_;
  std::map<std::string, Json> values_;  // given values and defaults
};

}  // namespace zt
