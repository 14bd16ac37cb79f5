// What a report says, before it is written as a page (html_page.h) or as text (text_report.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "report/holdings.h"
#include "report/recorded_run.h"

namespace zt {

enum class Unit : std::uint8_t { plain, whole, power_of_two, bytes, seconds, per_second };
enum class AxisScale : std::uint8_t { linear, from_zero, log2, log10 };

struct PlotPoint {
  double x = 0.0, y = 0.0;  // y not finite: a gap
};

struct PlotLine {
  std::size_t run = 0;  // what color and dashes it has
  std::string name{};
  std::vector<PlotPoint> points{};  // by ascending x
  bool dotted = false;              // few points, each marked: evaluations
};

// Single steps of which something is said: skipped, not finite. y not finite: at the upper edge.
struct PlotMarks {
  std::size_t run = 0;
  std::vector<PlotPoint> points{};
};

struct PlotLevel {
  double y = 0.0;
  std::string name{};
};

// Values over steps.
struct LinePlot {
  std::string id{}, title{}, about{};
  Unit unit = Unit::plain;
  AxisScale scale = AxisScale::linear;
  std::vector<PlotLine> lines{};
  std::vector<PlotMarks> marks{};
  std::string marks_name{};  // "skipped step"
  std::vector<PlotLevel> levels{};
};

// What the length of a bar may stand for: a file may hold any number, a figure needs one that can be added up.
inline double bar_value(double value) { return value > 0.0 ? std::min(value, 1e18) : 0.0; }

struct Bar {
  std::string name{};             // "rank 0"
  std::vector<double> values{};   // of each part
  std::optional<double> level{};  // by formula
  bool thin = false;              // beside the bar before it, not part of a whole
};

struct BarGroup {
  std::size_t run = 0;
  std::string name{};
  std::vector<Bar> bars{};
};

// Wholes in their parts, bars side by side from zero.
struct BarPlot {
  std::string id{}, title{}, about{};
  Unit unit = Unit::plain;
  std::vector<std::string> parts{};
  std::vector<BarGroup> groups{};
  std::string level_name{};  // empty: bars have none
};

struct Table {
  std::string title{};
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};  // the first cell names the row
  bool folded = false;                           // shown when asked for; --text leaves it out
  bool numbers = true;                           // cells but the first of a row are flush right
};

struct Paragraph {
  std::string text{};
  bool remark = false;  // about the report's input
};

struct Listing {
  std::string title{}, text{};
};

using Block = std::variant<Paragraph, LinePlot, BarPlot, Table, Listing, Holdings>;

struct Section {
  std::string id{}, title{};
  std::vector<Block> blocks{};
};

struct Contents {
  std::string title{};
  std::vector<std::string> runs{};     // their names
  std::vector<std::string> verdict{};  // sentences: which of the runs have the same curve
  std::vector<Section> sections{};
};

Contents make_contents(const std::vector<RecordedRun>& runs);

// Parts of it, each in a file of its own.
Section overview_section(const std::vector<RecordedRun>& runs);  // overview.cpp
Section config_section(const std::vector<RecordedRun>& runs);
Section curves_section(const std::vector<RecordedRun>& runs);         // curves.cpp
Section memory_section(const std::vector<RecordedRun>& runs);         // memory_use.cpp
Section communication_section(const std::vector<RecordedRun>& runs);  // communication_use.cpp
Section time_section(const std::vector<RecordedRun>& runs);           // time_use.cpp
Section holdings_section(const std::vector<RecordedRun>& runs);  // holdings.cpp; without blocks: no run has a trace

// Steps that the process that wrote the summary has attempted: since the last resume.
std::int64_t steps_of_summary(const RecordedRun& run);

// "stage0 (4 ranks, stage 0, fp16)", as far as it is known.
std::string described(const RecordedRun& run);

}  // namespace zt
