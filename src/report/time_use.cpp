// Where the time of a step went.
#include <algorithm>
#include <array>

#include "report/axis.h"
#include "report/contents.h"
#include "train/words.h"

namespace zt {

namespace {

constexpr std::array<const char*, 4> phases = {"forward", "backward", "optimizer", "data_wait"};

}  // namespace

Section time_section(const std::vector<RecordedRun>& runs) {
  Section section{.id = "time", .title = "Time"};
  BarPlot plot{.id = "step-time",
               .title = "Where the time of a step goes",
               .unit = Unit::seconds,
               .parts = {"forward", "backward", "optimizer", "waiting for data", "the rest", "in collectives"}};
  plot.about =
      "Of rank 0, the mean over all steps. The rest is everything from the first step to the end of the last that is "
      "none "
      "of these: evaluations, checkpoints, records. The thin bar is what of the whole was spent inside collectives, "
      "waiting for other ranks included.";
  Table table{
      .title = "Seconds of a step",
      .head = {"run", "forward", "backward", "optimizer", "waiting for data", "the rest", "in collectives", "whole"},
      .folded = true};
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const RecordedRun& run = runs[index];
    const auto train = find_number(run.summary, "seconds.train");
    const std::int64_t steps = steps_of_summary(run);
    if (!train || steps <= 0) continue;
    const auto of_a_step = [&](double seconds) { return bar_value(seconds / static_cast<double>(steps)); };
    Bar whole{.name = "step"};
    double known = 0.0;
    for (const char* phase : phases) {
      const double seconds = find_number(run.summary, std::string("seconds.") + phase).value_or(0.0);
      known += seconds;
      whole.values.push_back(of_a_step(seconds));
    }
    whole.values.push_back(of_a_step(*train - known));
    whole.values.push_back(0.0);
    std::vector<std::string> row = {run.name};
    for (std::size_t part = 0; part < 5; ++part) row.push_back(value_text(whole.values[part], Unit::seconds));
    BarGroup group{.run = index, .name = described(run), .bars = {whole}};
    const auto exposed = find_number(run.summary, "seconds.communication_exposed");
    if (exposed && *exposed > 0.0) {
      Bar inside{.name = "", .values = std::vector<double>(6, 0.0), .thin = true};
      inside.values.back() = of_a_step(*exposed);
      group.bars.push_back(std::move(inside));
    }
    row.push_back(exposed ? value_text(of_a_step(*exposed), Unit::seconds) : "-");
    row.push_back(value_text(of_a_step(*train), Unit::seconds));
    table.rows.push_back(std::move(row));
    plot.groups.push_back(std::move(group));
  }
  if (plot.groups.empty()) {
    section.blocks.emplace_back(Paragraph{"No summary says where the time went."});
    return section;
  }
  section.blocks.emplace_back(std::move(plot));
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace zt
