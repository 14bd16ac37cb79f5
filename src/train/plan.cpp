#include "train/plan.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <variant>

#include "comm/counting.h"
#include "core/errors.h"
#include "device/counting/counting_device.h"
#include "train/session.h"
#include "train/words.h"

namespace zt {

std::int64_t Plan::trained_parameters() const {
  std::int64_t sum = 0;
  for (const Segment segment : trained_segments) sum += by_segment.at(static_cast<std::size_t>(segment));
  return sum;
}

std::int64_t Plan::total() const { return std::accumulate(memory.begin(), memory.end(), std::int64_t{0}); }

namespace {

// What the operations of a step say of it.
void count_operations(const CountingDevice& device, Plan& plan) {
  for (const Operation& operation : device.operations_of(Activity::finish))
    plan.update_flops += product_flops(operation);
  for (const Operation& operation : device.operations()) {
    plan.step_flops += product_flops(operation);
    if (const auto* const loss = std::get_if<CrossEntropy>(&operation); loss != nullptr)
      plan.logits = std::max(plan.logits, loss->logits.bytes());
  }
}

std::int64_t updated_elements(const Engine& engine) {
  std::int64_t sum = 0;
  const auto units = static_cast<int>(engine.context().layout.units().size());
  for (int unit = 0; unit < units; ++unit) {
    for (const Segment segment : trained_segments) {
      const auto [begin, end] = engine.updated_range(unit, segment);
      sum += end - begin;
    }
  }
  return sum;
}

// The plan of a step of exactly settings.batch.accumulation micro-steps.
Plan count_step(const Settings& settings, int rank, int ranks, int ranks_on_node, const ScratchBytes& scratch) {
  CountingDevice device(scratch, "counting");
  CountingCommunicator communicator(rank, ranks, ranks_on_node);
  const auto sent = [&] {
    std::int64_t elements = 0;
    for (const CollectiveCount& count : communicator.counts().training) elements += count.elements;
    return elements;
  };

  Plan plan;
  Session session(settings, device, communicator, nullptr, nullptr);
  session.initialize();
  session.train_step();
  plan.elements_applied = sent();
  plan.sent = communicator.counts().training;
  count_operations(device, plan);
  plan.model_flops = session.model().flops_per_row() * static_cast<double>(settings.batch.micro) *
                     static_cast<double>(settings.batch.accumulation);
  plan.updated = updated_elements(session.engine());
  plan.units = static_cast<int>(session.layout().units().size());
  communicator.set_purpose(Purpose::training);
  for (int unit = 0; unit < static_cast<int>(session.layout().units().size()); ++unit)
    session.engine().publish(unit, Changed::trained);
  plan.elements_skipped = plan.elements_applied - (sent() - plan.elements_applied) -
                          plan.sent.at(static_cast<std::size_t>(CollectiveKind::all_to_all)).elements;
  if (settings.training.eval_interval > 0) session.evaluate();
  if (settings.model.type == "gpt" && !settings.training.sample_prompt.empty()) session.rehearse_next_token();
  session.weights_checksum();
  device.reserve_workspace();

  plan.ranks = ranks;
  plan.stage = settings.zero.stage;
  plan.parameters = session.layout().parameters();
  plan.memory = device.ledger().current();
  plan.padding = device.ledger().padding();
  plan.by_segment = session.layout().parameters_by_segment();
  plan.formula_bytes = formula_bytes_per_parameter(plan.stage, ranks, session.precision(), settings.batch.accumulation,
                                                   moments_per_parameter(session.optimizer(), session.layout()),
                                                   plan.by_segment, settings.training.accumulation_order);
  if (session.optimizer().matrix_rule() != nullptr)
    plan.matrix_elements = matrix_elements_per_parameter(plan.stage, session.layout());
  plan.operations = device.operations();
  return plan;
}

}  // namespace

Plan make_plan(const Settings& settings, int rank, int ranks, int ranks_on_node, const ScratchBytes& scratch) {
  // From the third micro-step on each is like the one before: three are run, the others follow.
  constexpr std::int64_t most = 3;
  const std::int64_t accumulation = settings.batch.accumulation;
  const auto count = [&](std::int64_t micro_steps) {
    Settings shortened = settings;
    shortened.batch.accumulation = micro_steps;
    shortened.batch.train = settings.batch.micro * micro_steps * ranks;
    shortened.training.eval_steps = 1;
    return count_step(shortened, rank, ranks, ranks_on_node, scratch);
  };
  Plan plan = count(std::min(accumulation, most));
  if (accumulation > most) {
    const Plan before = count(most - 1);
    const std::int64_t more = accumulation - most;
    const std::int64_t of_one = plan.elements_applied - before.elements_applied;
    plan.elements_applied += more * of_one;
    plan.elements_skipped += more * of_one;
    for (std::size_t kind = 0; kind < plan.sent.size(); ++kind) {
      CollectiveCount& all = plan.sent.at(kind);
      const CollectiveCount& less = before.sent.at(kind);
      all.calls += more * (all.calls - less.calls);
      all.elements += more * (all.elements - less.elements);
      all.bytes += more * (all.bytes - less.bytes);
    }
    plan.step_flops += static_cast<double>(more) * (plan.step_flops - before.step_flops);
    plan.model_flops += static_cast<double>(more) * (plan.model_flops - before.model_flops);
  }
  plan.paper_elements = paper_elements_per_parameter(plan.stage, ranks, accumulation, plan.by_segment,
                                                     settings.training.accumulation_order) +
                        plan.matrix_elements;
  return plan;
}

std::int64_t planned_elements(const Plan& plan, const StepCounts& steps) {
  return steps.applied * plan.elements_applied + (steps.skipped + steps.retried) * plan.elements_skipped;
}

void refuse_absurd_sizes(const Settings& settings) {
  constexpr double most = 1e15;  // bytes
  const auto rows = static_cast<double>(settings.batch.micro);
  double parameters = 0.0;
  double activations = 0.0;
  if (settings.model.type == "gpt") {
    const GptSettings& gpt = settings.model.gpt;
    const auto C = static_cast<double>(gpt.n_embd);
    const double I = gpt.n_inner > 0 ? static_cast<double>(gpt.n_inner) : 4.0 * C;
    const auto V = static_cast<double>(gpt.vocab_size);
    const auto T = static_cast<double>(gpt.n_positions);
    parameters = static_cast<double>(gpt.n_layer) * (4.0 * C * C + 2.0 * C * I) + (V + T) * C;
    activations = rows * T * (V + static_cast<double>(gpt.n_layer) * (6.0 * C + I));
  } else {
    const std::vector<std::int64_t>& layers = settings.model.mlp.layers;
    for (std::size_t layer = 0; layer + 1 < layers.size(); ++layer) {
      parameters += static_cast<double>(layers[layer]) * static_cast<double>(layers[layer + 1]);
      activations += rows * static_cast<double>(layers[layer]);
    }
  }
  const auto refuse = [](double bytes, const std::string& what) {
    throw UserError("this run needs about " + count_in_words(bytes) + "B for " + what);
  };
  if (4.0 * parameters > most) refuse(4.0 * parameters, "the model's parameters alone: make the model smaller");
  if (4.0 * activations > most) {
    refuse(4.0 * activations,
           "the activations of one micro-batch alone: lower train_micro_batch_size_per_gpu or the model's widths");
  }
}

namespace {

MemoryCategory largest_category(const Plan& plan) {
  return static_cast<MemoryCategory>(std::max_element(plan.memory.begin(), plan.memory.end()) - plan.memory.begin());
}

// Which keys make the largest category smaller.
std::string remedy_of(const Plan& plan, bool on_gpu) {
  const std::string shard = plan.ranks == 1 ? "on several ranks " : "";
  switch (largest_category(plan)) {
    case MemoryCategory::parameters:
      return "bf16 halves parameters; " + shard + "zero_optimization.stage 3 shards them";
    case MemoryCategory::gradients: return shard + "zero_optimization.stage 2 or 3 shards gradients";
    case MemoryCategory::optimizer: return shard + "zero_optimization.stage 1, 2 or 3 shards optimizer states";
    case MemoryCategory::communication: return "lower stage3_max_live_parameters and stage3_prefetch_bucket_size";
    case MemoryCategory::workspace:
      return on_gpu ? "scratch memory of products, which no key makes smaller: free memory on it, or take another GPU"
                    : "lower train_micro_batch_size_per_gpu";
    default:
      return "lower train_micro_batch_size_per_gpu (and raise gradient_accumulation_steps), or recompute blocks with "
             "activation_checkpointing.every 1";
  }
}

// "Most of it is optimizer (1.2 GB a rank): ..."
std::string most_of_it(const Plan& plan, bool on_gpu) {
  const MemoryCategory largest = largest_category(plan);
  return "Most of it is " + std::string(name_of(largest)) + " (" +
         bytes_in_words(plan.memory.at(static_cast<std::size_t>(largest))) + " a rank): " + remedy_of(plan, on_gpu) +
         ".";
}

}  // namespace

void check_memory(const Plan& plan, int ranks_here, std::int64_t available, const std::string& place) {
  const std::int64_t needed =
      plan.total() > (std::int64_t{1} << 62) / ranks_here ? std::int64_t{1} << 62 : plan.total() * ranks_here;
  if (needed <= available) return;
  throw UserError("this run needs " + bytes_in_words(plan.total()) + " a rank, " + bytes_in_words(needed) +
                  " for the " + std::to_string(ranks_here) + " rank(s) of " + place + ", but only " +
                  bytes_in_words(available) + " are free. " + most_of_it(plan, place != "this machine"));
}

void check_memory_limit(const Plan& plan, std::int64_t limit) {
  if (limit == 0 || plan.total() <= limit) return;
  throw UserError("this run needs " + bytes_in_words(plan.total()) + " a rank, and device.memory_limit is " +
                  bytes_in_words(limit) + ". " + most_of_it(plan, false));
}

}  // namespace zt
