// What a rank sent, by kind, and the elements per parameter and step beside plan and formula.
#include <array>

#include "report/axis.h"
#include "report/contents.h"
#include "train/words.h"

namespace zt {

namespace {

constexpr std::array<const char*, 5> kinds = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"};

std::string spaced(std::string kind) {
  for (char& c : kind) c = c == '_' ? '-' : c;
  return kind;
}

double value_of(const RecordedRun& run, const char* kind, const char* what) {
  return find_number(run.summary, std::string("communication.") + kind + "." + what).value_or(0.0);
}

std::string words_of(double counted, std::optional<double> planned, std::optional<double> paper) {
  std::string text = fixed(counted, 4) + " elements a parameter and step";
  if (planned) text += counted == *planned ? ", as planned" : ", planned " + fixed(*planned, 4);
  if (paper) text += "; the formula says " + fixed(*paper, 4);
  return text;
}

}  // namespace

Section communication_section(const std::vector<RecordedRun>& runs) {
  Section section{.id = "communication", .title = "Communication"};
  BarPlot bytes{.id = "bytes-by-kind", .title = "Bytes sent a step, by kind", .unit = Unit::bytes};
  bytes.about = "By rank 0, for training alone.";
  BarPlot elements{.id = "elements",
                   .title = "Elements sent per parameter and step",
                   .parts = {"elements"},
                   .level_name = "formula of the stage, times (N - 1)/N"};
  elements.about =
      "Counted in the run, beside the formula of its ZeRO stage. Stage 3 stays below it where a unit that it still "
      "holds "
      "is not gathered again.";
  Table table{.title = "Calls, bytes and seconds of rank 0", .head = {"run, kind", "calls", "bytes", "seconds"}};
  table.folded = true;
  for (const char* kind : kinds) bytes.parts.push_back(spaced(kind));
  bool any = false;
  bool known = false;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const RecordedRun& run = runs[index];
    const auto counted = find_number(run.summary, "communication.elements_per_parameter_and_step");
    if (!counted) continue;
    known = true;
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, steps_of_summary(run)));
    Bar bar{.name = ""};
    for (const char* kind : kinds) {
      bar.values.push_back(bar_value(value_of(run, kind, "bytes") / steps));
      any = any || bar.values.back() > 0.0;
      if (value_of(run, kind, "calls") == 0.0) continue;
      table.rows.push_back({run.name + ", " + spaced(kind), fixed(value_of(run, kind, "calls"), 0),
                            value_text(value_of(run, kind, "bytes"), Unit::bytes),
                            fixed(value_of(run, kind, "seconds"), 2)});
    }
    bytes.groups.push_back({.run = index, .name = described(run), .bars = {bar}});
    const auto paper = find_number(run.summary, "communication.paper");
    elements.groups.push_back(
        {.run = index,
         .name = run.name + ": " + words_of(*counted, find_number(run.summary, "communication.planned"), paper),
         .bars = {{.name = "",
                   .values = {bar_value(*counted)},
                   .level = paper ? std::optional(bar_value(*paper)) : std::nullopt}}});
  }
  if (!any) {
    section.blocks.emplace_back(
        Paragraph{known ? "Nothing was sent: one rank has nobody to send to." : "No summary says what was sent."});
    return section;
  }
  section.blocks.emplace_back(std::move(elements));
  section.blocks.emplace_back(std::move(bytes));
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace zt
