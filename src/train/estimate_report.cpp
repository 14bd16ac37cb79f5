#include "train/estimate_report.h"

#include <algorithm>

#include "core/json.h"
#include "train/words.h"

namespace zt {

using Json = nlohmann::ordered_json;

namespace {

std::string right(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

std::int64_t bytes_of(const Plan& plan, MemoryCategory category) {
  return plan.memory.at(static_cast<std::size_t>(category));
}

std::string ranks_in_words(int ranks) { return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"); }

double per_parameter(std::int64_t elements, const Plan& plan) {
  return static_cast<double>(elements) / static_cast<double>(std::max<std::int64_t>(1, plan.parameters));
}

// "64 ranks: batch 128 = micro-batch 1 x 2": so many accumulated.
std::string heading(const EstimateRow& row) {
  const BatchSettings& batch = row.batch;
  return ranks_in_words(row.plan.ranks) + ": batch " + std::to_string(batch.train) + " = micro-batch " +
         std::to_string(batch.micro) + " x " + std::to_string(batch.accumulation) +
         (row.own_batch ? "" : " (not the config's)");
}

void for_each_group(const std::vector<EstimateRow>& rows, std::vector<std::string>& lines, const std::string& columns,
                    const std::function<std::string(const EstimateRow&)>& text_of) {
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (index == 0 || rows[index - 1].plan.ranks != rows[index].plan.ranks) {
      lines.push_back(heading(rows[index]));
      lines.push_back(columns);
    }
    lines.push_back(text_of(rows[index]));
  }
}

Json model_json(const ModelSettings& model) {
  if (model.type != "gpt") return {{"layers", model.mlp.layers}};
  const GptSettings& gpt = model.gpt;
  return {{"n_layer", gpt.n_layer},
          {"n_head", gpt.n_head},
          {"n_embd", gpt.n_embd},
          {"n_inner", gpt.n_inner == 0 ? 4 * gpt.n_embd : gpt.n_inner}};
}

Json collectives_json(const Plan& plan) {
  const auto kind = [&](CollectiveKind which) {
    const CollectiveCount& count = plan.sent.at(static_cast<std::size_t>(which));
    return Json{{"calls", count.calls}, {"bytes", count.bytes}};
  };
  return {{"reduce_scatter", kind(CollectiveKind::reduce_scatter)},
          {"all_gather", kind(CollectiveKind::all_gather)},
          {"all_to_all", kind(CollectiveKind::all_to_all)}};
}

Json row_json(const EstimateRow& row, bool with_largest) {
  const Plan& plan = row.plan;
  const bool of_config = row.batch.micro > 0;
  Json json;
  json["stage"] = plan.stage;
  json["world_size"] = plan.ranks;
  json["parameters"] = plan.parameters;
  if (of_config) {
    json["batch"] = {{"train", row.batch.train},
                     {"micro", row.batch.micro},
                     {"accumulation", row.batch.accumulation},
                     {"as_configured", row.own_batch}};
  }
  Json& memory = json["memory"];
  for (int category = 0; category < memory_category_count; ++category) {
    const auto which = static_cast<MemoryCategory>(category);
    memory[std::string(name_of(which))] = bytes_of(plan, which);
  }
  memory["padding"] = plan.padding;
  json["total"] = plan.total();
  json["formula_bytes_per_parameter"] = plan.formula_bytes;
  if (row.activations) {
    json["activations"] = {{"kept", row.activations->kept}, {"recomputed", row.activations->recomputed}};
    json["logits"] = plan.logits;
  }
  const double planned = of_config ? per_parameter(plan.elements_applied, plan) : plan.paper_elements;
  json["communication"] = {{"elements_per_parameter_and_step", planned},
                           {"planned", planned},
                           {"paper", plan.paper_elements},
                           {"planned_elements", plan.elements_applied}};
  if (of_config) json["communication"].update(collectives_json(plan));
  if (with_largest) {
    json["largest"] = nullptr;
    if (row.largest_parameters) json["largest"] = {{"parameters", *row.largest_parameters}};
    if (row.largest) {
      json["largest"] = {{"parameters", row.largest->parameters},
                         {"bytes", row.largest->bytes},
                         {"model", model_json(row.largest->model)}};
    }
  }
  if (row.time) {
    const StepTime& time = *row.time;
    json["prediction"] = {{"step_seconds", time.step}, {"forward", time.forward},      {"backward", time.backward},
                          {"update", time.update},     {"gather", time.gather},        {"reduce", time.reduce},
                          {"exposed", time.exposed},   {"all_to_all", time.all_to_all}};
    json["prediction"][row.counts_tokens ? "tokens_per_second" : "samples_per_second"] =
        static_cast<double>(row.positions) / time.step;
  }
  return json;
}

}  // namespace

std::string short_bytes(std::int64_t bytes) {
  std::string text = bytes_in_words(bytes);
  text.pop_back();  // the B
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

std::string short_seconds(double seconds) {
  const auto shown = [](double value, const char* unit) {
    return fixed(value, value < 10.0 ? 2 : value < 100.0 ? 1 : 0) + unit;
  };
  if (seconds >= 1.0) return shown(seconds, " s");
  if (seconds >= 1e-3) return shown(1e3 * seconds, " ms");
  return seconds == 0.0 ? "0" : shown(1e6 * seconds, " us");
}

std::vector<std::string> state_table(const std::vector<EstimateRow>& rows) {
  std::vector<std::string> lines;
  lines.push_back("bytes per rank of model states: fp16 with Adam, 2 + 2 + 12 bytes a parameter");
  lines.emplace_back(" ranks  stage  parameters  gradients  optimizer     total  elements sent");
  for (const EstimateRow& row : rows) {
    const Plan& plan = row.plan;
    const auto cell = [&](MemoryCategory category, std::size_t width) {
      return right(bytes_in_words(bytes_of(plan, category)), width);
    };
    lines.push_back(right(std::to_string(plan.ranks), 6) + right(std::to_string(plan.stage), 7) +
                    cell(MemoryCategory::parameters, 12) + cell(MemoryCategory::gradients, 11) +
                    cell(MemoryCategory::optimizer, 11) + right(bytes_in_words(plan.total()), 10) +
                    right(count_in_words(static_cast<double>(plan.elements_applied)), 15));
  }
  return lines;
}

std::vector<std::string> memory_table(const std::vector<EstimateRow>& rows) {
  std::vector<std::string> lines;
  lines.emplace_back("bytes per rank, in powers of 1000; sent: elements per parameter and step");
  // recomp.: activations if every block is recomputed; logits are part of the activations; other: data and workspace.
  const std::string columns = "stage params  grads  optim  activ recomp logits   comm  other  total   sent";
  for_each_group(rows, lines, columns, [](const EstimateRow& row) {
    const Plan& plan = row.plan;
    std::string line = right(std::to_string(plan.stage), 5);
    const auto add = [&](std::int64_t bytes) { line += right(short_bytes(bytes), 7); };
    add(bytes_of(plan, MemoryCategory::parameters));
    add(bytes_of(plan, MemoryCategory::gradients));
    add(bytes_of(plan, MemoryCategory::optimizer));
    add(bytes_of(plan, MemoryCategory::activations));
    add(row.activations ? row.activations->recomputed : bytes_of(plan, MemoryCategory::activations));
    add(plan.logits);
    add(bytes_of(plan, MemoryCategory::communication));
    add(bytes_of(plan, MemoryCategory::data) + bytes_of(plan, MemoryCategory::workspace));
    add(plan.total());
    return line + " " + right(fixed(per_parameter(plan.elements_applied, plan), 2), 6);
  });
  return lines;
}

std::vector<std::string> largest_table(const std::vector<EstimateRow>& rows, std::int64_t memory) {
  std::vector<std::string> lines;
  const bool of_config = !rows.empty() && rows.front().batch.micro > 0;
  lines.push_back(std::string("parameters of the largest model") + (of_config ? " of these proportions" : "") +
                  " that " + bytes_in_words(memory) + " a rank hold");
  std::vector<int> stages;
  for (const EstimateRow& row : rows) {
    if (std::find(stages.begin(), stages.end(), row.plan.stage) == stages.end()) stages.push_back(row.plan.stage);
  }
  std::string head = " ranks";
  for (const int stage : stages) head += right("stage " + std::to_string(stage), 17);
  lines.push_back(head);
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const EstimateRow& row = rows[index];
    if (index == 0 || rows[index - 1].plan.ranks != row.plan.ranks)
      lines.push_back(right(std::to_string(row.plan.ranks), 6));
    std::string cell = row.largest_parameters ? count_in_words(*row.largest_parameters) : "none";
    if (row.largest && row.largest->model.type == "gpt") {
      cell +=
          " " + std::to_string(row.largest->model.gpt.n_layer) + "x" + std::to_string(row.largest->model.gpt.n_embd);
    }
    lines.back() += right(cell, 17);
  }
  return lines;
}

std::vector<std::string> time_table(const std::vector<EstimateRow>& rows) {
  std::vector<std::string> lines;
  const bool has_blocks =
      std::any_of(rows.begin(), rows.end(), [](const EstimateRow& row) { return row.time->all_to_all > 0.0; });
  // Few plans send blocks; with their column the others are narrower.
  const std::size_t width = has_blocks ? 8 : 9;
  lines.emplace_back(has_blocks ? "seconds of a step, predicted; blocks: sent to owners and back, never hidden;"
                                : "seconds of a step, predicted; exposed: what is not hidden of gather and reduce");
  if (has_blocks) lines.emplace_back("exposed: these, and what is not hidden of gather and reduce");
  std::string columns = "stage" + right("forward", width) + right("backward", 9);
  for (const char* name : {"update", "gather", "reduce"}) columns += right(name, width);
  if (has_blocks) columns += right("blocks", width);
  columns += right("exposed", width) + right("step", width) +
             right(!rows.empty() && rows.front().counts_tokens ? "tokens/s" : "samples/s", 10);
  for_each_group(rows, lines, columns, [&](const EstimateRow& row) {
    const StepTime& time = *row.time;
    std::string line = right(std::to_string(row.plan.stage), 5) + right(short_seconds(time.forward), width) +
                       right(short_seconds(time.backward), 9);
    for (const double seconds : {time.update, time.gather, time.reduce}) line += right(short_seconds(seconds), width);
    if (has_blocks) line += right(short_seconds(time.all_to_all), width);
    line += right(short_seconds(time.exposed), width) + right(short_seconds(time.step), width);
    return line + right(count_in_words(static_cast<double>(row.positions) / time.step), 10);
  });
  return lines;
}

Json estimate_json(const std::vector<EstimateRow>& rows, bool with_largest) {
  Json list = Json::array();
  for (const EstimateRow& row : rows) list.push_back(row_json(row, with_largest));
  return list;
}

}  // namespace zt
