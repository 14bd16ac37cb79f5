// DeepSpeed's section scheduler.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_type(std::vector<Key>& t) {
  t.push_back(used_key(section, "scheduler", "learning-rate schedule over applied steps; without it: constant"));
  t.push_back(used_key(choice, "scheduler.type", "needed in the section")
                  .one_of({"WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle", "LRRangeTest"})
                  .others("this version has WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle and LRRangeTest: use "
                          "WarmupCosineLR for a cosine, WarmupDecayLR for a straight fall"));
  t.push_back(used_key(section, "scheduler.params", "depend on the type"));
  t.push_back(notice_key(integer, "scheduler.params.last_batch_iteration", "where the schedule starts",
                         "it starts with the first step, and goes on where a checkpoint left it")
                  .unless({-1}));
}

void add_warmups(std::vector<Key>& t) {
  const std::vector<std::string> linear = {"WarmupLR", "WarmupDecayLR"};
  const std::vector<std::string> cosine = {"WarmupCosineLR"};
  const std::vector<std::string> warmups = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
  t.push_back(
      used_key(number, "scheduler.params.warmup_min_lr", "rate of the first two updates, as DeepSpeed counts; auto: 0")
          .standard(0.0)
          .or_auto()
          .at_least(0)
          .only_for(linear));
  t.push_back(used_key(number, "scheduler.params.warmup_max_lr",
                       "rate after the warm-up; auto: the optimizer's; WarmupLR's default too, else 0.001")
                  .or_auto()
                  .or_null()
                  .at_least(0)
                  .only_for({"WarmupLR"}));
  t.push_back(used_key(number, "scheduler.params.warmup_max_lr", "rate after the warm-up; auto: the optimizer's")
                  .standard(0.001)
                  .or_auto()
                  .at_least(0)
                  .only_for({"WarmupDecayLR"}));
  t.push_back(
      used_key(integer, "scheduler.params.warmup_num_steps",
               "steps of the warm-up; the first two updates have the rate of its start; auto: 1, none in effect")
          .standard(1000)
          .or_auto()
          .at_least(1)
          .only_for(warmups));
  t.push_back(used_key(choice, "scheduler.params.warmup_type", "shape of the warm-up: log rises fast at first")
                  .standard("log")
                  .one_of({"log", "linear"})
                  .only_for(warmups));
  t.push_back(used_key(integer, "scheduler.params.total_num_steps", "steps of the whole schedule; auto: max_steps")
                  .required()
                  .or_auto()
                  .at_least(1)
                  .only_for({"WarmupDecayLR", "WarmupCosineLR"}));
  t.push_back(
      used_key(number, "scheduler.params.warmup_min_ratio", "the warm-up starts at this share of optimizer.params.lr")
          .standard(0.0)
          .at_least(0)
          .at_most(1)
          .only_for(cosine));
  t.push_back(used_key(number, "scheduler.params.cos_min_ratio", "the cosine ends at this share of optimizer.params.lr")
                  .standard(1e-4)
                  .at_least(0)
                  .at_most(1)
                  .only_for(cosine));
}

void add_cycle(std::vector<Key>& t) {
  const std::vector<std::string> cycle = {"OneCycle"};
  t.push_back(used_key(number, "scheduler.params.cycle_min_lr", "rate at both ends of the cycle, and after it")
                  .required()
                  .at_least(0)
                  .only_for(cycle));
  t.push_back(used_key(number, "scheduler.params.cycle_max_lr", "rate at its peak; auto: the optimizer's")
                  .required()
                  .or_auto()
                  .at_least(0)
                  .only_for(cycle));
  t.push_back(used_key(integer, "scheduler.params.cycle_first_step_size",
                       "steps on the way up; auto: half of training.max_steps")
                  .standard(2000)
                  .or_auto()
                  .at_least(1)
                  .only_for(cycle));
  t.push_back(used_key(integer, "scheduler.params.cycle_second_step_size",
                       "steps on the way down; null, auto or absent: as many as on the way up")
                  .or_auto()
                  .or_null()
                  .at_least(0)
                  .only_for(cycle));
  t.push_back(used_key(integer, "scheduler.params.cycle_first_stair_count", "stairs on the way up; 0: a straight line")
                  .standard(0)
                  .at_least(0)
                  .only_for(cycle));
  t.push_back(used_key(integer, "scheduler.params.cycle_second_stair_count",
                       "stairs on the way down; null or absent: as many as on the way up")
                  .or_null()
                  .at_least(0)
                  .only_for(cycle));
  t.push_back(used_key(integer, "scheduler.params.decay_step_size",
                       "steps of one interval of the decay that follows the cycle; 0: no decay")
                  .standard(0)
                  .at_least(0)
                  .only_for(cycle));
  t.push_back(
      used_key(number, "scheduler.params.decay_lr_rate",
               "after d steps past the cycle the rate is cycle_min_lr / (1 + decay_lr_rate d / decay_step_size)")
          .standard(0.0)
          .at_least(0)
          .only_for(cycle));
  t.push_back(used_key(boolean, "scheduler.params.cycle_momentum",
                       "moves Adam's first beta (the second is 0.99 then) or SGD's momentum against the rate")
                  .standard(true)
                  .only_for(cycle));
  t.push_back(used_key(number, "scheduler.params.cycle_min_mom", "momentum at the peak, and in the very first update")
                  .standard(0.8)
                  .at_least(0)
                  .below(1)
                  .only_for(cycle));
  t.push_back(used_key(number, "scheduler.params.cycle_max_mom", "momentum at both ends of the cycle, and after it")
                  .standard(0.9)
                  .at_least(0)
                  .below(1)
                  .only_for(cycle));
  t.push_back(
      used_key(number, "scheduler.params.decay_mom_rate",
               "after d steps past the cycle: cycle_max_mom (1 + decay_mom_rate d / decay_step_size), which grows")
          .standard(0.0)
          .at_least(0)
          .only_for(cycle));
}

