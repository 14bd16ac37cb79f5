#include "train/report.h"

#include <algorithm>

#include "core/json.h"
#include "model/segments.h"
#include "train/words.h"
#include "zero/layout.h"

namespace zt {

namespace {

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}
std::string padded_right(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string with_separators(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3) {
    digits.insert(static_cast<std::size_t>(place), ",");
  }
  return digits;
}

std::string model_line(const Settings& settings, std::int64_t parameters) {
  if (settings.model.type == "mlp") {
    std::string layers;
    for (const std::int64_t width : settings.model.mlp.layers)
      layers += (layers.empty() ? "" : " -> ") + std::to_string(width);
    return "mlp " + layers + ", " + settings.model.mlp.loss + ": " + with_separators(parameters) + " parameters";
  }
  const GptSettings& gpt = settings.model.gpt;
  return "gpt " + std::to_string(gpt.n_layer) + " layers, " + std::to_string(gpt.n_head) + " heads, " +
         std::to_string(gpt.n_embd) + " wide, context " + std::to_string(gpt.n_positions) + ", vocabulary " +
         std::to_string(gpt.vocab_size) + (gpt.tie_word_embeddings ? ", tied head: " : ", untied head: ") +
         with_separators(parameters) + " parameters";
}

std::vector<std::string> memory_lines(const Plan& plan) {
  std::vector<std::string> lines;
  std::string states;
  std::int64_t state_bytes = 0;
  for (int index = 0; index < memory_category_count; ++index) {
    const auto category = static_cast<MemoryCategory>(index);
    const std::int64_t bytes = plan.memory.at(static_cast<std::size_t>(index));
    if (category == MemoryCategory::parameters || category == MemoryCategory::gradients ||
        category == MemoryCategory::optimizer) {
      state_bytes += bytes;
    }
    lines.push_back("  " + padded_right(std::string(name_of(category)), 14) + padded(bytes_in_words(bytes), 10));
  }
  const auto formula = static_cast<std::int64_t>(plan.formula_bytes * static_cast<double>(plan.parameters));
  lines.push_back("  " + padded_right("total", 14) + padded(bytes_in_words(plan.total()), 10) + "   of it padding " +
                  bytes_in_words(plan.padding));
  lines.push_back("  model states (the first three) " + bytes_in_words(state_bytes) + "; formula of stage " +
                  std::to_string(plan.stage) + ": " + fixed(plan.formula_bytes, 2) +
                  " bytes a parameter = " + bytes_in_words(formula));
  return lines;
}

}  // namespace

