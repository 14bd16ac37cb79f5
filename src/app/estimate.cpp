// zerotrain estimate: what a training holds, sends and takes at other stages and numbers of ranks.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "app/amounts.h"
#include "app/estimator.h"
#include "app/measured_run.h"
#include "app/verbs.h"
#include "comm/mpi.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "train/estimate_report.h"
#include "train/words.h"

namespace zt {
namespace {

struct Arguments {
  std::vector<std::string> configs, sets;
  std::string parameters, memory, bandwidth, flops, updates, from;
  double latency = 0.0;
  std::vector<int> world_sizes = {1, 4, 16, 64, 256, 1024};  // the paper's
  std::vector<int> stages = {0, 1, 2, 3};
  bool json = false;
};

bool parse(Arguments& arguments, int argc, const char* const* argv) {
  CLI::App app(
      "Says what a training holds and sends at each stage and number of ranks: for a config the plan that its run "
      "makes, "
      "to the byte; for a bare number of parameters the accounting of the ZeRO paper (fp16 with Adam).",
      "zerotrain estimate");
  app.add_option("-c,--config", arguments.configs, "Config files, merged left to right")
      ->type_name("FILE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("-s,--set", arguments.sets, "One key, after all files: a.b.c=VALUE")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--parameters", arguments.parameters, "In place of a config: so many parameters, as 7.5e9 or 7.5B")
      ->type_name("N");
  app.add_option("--world-size", arguments.world_sizes, "Numbers of ranks to look at")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--stages", arguments.stages, "ZeRO stages to look at")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(whole_number(0, 3))
      ->capture_default_str();
  app.add_option(
         "--memory", arguments.memory,
         "What memory a rank has (on GPUs: its GPU's), as 80GB or 64GiB: tells the largest model that fits, too")
      ->type_name("BYTES");
  app.add_option(
         "--from", arguments.from,
         "A run's directory, or its summary.json: predicts the time of a step by the rates measured in it, which "
         "the four options below replace; without --config, of its config")
      ->type_name("RUN");
  app.add_option("--flops", arguments.flops,
                 "Predicts the time of a step: floating-point operations of matrix products that a rank does a second, "
                 "as 400T")
      ->type_name("N");
  app.add_option("--bandwidth", arguments.bandwidth,
                 "For that time, needed with several ranks: bytes that a rank sends a second, as 25GB/s")
      ->type_name("BYTES");
  app.add_option("--latency", arguments.latency,
                 "For that time: seconds that a collective takes for each other rank beside its bytes, as 5e-6")
      ->type_name("SECONDS")
      ->check(finite_number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--updates", arguments.updates,
                 "For that time: parameters that a rank's optimizer updates a second, as 2e9; where no run tells, "
                 "updating counts as no time")
      ->type_name("N");
  app.add_flag("--json", arguments.json, "A list of one object for each stage and number of ranks");
  app.footer(
      "Examples:\n"
      "  zerotrain estimate --parameters 7.5e9\n"
      "  zerotrain estimate --config configs/gpt.json --world-size 1,2,4 --memory 16GB\n"
      "  zerotrain estimate --from runs/gpt --world-size 1,2,4,8\n"
      "With zero_optimization.stage \"auto\" it shows what is chosen and why (docs/scaling.md).");
  return parse_verb(app, argc, argv);
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}

int of_parameters(const Arguments& arguments) {
  if (!arguments.configs.empty() || !arguments.sets.empty() || !arguments.from.empty()) {
    throw UserError("--parameters stands in place of a config: leave out --config, --set and --from");
  }
  if (!arguments.flops.empty() || !arguments.bandwidth.empty() || !arguments.updates.empty()) {
    throw UserError(
        "the time of a step depends on more than the number of parameters: give --config in place of "
        "--parameters");
  }
  const double parameters = count_of("--parameters", arguments.parameters);
  if (parameters > 1e16) throw UserError("--parameters must be at most 1e16");
  const double memory = arguments.memory.empty() ? 0.0 : bytes_of("--memory", arguments.memory);
  std::vector<EstimateRow> rows;
  for (const int ranks : arguments.world_sizes) {
    for (const int stage : arguments.stages) {
      EstimateRow& row = rows.emplace_back();
      row.plan = paper_plan(parameters, stage, ranks);
      if (memory > 0.0) row.largest_parameters = memory / paper_bytes_per_parameter(stage, ranks);
    }
  }
  if (arguments.json) {
    std::puts(json_text(estimate_json(rows, memory > 0.0), 2).c_str());
    return 0;
  }
  print(state_table(rows));
  if (memory > 0.0) print(largest_table(rows, static_cast<std::int64_t>(memory)));
  return 0;
}

// The rates to predict with; none: no prediction was asked for.
std::optional<Rates> rates_for(const Arguments& arguments, const std::optional<MeasuredSource>& measured) {
  Rates rates;
  if (measured) {
    ResolvedConfig config = resolve_here(measured->config, measured->ranks);
    Estimator estimator(measured->config);
    try {
      rates = rates_of(measured->run, estimator.plan(config, measured->ranks));
    } catch (const UserError& error) {
      throw UserError("--from " + measured->summary + ": " + error.what());
    }
  }
  if (!arguments.flops.empty()) rates.flops = count_of("--flops", arguments.flops);
  if (!arguments.bandwidth.empty())
    rates.gather_bandwidth = rates.reduce_bandwidth = bytes_of("--bandwidth", arguments.bandwidth);
  if (!arguments.updates.empty()) rates.updates = count_of("--updates", arguments.updates);
  rates.latency = arguments.latency;
  if (rates.flops == 0.0) {
    if (arguments.bandwidth.empty() && arguments.updates.empty() && arguments.latency == 0.0) return std::nullopt;
    throw UserError("the time of a step needs the rate of products, too: give --flops, or --from a run");
  }
  const bool sends =
      std::any_of(arguments.world_sizes.begin(), arguments.world_sizes.end(), [](int n) { return n > 1; });
  if (sends && (rates.gather_bandwidth == 0.0 || rates.reduce_bandwidth == 0.0)) {
    throw UserError(measured
                        ? "--from " + measured->summary + ": the run of " + std::to_string(measured->ranks) +
                              " rank(s) says nothing of how fast data are sent: give --bandwidth, or --world-size 1"
                        : "the time of a step on several ranks needs --bandwidth: bytes that a rank sends a second");
  }
  return rates;
}

std::string rates_line(const Rates& rates) {
  std::string line = "a rank: " + count_in_words(rates.flops) + "flop/s of products";
  if (rates.updates > 0.0) line += ", " + count_in_words(rates.updates) + " updates/s";
  if (rates.gather_bandwidth > 0.0 && rates.gather_bandwidth == rates.reduce_bandwidth) {
    line += ", sends " + count_in_words(rates.gather_bandwidth) + "B/s";
  } else if (rates.gather_bandwidth > 0.0) {
    line += ",\n  gathers " + count_in_words(rates.gather_bandwidth) + "B/s, reduces " +
            count_in_words(rates.reduce_bandwidth) + "B/s";
  }
  if (rates.latency > 0.0) line += ", latency " + short_seconds(rates.latency);
  return line;
}

nlohmann::ordered_json candidates_json(const Fit& fit, int stage) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < fit.candidates.size(); ++index) {
    const FitCandidate& candidate = fit.candidates[index];
    if (candidate.stage != stage) continue;
    list.push_back({{"micro_batch", candidate.micro},
                    {"accumulation", candidate.accumulation},
                    {"every", candidate.every},
                    {"bytes", candidate.bytes},
                    {"elements", candidate.elements},
                    {"fits", candidate.bytes <= fit.memory},
                    {"chosen", fit.chosen == index}});
  }
  return list;
}

