#include "report/holdings.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/json.h"
#include "core/json_text.h"
#include "report/axis.h"
#include "report/contents.h"
#include "train/words.h"

namespace zt {

namespace {

constexpr int slices_shown = 8;  // columns of a unit: slices of ranks beyond are not drawn

struct State {
  const char* id;
  const char* name;
  int whole_below;  // the stage from which on a rank holds but its slice
};
constexpr std::array<State, 3> states = {{{"p", "parameters", 3}, {"g", "gradients", 2}, {"o", "optimizer states", 1}}};

int ranks_shown(const TracedStep& step) { return std::min(step.ranks, holdings_ranks_shown); }
int slices(const TracedStep& step) { return std::min(step.ranks, slices_shown); }
std::size_t units_shown(const TracedStep& step) { return std::min(step.units.size(), holdings_units_shown); }

bool holds_at_rest(const TracedStep& step, const State& state, int rank, int slice) {
  return step.stage < state.whole_below || rank == slice;
}

// A unit of a rank: as many slices as there are ranks, each filled or not.
void write_unit(Markup& out, const HoldingsPanel& panel, std::size_t panel_number, const State& state, int rank,
                std::size_t unit) {
  out.open("span",
           {{"class", "unit"},
            {"id", state.id + std::to_string(panel_number) + "-" + std::to_string(rank) + "-" + std::to_string(unit)},
            {"title", panel.step.units[unit].name}});
  for (int slice = 0; slice < slices(panel.step); ++slice) {
    const bool held = holds_at_rest(panel.step, state, rank, slice);
    out.element("i", {{"class", held ? "held" : "gone"}}, "");
  }
  out.close();
}

std::string at_rest(const TracedStep& step) {
  std::string text = "At rest each rank holds ";
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool whole = step.stage < states[i].whole_below || step.ranks == 1;
    text += std::string(i == 0                   ? ""
                        : i + 1 == states.size() ? " and "
                                                 : ", ") +
            (whole ? "all " : "1/" + std::to_string(step.ranks) + " of the ") + states[i].name;
  }
  return text + ".";
}

void write_panel(Markup& out, const HoldingsPanel& panel, std::size_t number) {
  const TracedStep& step = panel.step;
  out.open("div", {{"class", "panel"}, {"role", "group"}, {"aria-label", panel.name}});
  out.element("p", {{"class", "panel-name"}}, panel.name + ", step " + std::to_string(step.step));
  out.element("p", {{"class", "rest"}}, at_rest(step));
  out.open("div", {{"class", "holders"}, {"aria-hidden", "true"}});
  for (const State& state : states) out.element("b", {}, state.name);
  for (int rank = 0; rank < ranks_shown(step); ++rank) {
    out.element("span", {{"class", "rank"}}, "rank " + std::to_string(rank));
    for (const State& state : states) {
      out.open("span", {{"class", "units"}});
      for (std::size_t unit = 0; unit < units_shown(step); ++unit) write_unit(out, panel, number, state, rank, unit);
      out.close();
    }
  }
  out.close();
  std::string shown;
  if (step.ranks > ranks_shown(step)) shown += "Shown: the first " + std::to_string(ranks_shown(step)) + " ranks. ";
  if (step.units.size() > units_shown(step))
    shown += "Shown: the first " + std::to_string(units_shown(step)) + " of " + std::to_string(step.units.size()) +
             " units. ";
  if (!shown.empty()) out.element("p", {{"class", "rest"}}, shown);
  out.element("p", {{"class", "now"}, {"id", "now" + std::to_string(number)}}, "");
  out.close();
  out.line();
}

// What the script goes through: moments of the ranks and units that are shown.
nlohmann::ordered_json moments_json(const HoldingsPanel& panel) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TracedMoment& moment : panel.step.moments) {
    const bool of_unit = moment.activity >= Activity::compute;
    if (moment.rank >= ranks_shown(panel.step)) continue;
    if (of_unit && moment.number >= static_cast<std::int64_t>(units_shown(panel.step))) continue;
    list.push_back({moment.progress, moment.microseconds, moment.rank, static_cast<int>(moment.activity), moment.number,
                    moment.begins ? 1 : 0});
  }
  return list;
}

std::string data_of(const Holdings& holdings) {
  nlohmann::ordered_json panels = nlohmann::ordered_json::array();
  for (const HoldingsPanel& panel : holdings.panels) {
    nlohmann::ordered_json units = nlohmann::ordered_json::array();
    for (std::size_t unit = 0; unit < units_shown(panel.step); ++unit)
      units.push_back({escaped(panel.step.units[unit].name), panel.step.units[unit].trains});
    panels.push_back({{"stage", panel.step.stage},
                      {"ranks", ranks_shown(panel.step)},
                      {"slices", slices(panel.step)},
                      {"accumulation", panel.step.accumulation},
                      {"units", units},
                      {"moments", moments_json(panel)}});
  }
  return json_text(panels);
}

