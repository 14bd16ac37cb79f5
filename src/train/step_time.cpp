#include "train/step_time.h"

#include <algorithm>

#include "core/errors.h"

namespace zt {

namespace {

double flops_of_passes(const Plan& plan) { return plan.step_flops - plan.update_flops; }
double forward_flops(const Plan& plan) { return std::min(plan.model_flops / 3.0, flops_of_passes(plan)); }

const CollectiveCount& sent(const Plan& plan, CollectiveKind kind) {
  return plan.sent.at(static_cast<std::size_t>(kind));
}

double seconds_of(const CollectiveCount& count, double bandwidth, double latency, int ranks) {
  const double of_bytes = bandwidth > 0.0 ? static_cast<double>(count.bytes) / bandwidth : 0.0;
  return of_bytes + static_cast<double>(count.calls) * (ranks - 1) * latency;
}

// What computing cannot hide of so much communication.
double rest(double communication, double computing) { return std::max(0.0, communication - computing); }

// Seconds of a step in which communication alone goes on, where it runs beside computation.
double exposed_beside(const Plan& plan, const StepTime& time, double micro_steps, bool local) {
  const double forward = time.forward / micro_steps;
  const double backward = time.backward / micro_steps;
  const double reduce = local ? time.reduce : time.reduce / micro_steps;  // at once
  const double reducing = local ? 1.0 : micro_steps;                      // micro-steps
  const double units = std::max(1, plan.units);
  switch (plan.stage) {
    case 0:
      return std::max((reducing - 1.0) * rest(reduce, backward) + rest(reduce + time.gather, backward),
                      (reduce + time.gather) / units);
    case 1:
    case 2: return std::max(reducing * rest(reduce, backward) + rest(time.gather, forward), reduce / units);
    default: {
      const double gather = time.gather / (2.0 * micro_steps);  // of one pass
      return std::max(micro_steps * (rest(gather, forward) + rest(gather + reduce, backward)),
                      (micro_steps * gather + reduce) / units);
    }
  }
}

}  // namespace

StepTime predict_step(const Plan& plan, std::int64_t accumulation, AccumulationOrder order, const Rates& rates,
                      bool overlaps) {
  StepTime time;
  time.forward = forward_flops(plan) / rates.flops;
  time.backward = (flops_of_passes(plan) - forward_flops(plan)) / rates.flops;
  time.update = plan.update_flops / rates.flops;
  if (rates.updates > 0.0) time.update += static_cast<double>(plan.updated) / rates.updates;
  if (plan.ranks > 1) {
    time.gather = seconds_of(sent(plan, CollectiveKind::all_gather), rates.gather_bandwidth, rates.latency, plan.ranks);
    time.reduce =
        seconds_of(sent(plan, CollectiveKind::reduce_scatter), rates.reduce_bandwidth, rates.latency, plan.ranks);
    time.all_to_all =
        seconds_of(sent(plan, CollectiveKind::all_to_all), rates.reduce_bandwidth, rates.latency, plan.ranks);
  }
  const bool local = order_in_effect(order, plan.stage, accumulation) == AccumulationOrder::local;
  time.exposed =
      overlaps ? exposed_beside(plan, time, static_cast<double>(accumulation), local) : time.gather + time.reduce;
  time.exposed += time.all_to_all;
  time.step = time.forward + time.backward + time.update + time.exposed;
  return time;
}

Rates rates_of(const MeasuredRun& run, const Plan& plan) {
  const double all = run.forward + run.backward + run.optimizer + run.data_wait;
  if (run.step_seconds <= 0.0 || run.forward + run.backward <= 0.0)
    throw UserError("it has no measured steps: a run of at least three steps is needed");
  // Phases as shares of the median step: sums also hold what the first steps and others out of the ordinary took.
  const auto of_a_step = [&](double seconds) { return run.step_seconds * seconds / all; };
  const double gather = run.gather.value_or(0.0);
  const double reduce = run.reduce.value_or(0.0);
  const double all_to_all = run.all_to_all.value_or(0.0);
  // Updated parameters are gathered behind the update at stages 1 and 2, blocks go to owners and back within it; all
  // else is sent within the passes.
  const bool publishes = plan.stage == 1 || plan.stage == 2;
  const double passes = run.forward + run.backward - reduce - (publishes ? 0.0 : gather);
  const double update = run.optimizer - all_to_all - (publishes ? gather : 0.0);
  if (passes <= 0.0) throw UserError("its collectives took longer than its forward and backward passes");
  Rates rates;
  rates.flops = flops_of_passes(plan) / of_a_step(passes);
  const double moving = of_a_step(update) - plan.update_flops / rates.flops;
  if (moving > 0.0) rates.updates = static_cast<double>(plan.updated) / moving;
  const auto bandwidth = [&](std::int64_t bytes, double seconds) {
    return seconds > 0.0 ? static_cast<double>(bytes) / of_a_step(seconds) : 0.0;
  };
  rates.gather_bandwidth = bandwidth(sent(plan, CollectiveKind::all_gather).bytes, gather);
  rates.reduce_bandwidth =
      bandwidth(sent(plan, CollectiveKind::reduce_scatter).bytes + sent(plan, CollectiveKind::all_to_all).bytes,
                reduce + all_to_all);
  return rates;
}

}  // namespace zt