int of_config(const Arguments& arguments) {
  std::optional<MeasuredSource> measured;
  if (!arguments.from.empty()) measured = read_measured(arguments.from);
  ConfigSource source{.configs = arguments.configs, .sets = arguments.sets};
  if (source.configs.empty() && measured) source.configs = measured->config.configs;
  if (source.configs.empty() && source.sets.empty()) {
    throw UserError(
        "nothing to estimate: give --config FILE, --parameters N, or --from a run's directory. See zerotrain estimate "
        "--help.");
  }
  const auto memory =
      arguments.memory.empty() ? std::int64_t{0} : static_cast<std::int64_t>(bytes_of("--memory", arguments.memory));
  const std::optional<Rates> rates = rates_for(arguments, measured);
  Estimator estimator(source);
  const PlanMaker make = [&](const Settings& settings, int ranks) { return estimator.plan(settings, ranks); };

  std::vector<EstimateRow> rows;
  std::map<int, Fit> fits;  // by ranks
  for (const int ranks : arguments.world_sizes) {
    const DealtConfig as_given = estimator.deal(ranks, {});
    if (as_given.config.left_open.any()) fits.insert_or_assign(ranks, estimator.fit(as_given, ranks, memory));
    for (const int stage : arguments.stages) {
      DealtConfig dealt = estimator.deal(ranks, {"zero_optimization.stage=" + std::to_string(stage)});
      EstimateRow& row = rows.emplace_back();
      row.plan = estimator.plan(dealt.config, ranks);
      const Settings& settings = dealt.config.settings;
      row.batch = settings.batch;
      row.own_batch = dealt.own_batch;
      row.activations = activation_bytes(settings, row.plan, make);
      row.counts_tokens = settings.model.type == "gpt";
      row.positions = settings.batch.train * (row.counts_tokens ? settings.model.gpt.n_positions : 1);
      if (rates) {
        row.time = predict_step(row.plan, settings.batch.accumulation, settings.training.accumulation_order, *rates,
                                settings.device.type == "cuda");
      }
      if (memory == 0) continue;
      row.largest = largest_model(settings, ranks, memory, make);
      if (row.largest) row.largest_parameters = static_cast<double>(row.largest->parameters);
    }
  }

  if (arguments.json) {
    nlohmann::ordered_json list = estimate_json(rows, memory > 0);
    for (std::size_t index = 0; index < rows.size(); ++index) {
      const auto fit = fits.find(rows[index].plan.ranks);
      if (fit != fits.end()) list[index]["candidates"] = candidates_json(fit->second, rows[index].plan.stage);
    }
    std::puts(json_text(list, 2).c_str());
    return 0;
  }
  print(memory_table(rows));
  for (const auto& [ranks, fit] : fits) {
    std::printf("\n\"auto\" on %d rank(s), ", ranks);
    print(fit_table(fit));
  }
  if (memory > 0) {
    std::puts("");
    print(largest_table(rows, memory));
  }
  if (rates) {
    std::printf("\n%s\n", rates_line(*rates).c_str());
    print(time_table(rows));
  }
  return 0;
}

}  // namespace

int estimate(int argc, const char* const* argv) {
  Arguments arguments;
  if (!parse(arguments, argc, argv)) return 0;
  if (launched_by_mpi())
    throw UserError("estimate looks at any number of ranks from one process: start it without mpirun");
  return arguments.parameters.empty() ? of_config(arguments) : of_parameters(arguments);
}

}  // namespace zt