std::vector<std::string> start_block(const Settings& settings, const Plan& plan, const std::string& device,
                                     const std::string& communicator, const std::string& data, std::int64_t samples) {
  const BatchSettings& batch = settings.batch;
  std::vector<std::string> lines;
  lines.push_back("model      " + model_line(settings, plan.parameters));
  if (plan.trained_parameters() < plan.parameters) {
    lines.push_back("           " + with_separators(plan.trained_parameters()) + " of them trained; " +
                    with_separators(plan.parameters - plan.trained_parameters()) +
                    " frozen (model.freeze), without gradients and optimizer states");
  }
  lines.push_back("data       " + data);
  if (batch.micro_batches() % plan.ranks == 0) {
    lines.push_back("batch      " + std::to_string(batch.train) + " = " + std::to_string(batch.micro) +
                    " a micro-batch x " + std::to_string(batch.accumulation) + " accumulated x " +
                    std::to_string(plan.ranks) + " rank(s)");
  } else {
    lines.push_back("batch      " + std::to_string(batch.train) + " = " + std::to_string(batch.micro) +
                    " a micro-batch x " + std::to_string(batch.micro_batches()) + ", dealt out to " +
                    std::to_string(plan.ranks) + " ranks in " + std::to_string(batch.accumulation) + " micro-steps");
  }
  if (samples % batch.train != 0) {
    lines.push_back("           an epoch of " + with_separators(samples) + " samples is " +
                    fixed(static_cast<double>(samples) / static_cast<double>(batch.train), 2) +
                    " batches: one batch takes from two epochs; each sample still comes once an epoch");
  }
  lines.push_back("precision  " + precision_in_words(settings.precision, settings.batch.accumulation));
  if (order_in_effect(settings) == AccumulationOrder::local) {
    lines.push_back(
        "gradients  added up locally (training.gradient_accumulation_order), reduced once a step: the curve depends on "
        "the number of ranks");
  }
  lines.push_back("ZeRO       stage " + std::to_string(plan.stage) + ", " + communicator);
  lines.push_back("device     " + device);
  lines.push_back("memory of a rank, planned:");
  for (std::string& line : memory_lines(plan)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> plan_tables(const Settings& settings, const Plan& plan) {
  std::vector<std::string> lines;
  const std::vector<UnitSpec> units = model_units(settings);
  const Layout layout(units, plan.ranks);
  lines.push_back("layout for " + std::to_string(plan.ranks) + " rank(s): " + with_separators(layout.parameters()) +
                  " parameters, " + with_separators(layout.elements() - layout.parameters()) + " of padding");
  const bool any_frozen = plan.trained_parameters() < plan.parameters;
  lines.push_back("  " + padded_right("unit", 16) + padded("matrices", 14) + padded("slice", 12) +
                  padded("vectors", 12) + padded("slice", 10) + (any_frozen ? padded("frozen", 14) : ""));
  const auto row = [&](const UnitLayout& unit) {
    const SegmentLayout& matrices = unit.segment(Segment::matrices);
    const SegmentLayout& vectors = unit.segment(Segment::vectors);
    const std::int64_t frozen =
        unit.segment(Segment::frozen_matrices).used + unit.segment(Segment::frozen_vectors).used;
    return padded(with_separators(matrices.used), 14) + padded(with_separators(matrices.slice), 12) +
           padded(with_separators(vectors.used), 12) + padded(with_separators(vectors.slice), 10) +
           (any_frozen ? padded(with_separators(frozen), 14) : "");
  };
  // Units alike have one line: "h.0 to h.11".
  for (std::size_t first = 0; first < layout.units().size();) {
    const UnitLayout& unit = layout.units()[first];
    std::size_t last = first;
    while (last + 1 < layout.units().size() && row(layout.units()[last + 1]) == row(unit)) ++last;
    const std::string name = last == first ? unit.name : unit.name + " to " + layout.units()[last].name;
    lines.push_back("  " + padded_right(name, 16) + row(unit));
    first = last + 1;
  }
  lines.push_back("memory of a rank:");
  for (std::string& line : memory_lines(plan)) lines.push_back(std::move(line));
  const auto per_parameter = [&](std::int64_t elements) {
    return fixed(static_cast<double>(elements) / static_cast<double>(plan.parameters), 4);
  };
  lines.push_back("communication of a rank: " + with_separators(plan.elements_applied) + " elements a step, " +
                  per_parameter(plan.elements_applied) + " a parameter (paper " + fixed(plan.paper_elements, 4) +
                  "); a skipped step " + per_parameter(plan.elements_skipped));
  return lines;
}

std::vector<std::string> closing_block(const nlohmann::ordered_json& summary, const std::string& output_dir) {
  const auto number = [](const nlohmann::ordered_json& value) { return value.is_number() ? value.get<double>() : 0.0; };
  const auto& steps = summary.at("steps");
  const auto& final_values = summary.at("final");
  const auto& throughput = summary.at("throughput");
  const auto& communication = summary.at("communication");
  const auto retries = summary.at("retries").get<std::int64_t>();
  const auto& best = summary.at("best");
  std::vector<std::string> lines;
  lines.push_back(summary.at("status").get<std::string>() + ": " +
                  std::to_string(steps.at("attempted").get<std::int64_t>()) + " steps attempted, " +
                  std::to_string(steps.at("applied").get<std::int64_t>()) + " applied, " +
                  std::to_string(steps.at("skipped").get<std::int64_t>()) + " skipped, " +
                  (retries > 0 ? std::to_string(retries) + " run(s) again after an overflow, " : "") + "in " +
                  seconds_in_words(number(summary.at("seconds").at("train"))));
  lines.push_back("loss           " +
                  (final_values.at("loss").is_null() ? "-" : fixed(number(final_values.at("loss")), 4)) +
                  (final_values.at("validation_loss").is_null()
                       ? ""
                       : ", validation " + fixed(number(final_values.at("validation_loss")), 4)) +
                  (best.is_null() ? ""
                                  : ", best " + fixed(number(best.at("validation_loss")), 4) + " after step " +
                                        std::to_string(best.at("step").get<std::int64_t>())));
  const char* unit = throughput.contains("tokens_per_second") ? "tokens_per_second" : "samples_per_second";
  lines.push_back("throughput     " + count_in_words(number(throughput.at(unit))) +
                  (unit[0] == 't' ? " tokens/s" : " samples/s") + ", " +
                  count_in_words(number(throughput.at("model_flops_per_second"))) + "flop/s a rank, " +
                  fixed(100.0 * number(throughput.at("utilization")), 1) + " % of its matrix products' rate");
  const auto& rank = summary.at("memory").at("ranks").at(0);
  std::string on_gpu;
  if (summary.at("run").contains("gpu")) {
    std::int64_t held = 0;
    for (const auto& [category, bytes] : rank.items()) {
      if (summary.at("memory").at("planned").contains(category) && category != "padding")
        held += bytes.get<std::int64_t>();
    }
    on_gpu = bytes_in_words(held) + " held on the GPU, on the host ";
  }
  lines.push_back("memory         " + on_gpu + "peak resident " +
                  bytes_in_words(rank.at("peak_resident").get<std::int64_t>()) + " (rank 0), model states by formula " +
                  fixed(number(summary.at("memory").at("formula_bytes_per_parameter")), 2) + " bytes a parameter");
  lines.push_back("communication  " + fixed(number(communication.at("elements_per_parameter_and_step")), 4) +
                  " elements a parameter and step, planned " + fixed(number(communication.at("planned")), 4) +
                  ", paper " + fixed(number(communication.at("paper")), 4));
  if (!summary.at("weights_checksum").is_null()) {
    lines.push_back("weights        checksum " + summary.at("weights_checksum").get<std::string>());
  }
  const std::string folder = output_dir.ends_with('/') ? output_dir : output_dir + "/";
  lines.push_back("files          " + folder + "{summary.json, metrics.jsonl, config.resolved.json, train.log}");
  return lines;
}

}  // namespace zt
