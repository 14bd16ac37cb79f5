// Memory by category and rank, beside the formula of the stage.
#include <algorithm>
#include <array>

#include "core/json.h"
#include "report/axis.h"
#include "report/contents.h"
#include "train/words.h"

namespace zt {

namespace {

constexpr std::array<const char*, 7> categories = {"parameters",    "gradients", "optimizer", "activations",
                                                   "communication", "data",      "workspace"};
constexpr std::size_t model_states = 3;  // the first of them
constexpr std::size_t ranks_shown = 8;   // as bars, of a run
constexpr std::size_t rows_shown = 256;  // of the table

std::vector<double> bytes_of(const nlohmann::ordered_json& entry) {
  std::vector<double> bytes;
  for (const char* category : categories) bytes.push_back(bar_value(find_number(entry, category).value_or(0.0)));
  return bytes;
}

double sum(const std::vector<double>& values, std::size_t count) {
  double total = 0.0;
  for (std::size_t i = 0; i < std::min(count, values.size()); ++i) total += values[i];
  return total;
}

const nlohmann::ordered_json* ranks_of(const RecordedRun& run) {
  const auto* ranks = find_value(run.summary, "memory.ranks");
  return ranks != nullptr && ranks->is_array() && !ranks->empty() ? ranks : nullptr;
}

std::optional<double> formula_bytes(const RecordedRun& run) {
  const auto per_parameter = find_number(run.summary, "memory.formula_bytes_per_parameter");
  const auto parameters = find_number(run.summary, "model.parameters");
  if (!per_parameter || !parameters) return std::nullopt;
  return bar_value(*per_parameter * *parameters);
}

BarGroup group_of(const RecordedRun& run, std::size_t index) {
  BarGroup group{.run = index, .name = described(run)};
  const auto& ranks = *ranks_of(run);
  for (std::size_t rank = 0; rank < std::min(ranks.size(), ranks_shown); ++rank) {
    const auto number = find_number(ranks[rank], "rank");
    group.bars.push_back({.name = "rank " + (number ? fixed(*number, 0) : std::to_string(rank)),
                          .values = bytes_of(ranks[rank]),
                          .level = formula_bytes(run)});
  }
  if (ranks.size() > ranks_shown)
    group.name += ", the first " + std::to_string(ranks_shown) + " of " + std::to_string(ranks.size());
  return group;
}

std::vector<std::string> row_of(const std::string& name, const std::vector<double>& bytes, double peak,
                                std::optional<double> formula) {
  std::vector<std::string> row = {name};
  for (const double value : bytes) row.push_back(value_text(value, Unit::bytes));
  const double states = sum(bytes, model_states);
  row.push_back(value_text(states, Unit::bytes));
  row.push_back(formula ? value_text(*formula, Unit::bytes) : "-");
  row.push_back(peak > 0.0 ? value_text(peak, Unit::bytes) : "-");
  return row;
}

}  // namespace

Section memory_section(const std::vector<RecordedRun>& runs) {
  Section section{.id = "memory", .title = "Memory"};
  BarPlot plot{.id = "memory-by-rank",
               .title = "Memory by category and rank",
               .unit = Unit::bytes,
               .parts = {categories.begin(), categories.end()},
               .level_name = "model states by formula"};
  plot.about =
      "Bytes as allocated. Parameters, gradients and optimizer states are what ZeRO shares out: their sum, padding "
      "included, lies beside the formula of the run's stage.";
  Table table{.title = "Memory of every rank", .head = {"rank"}, .folded = true};
  table.head.insert(table.head.end(), categories.begin(), categories.end());
  for (const char* name : {"model states", "by formula", "peak resident"}) table.head.emplace_back(name);
  std::vector<std::string> plans;
  std::size_t of_all_runs = 0;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const RecordedRun& run = runs[index];
    const auto* ranks = ranks_of(run);
    if (ranks == nullptr) continue;
    plot.groups.push_back(group_of(run, index));
    const auto* planned = find_value(run.summary, "memory.planned");
    bool as_planned = planned != nullptr;
    for (const auto& rank : *ranks) {
      const auto bytes = bytes_of(rank);
      as_planned = as_planned && bytes == bytes_of(*planned);
      const auto number = find_number(rank, "rank");
      ++of_all_runs;
      if (table.rows.size() < rows_shown)
        table.rows.push_back(row_of(run.name + ", rank " + (number ? fixed(*number, 0) : "?"), bytes,
                                    find_number(rank, "peak_resident").value_or(0.0), formula_bytes(run)));
    }
    if (as_planned) plans.push_back(run.name);
  }
  if (of_all_runs > rows_shown) {
    table.title = "Memory of the first " + std::to_string(rows_shown) + " of " + std::to_string(of_all_runs) + " ranks";
  }
  if (plot.groups.empty()) {
    section.blocks.emplace_back(Paragraph{"No summary says how memory was used."});
    return section;
  }
  if (!plans.empty()) {
    std::string names;
    for (std::size_t i = 0; i < plans.size(); ++i)
      names += (i == 0 ? "" : i + 1 == plans.size() ? " and " : ", ") + plans[i];
    plot.about += " What every rank of " + names + " holds is what was planned, to the byte.";
  }
  section.blocks.emplace_back(std::move(plot));
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace zt