// A legend entry: what a slice looks like, and what that means.
void write_sign(Markup& out, const char* kind, const char* meaning) {
  out.open("li");
  out.open("span", {{"class", "unit"}, {"aria-hidden", "true"}});
  out.element("i", {{"class", kind}}, "");
  out.close();
  out.text(meaning);
  out.close();
}

}  // namespace

void write_holdings(Markup& out, const Holdings& holdings) {
  out.open("figure", {{"id", holdings.id}});
  out.open("figcaption");
  out.element("h3", {}, holdings.title);
  out.element("p", {}, holdings.about);
  out.close();
  out.open("div", {{"class", "player"}, {"id", "player"}, {"hidden", "hidden"}});
  out.element("button", {{"type", "button"}, {"id", "play"}}, "Play");
  out.element("button", {{"type", "button"}, {"id", "back"}}, "Step back");
  out.element("button", {{"type", "button"}, {"id", "ahead"}}, "Step ahead");
  out.open("label");
  out.text("Place in the step ");
  out.empty("input", {{"type", "range"}, {"id", "place"}, {"min", "0"}, {"max", "0"}, {"value", "0"}});
  out.close();
  out.open("label");
  out.text("Speed ");
  out.open("select", {{"id", "speed"}});
  for (const auto& [value, name] : std::map<std::string, std::string>{{"1", "slow"}, {"3", "normal"}, {"9", "fast"}}) {
    if (value == "3") {
      out.element("option", {{"value", value}, {"selected", "selected"}}, name);
    } else {
      out.element("option", {{"value", value}}, name);
    }
  }
  out.close();
  out.close();
  out.close();
  out.line();
  out.open("ul", {{"class", "legend"}});
  write_sign(out, "held", "held");
  write_sign(out, "gone", "not here");
  write_sign(out, "coming", "on its way: being gathered or reduced");
  write_sign(out, "made", "gradient of this micro-batch, not yet reduced");
  write_sign(out, "sum", "sum of the gradients of all ranks");
  write_sign(out, "old", "parameters of the step before");
  write_sign(out, "busy", "being updated");
  out.open("li");
  out.element("span", {{"class", "unit used"}, {"aria-hidden", "true"}}, "");
  out.text("being computed with");
  out.close();
  out.close();
  out.line();
  out.open("div", {{"class", "panels"}});
  for (std::size_t i = 0; i < holdings.panels.size(); ++i) write_panel(out, holdings.panels[i], i);
  out.close();
  out.open("script", {{"type", "application/json"}, {"id", "moments"}});
  out.raw(data_of(holdings));
  out.close();
  out.open("script");
  out.raw(holdings_script());
  out.close();
  out.close();
  out.line();
}

Section holdings_section(const std::vector<RecordedRun>& runs) {
  Section section{.id = "holdings", .title = "Who holds what"};
  Holdings holdings{.id = "who-holds-what", .title = "A step, slice by slice"};
  holdings.about =
      "Every row is a rank, every box a unit of the model, cut into one slice for each rank. Runs are set "
      "beside "
      "each other by their passes, so that the same moment of the step is shown of all.";
  Table table{.title = "What a step of rank 0 did, by its trace",
              .head = {"run", "gathers", "gathering", "reductions", "reducing", "units computed", "freed"}};
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const RecordedRun& run = runs[index];
    if (!run.traced) continue;
    holdings.panels.push_back({.run = index, .name = described(run), .step = *run.traced});
    std::map<Activity, std::int64_t> counts;
    std::map<Activity, double> seconds;
    for (const TracedMoment& moment : run.traced->moments) {
      if (moment.rank != 0) continue;
      if (moment.begins) ++counts[moment.activity];
      seconds[moment.activity] += (moment.begins ? -1e-6 : 1e-6) * moment.microseconds;
    }
    table.rows.push_back({run.name, std::to_string(counts[Activity::gather]),
                          value_text(std::max(0.0, seconds[Activity::gather]), Unit::seconds),
                          std::to_string(counts[Activity::reduce]),
                          value_text(std::max(0.0, seconds[Activity::reduce]), Unit::seconds),
                          std::to_string(counts[Activity::compute]), std::to_string(counts[Activity::free])});
  }
  if (holdings.panels.empty()) return section;
  section.blocks = {holdings, table};
  return section;
}

}  // namespace zt
