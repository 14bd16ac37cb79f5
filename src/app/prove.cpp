#include "app/prove.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "data/source.h"
#include "device/cpu/instruction_set.h"
#include "train/curve.h"
#include "train/words.h"

namespace zt {

namespace {

// The largest micro-batch up to the config's own that every number of ranks can be dealt evenly.
std::int64_t common_micro_batch(const BatchSettings& batch, const std::vector<int>& ranks) {
  std::int64_t multiple = 1;
  for (const int count : ranks) multiple = std::lcm(multiple, static_cast<std::int64_t>(count));
  if (batch.train % multiple != 0) {
    const std::int64_t below = batch.train / multiple * multiple;
    throw UserError("a global batch of " + std::to_string(batch.train) +
                    " cannot be dealt evenly to all of these ranks: use " +
                    (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + multiple) +
                    " with --set train_batch_size=N, or other --ranks");
  }
  std::int64_t micro = std::min(batch.micro, batch.train / multiple);
  while ((batch.train / multiple) % micro != 0) --micro;
  return micro;
}

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

// Rows that must have the same bits share a number: 0 for those of the global order, which is one curve, and in local
// order each number of ranks' own. One rank adds up in the same order either way.
int curve_of(const Settings& settings, int ranks) {
  return order_in_effect(settings) == AccumulationOrder::local && ranks > 1 ? ranks : 0;
}

nlohmann::ordered_json row_of(const Curve& curve, int ranks, const Settings& settings, bool same) {
  nlohmann::ordered_json row;
  row["ranks"] = ranks;
  row["stage"] = settings.zero.stage;
  row["accumulation"] = settings.batch.accumulation;
  row["accumulation_order"] =
      name_of(curve_of(settings, ranks) > 0 ? AccumulationOrder::local : AccumulationOrder::global);
  row["loss"] = curve.steps.back().loss;
  row["skipped"] =
      std::count_if(curve.steps.begin(), curve.steps.end(), [](const CurveStep& step) { return step.skipped; });
  row["weights_checksum"] = hex(curve.checksum);
  row["same"] = same;
  row["elements_sent"] = curve.elements_sent;
  row["elements_planned"] = curve.elements_planned;
  row["bytes_held"] = std::accumulate(curve.held.begin(), curve.held.end(), std::int64_t{0});
  row["bytes_planned"] = curve.plan.total();
  return row;
}

// `curves`: how many there should be.
std::string verdict(bool all_same, bool as_planned, std::size_t curves) {
  if (!all_same) return "rows differ";
  const std::string found =
      curves == 1 ? "one curve" : std::to_string(curves) + " curves, one for each order of addition";
  if (!as_planned) return found + ", but a row holds or sends something else than planned";
  return found + (curves == 1 ? ": every row has the same bits" : ": every row has the bits of its own");
}

}  // namespace

int prove(ResolvedConfig config, const CommandLine& line) {
  const std::vector<int>& ranks = line.rank_list;
  const std::vector<int>& stages = line.stages;
  const int steps = line.steps;
  const bool json = line.json;
  if (const auto level = cpu::instruction_level_from(config.settings.device.instruction_set))
    cpu::limit_instruction_set(*level);
  const Dataset dataset = open_dataset(config.settings);
  for (const std::string& notice : dataset.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  if (dataset.vocab_size > 0)
    settle(config, {.vocab_size = dataset.vocab_size,
                    .device_type = {},
                    .threads = {},
                    .communicator = {},
                    .ranks_per_node = {},
                    .instruction_set = {}});
  Settings settings = config.settings;
  settings.batch.micro = common_micro_batch(settings.batch, ranks);
  settings.device.threads = std::max(1, settings.device.threads);
  settings.training.max_steps = steps;
  settings.training.sample_prompt.clear();
  // In 16 bits the sums must be fp32: else they are rounded once a step on one rank and more often on several.
  const bool rounds_sums = is_16_bit(make_precision(settings.precision, settings.batch.accumulation).accumulator);
  if (rounds_sums && ranks.size() > 1 && !line.as_is) {
    std::fprintf(stderr,
                 "notice: compared with data_types.grad_accum_dtype \"fp32\"; as the config stands, sums in 16 bits "
                 "are the same at every stage, but not at every number of ranks (--as-is compares them)\n");
    settings.precision.grad_accum_dtype = "fp32";
  }
  if (settings.training.fast_communication && !line.as_is) {
    std::fprintf(stderr,
                 "notice: compared with training.communication_order \"exact\"; \"fast\" adds in another order at each "
                 "number of ranks (--as-is compares it)\n");
    settings.training.fast_communication = false;
  }
  if (settings.training.accumulation_order == AccumulationOrder::local) {
    std::fprintf(
        stderr,
        "notice: with training.gradient_accumulation_order \"local\", stages 0 and 1 must agree at each number "
        "of ranks by itself; stages 2 and 3, and all rows of one rank or with A = 1, add up in global order and "
        "must be one curve\n");
  }
  if (settings.batch.micro != config.settings.batch.micro) {
    std::fprintf(stderr,
                 "notice: compared with micro-batches of %lld, which all of these ranks can be dealt; the config's own "
                 "on one rank is %lld\n",
                 static_cast<long long>(settings.batch.micro), static_cast<long long>(config.settings.batch.micro));
  }

  const bool shows_order = settings.training.accumulation_order == AccumulationOrder::local;
  const auto print_head = [&](const std::string& device) {
    const Precision precision = make_precision(settings.precision, settings.batch.accumulation);
    std::printf("%d steps in %s, global batch %lld = micro-batches of %lld, gradients summed in %s, %s\n", steps,
                settings.precision.preset.c_str(), static_cast<long long>(settings.batch.train),
                static_cast<long long>(settings.batch.micro), std::string(name_of(precision.accumulator)).c_str(),
                device.c_str());
    std::printf("%5s %5s %4s  %-15s %7s  %-16s  %-9s %s%s\n", "ranks", "stage", "A", "last loss", "skipped", "weights",
                "bytes", "elements sent", shows_order ? "  order" : "");
  };
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  std::optional<Curve> first;
  std::map<int, Curve> references;  // by curve_of(): its first row
  bool all_same = true;
  bool as_planned = true;
  for (const int count : ranks) {
    for (const int stage : stages) {
      const Settings here = at(settings, count, stage);
      const Curve curve = trace_curve(here, dataset, count);
      if (!first) {
        first = curve;
        if (!json) print_head(curve.device);
      }
      const int which = curve_of(here, count);
      const bool same = curve.same_bits(references.try_emplace(which, curve).first->second);
      all_same = all_same && same;
      as_planned = as_planned && curve.held == curve.plan.memory && curve.elements_sent == curve.elements_planned;
      table.push_back(row_of(curve, count, here, same));
      if (json) continue;
      const auto& row = table.back();
      const bool held_as_planned = row["bytes_held"] == row["bytes_planned"];
      std::printf("%5d %5d %4lld  %-15s %7d  %-16s  %-9s %-*s%s%s\n", count, stage,
                  static_cast<long long>(here.batch.accumulation), significant(curve.steps.back().loss, 9).c_str(),
                  row["skipped"].get<int>(), hex(curve.checksum).c_str(), held_as_planned ? "as plan" : "NOT PLAN",
                  shows_order ? 15 : 0, curve.elements_sent == curve.elements_planned ? "as plan" : "NOT PLAN",
                  shows_order ? row["accumulation_order"].get<std::string>().c_str() : "",
                  same        ? ""
                  : which > 0 ? "   DIFFERS from the first row of these ranks in local order"
                              : "   DIFFERS from the first row");
      std::fflush(stdout);
    }
  }
  const auto& steps_of_first = first->steps;
  const bool none_applied =
      std::all_of(steps_of_first.begin(), steps_of_first.end(), [](const CurveStep& step) { return step.skipped; });
  if (!std::isfinite(steps_of_first.back().loss) || steps_of_first.size() < static_cast<std::size_t>(steps)) {
    std::fprintf(stderr,
                 "warning: the runs of this config end in step %zu with a loss or gradients that are not finite; train "
                 "it to see the first such value named\n",
                 steps_of_first.size());
  } else if (none_applied) {
    std::fprintf(stderr,
                 "warning: every step was skipped while the loss scale came down: the weights are the initial ones; "
                 "more --steps, or a lower fp16.initial_scale_power, prove more\n");
  }
  if (json) {
    std::printf("%s\n", json_text(table, 2).c_str());
  } else {
    std::printf("%s\n", verdict(all_same, as_planned, references.size()).c_str());
  }
  return all_same && as_planned ? 0 : 1;
}

}  // namespace zt