void add_range_test(std::vector<Key>& t) {
  const std::vector<std::string> range_test = {"LRRangeTest"};
  t.push_back(used_key(number, "scheduler.params.lr_range_test_min_lr",
                       "rate of the first update; update t has min_lr (1 + step_rate (t - 1) / step_size)")
                  .standard(1e-3)
                  .above(0)
                  .only_for(range_test));
  t.push_back(used_key(integer, "scheduler.params.lr_range_test_step_size", "steps over which the rate rises once")
                  .standard(2000)
                  .at_least(1)
                  .only_for(range_test));
  t.push_back(used_key(number, "scheduler.params.lr_range_test_step_rate", "by which multiple of min_lr it rises then")
                  .standard(1.0)
                  .at_least(0)
                  .only_for(range_test));
  t.push_back(used_key(boolean, "scheduler.params.lr_range_test_staircase", "true: rises at the end of each step_size")
                  .standard(false)
                  .only_for(range_test));
}

// Keys that mean another schedule's: refused with the key that says the same here.
void add_strangers(std::vector<Key>& t) {
  for (const char* name : {"warmup_ratio", "warmup_proportion"}) {
    t.push_back(refused_key(anything, std::string("scheduler.params.") + name, "a share of the steps",
                            "a warm-up is given in steps: use warmup_num_steps")
                    .unless({0, 0.0}));
  }
  const auto refuse = [&](const std::string& key, const std::vector<std::string>& schedules, const std::string& use) {
    t.push_back(refused_key(anything, "scheduler.params." + key, "of the other schedules", use).only_for(schedules));
  };
  const std::vector<std::string> warmups = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
  refuse("warmup_max_lr", {"WarmupCosineLR"},
         "WarmupCosineLR takes its highest rate from optimizer.params.lr: remove this key");
  refuse("warmup_min_lr", {"WarmupCosineLR"},
         "WarmupCosineLR has shares of optimizer.params.lr in place of rates: use warmup_min_ratio");
  refuse("warmup_max_lr", {"OneCycle"}, "OneCycle rises to cycle_max_lr: use that key");
  refuse("warmup_min_lr", {"OneCycle"}, "OneCycle starts and ends at cycle_min_lr: use that key");
  refuse("warmup_num_steps", {"OneCycle"}, "OneCycle rises for cycle_first_step_size steps: use that key");
  refuse("warmup_type", {"OneCycle"},
         "OneCycle rises in a straight line, or in cycle_first_stair_count stairs: remove this key");
  refuse("total_num_steps", {"OneCycle"},
         "OneCycle takes cycle_first_step_size + cycle_second_step_size steps: use these keys");
  refuse("warmup_min_lr", {"LRRangeTest"}, "LRRangeTest starts at lr_range_test_min_lr: use that key");
  refuse("warmup_max_lr", {"LRRangeTest"},
         "LRRangeTest knows no highest rate: say by lr_range_test_step_rate and lr_range_test_step_size how fast it "
         "rises");
  refuse("warmup_num_steps", {"LRRangeTest"},
         "LRRangeTest rises for the whole run: say by lr_range_test_step_size how fast");
  refuse("total_num_steps", {"LRRangeTest"}, "LRRangeTest rises for the whole run: use training.max_steps");
  refuse("cycle_max_lr", {"WarmupLR", "WarmupDecayLR"},
         "a warm-up rises to warmup_max_lr: use that key, or \"type\": \"OneCycle\"");
  refuse("cycle_max_lr", {"WarmupCosineLR"},
         "WarmupCosineLR rises to optimizer.params.lr: use that key, or \"type\": \"OneCycle\"");
  refuse("cycle_first_step_size", warmups,
         "a warm-up takes warmup_num_steps steps: use that key, or \"type\": \"OneCycle\"");
  refuse("cycle_momentum", warmups, "a warm-up leaves momentum alone: remove this key, or use \"type\": \"OneCycle\"");
}

}  // namespace

void add_scheduler_keys(std::vector<Key>& table) {
  add_type(table);
  add_warmups(table);
  add_cycle(table);
  add_range_test(table);
  add_strangers(table);
}

}  // namespace zt
