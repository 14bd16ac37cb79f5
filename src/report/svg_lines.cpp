// Values over steps as SVG.
#include <algorithm>
#include <cmath>
#include <set>

#include "report/axis.h"
#include "report/svg.h"
#include "report/thinning.h"
#include "train/words.h"

namespace zt {

namespace {

constexpr int height = 240;  // pixels, as all lengths here that are no percentages
constexpr std::size_t most_evaluations = 48;
constexpr std::size_t most_marks = 60;
constexpr std::size_t most_rows = 12;
constexpr int dash_of_shared = 9;

std::string percent(double share) { return fixed(100.0 * share, 2) + "%"; }

// Percent from the top; what is too large to be shown is at the upper edge.
std::string from_top(const Axis& axis, double value) {
  const double place = axis.place(value);
  return percent(std::isfinite(place) ? 1.0 - std::clamp(place, 0.0, 1.0) : 0.0);
}

// Lines with the same points are drawn as one, in turn in the color of each: `place` of `lines` of them.
struct Share {
  std::size_t place = 0, lines = 1;
};

Share share_of(const std::vector<PlotLine>& lines, std::size_t index) {
  const auto equal = [](const PlotPoint& a, const PlotPoint& b) {
    return a.x == b.x && (a.y == b.y || (!std::isfinite(a.y) && !std::isfinite(b.y)));
  };
  const auto& points = lines[index].points;
  Share share;
  for (std::size_t other = 0; other < lines.size(); ++other) {
    const auto& others = lines[other].points;
    if (other == index || lines[other].dotted != lines[index].dotted ||
        !std::equal(points.begin(), points.end(), others.begin(), others.end(), equal))
      continue;
    ++share.lines;
    if (other < index) ++share.place;
  }
  return share;
}

// "2^16" with a raised exponent.
void write_tick_text(Markup& out, const std::string& text) {
  const std::size_t power = text.find('^');
  out.text(text.substr(0, power));
  if (power == std::string::npos) return;
  out.element("tspan", {{"class", "exponent"}, {"dy", "-5"}}, text.substr(power + 1));
}

void write_axes(Markup& out, const Axis& x, const Axis& y) {
  for (const Tick& tick : y.ticks) {
    const std::string at = percent(1.0 - y.place(tick.value));
    out.empty("line", {{"class", "grid"}, {"x1", "0"}, {"x2", "100%"}, {"y1", at}, {"y2", at}});
    out.open("text", {{"x", "-8"}, {"y", at}, {"dy", "4"}, {"text-anchor", "end"}});
    write_tick_text(out, tick.text);
    out.close();
  }
  const std::string below = std::to_string(height + 19);
  for (const Tick& tick : x.ticks) {
    const std::string at = percent(x.place(tick.value));
    out.empty("line", {{"class", "tick"}, {"x1", at}, {"x2", at}, {"y1", "100%"}, {"y2", std::to_string(height + 5)}});
    out.element("text", {{"x", at}, {"y", below}, {"text-anchor", "middle"}}, tick.text);
  }
  out.empty("line", {{"class", "base"}, {"x1", "0"}, {"x2", "100%"}, {"y1", "100%"}, {"y2", "100%"}});
  out.element("text", {{"x", "100%"}, {"y", std::to_string(height + 36)}, {"text-anchor", "end"}}, "step");
}

void write_lines(Markup& out, const LinePlot& plot, const Axis& x, const Axis& y) {
  out.open("svg", {{"viewBox", "0 0 1000 1000"},
                   {"preserveAspectRatio", "none"},
                   {"width", "100%"},
                   {"height", "100%"},
                   {"class", "lines"}});
  const std::size_t columns = std::clamp<std::size_t>(1600 / std::max<std::size_t>(1, plot.lines.size()), 120, 400);
  for (std::size_t index = 0; index < plot.lines.size(); ++index) {
    const PlotLine& line = plot.lines[index];
    if (line.dotted && line.points.size() < 2) continue;
    const std::string path = path_of(thinned(line.points, x.low, x.high, columns), x, y);
    if (path.empty()) continue;
    const Share share = share_of(plot.lines, index);
    if (share.lines == 1 || line.dotted) {
      if (share.place > 0) continue;
      out.empty("path", {{"class", "line " + run_class(line.run) + (line.dotted ? " evaluated" : "")}, {"d", path}});
      continue;
    }
    const int gap = dash_of_shared * static_cast<int>(share.lines - 1);
    out.empty("path", {{"class", "line shared " + color_class(line.run)},
                       {"stroke-dasharray", std::to_string(dash_of_shared) + " " + std::to_string(gap)},
                       {"stroke-dashoffset", std::to_string(-dash_of_shared * static_cast<int>(share.place))},
                       {"d", path}});
  }
  out.close();
}

void write_marks(Markup& out, const LinePlot& plot, const Axis& x, const Axis& y) {
  for (std::size_t index = 0; index < plot.lines.size(); ++index) {
    const PlotLine& line = plot.lines[index];
    if (!line.dotted) continue;
    const Share share = share_of(plot.lines, index);
    const auto points = thinned_marks(line.points, x.low, x.high, most_evaluations);
    for (std::size_t i = share.place; i < points.size(); i += share.lines) {
      out.empty("use", {{"class", "mark " + color_class(line.run)},
                        {"href", mark_of(line.run)},
                        {"x", percent(x.place(points[i].x))},
                        {"y", from_top(y, points[i].y)}});
    }
  }
  for (const PlotMarks& marks : plot.marks) {
    for (const PlotPoint& point : thinned_marks(marks.points, x.low, x.high, most_marks)) {
      out.empty(
          "use",
          {{"class", "cross"}, {"href", "#cross"}, {"x", percent(x.place(point.x))}, {"y", from_top(y, point.y)}});
    }
  }
}

void write_legend_entry(Markup& out, std::string_view sample_class, std::string_view shape, std::string_view name) {
  out.open("li");
  out.open("svg", {{"class", "sample"}, {"width", "34"}, {"height", "14"}, {"aria-hidden", "true"}});
  if (shape.empty()) {
    out.empty("path", {{"class", sample_class}, {"d", "M1 7H33"}});
  } else {
    out.empty("use", {{"class", sample_class}, {"href", shape}, {"x", "17"}, {"y", "7"}});
  }
  out.close();
  out.text(name);
  out.close();
}

void write_legend(Markup& out, const LinePlot& plot) {
  std::set<std::size_t> runs;
  bool evaluated = false;
  for (const PlotLine& line : plot.lines) {
    runs.insert(line.run);
    evaluated = evaluated || line.dotted;
  }
  const bool several = runs.size() > 1;
  if (!several && !evaluated && plot.marks.empty() && plot.levels.empty()) return;
  out.open("ul", {{"class", "legend"}});
  for (const PlotLine& line : plot.lines) {
    if (line.dotted && several) continue;
    if (!several && !evaluated) continue;
    out.open("li");
    write_run_sample(out, line.run, several ? evaluated : line.dotted);
    out.text(several ? line.name : line.dotted ? "validation" : "training");
    out.close();
  }
  if (!plot.marks.empty()) write_legend_entry(out, "cross", "#cross", plot.marks_name);
  for (const PlotLevel& level : plot.levels) write_legend_entry(out, "level", "", level.name);
  for (std::size_t index = 0; index < plot.lines.size(); ++index) {
    if (share_of(plot.lines, index).lines == 1) continue;
    out.element("li", {{"class", "hint"}}, "equal lines are one line, in turn in each color");
    break;
  }
  out.close();
}

}  // namespace

std::string path_of(const std::vector<PlotPoint>& points, const Axis& x, const Axis& y) {
  std::string path;
  std::size_t in_a_row = 0;
  const auto end_of_line = [&] {
    if (in_a_row == 1) path += "h0";
    in_a_row = 0;
  };
  for (const PlotPoint& point : points) {
    const double height_share = std::isfinite(point.y) ? y.place(point.y) : not_recorded;
    if (!std::isfinite(height_share)) {
      end_of_line();
      continue;
    }
    path += in_a_row++ == 0 ? "M" : " ";
    path += significant(std::round(10000.0 * x.place(point.x)) / 10.0, 6);
    path += " ";
    path += significant(std::round(10000.0 * std::clamp(1.0 - height_share, -0.1, 1.1)) / 10.0, 6);
  }
  end_of_line();
  return path;
}

std::string in_words(const LinePlot& plot) {
  std::string words = plot.title + ".";
  std::size_t told = 0;
  for (const PlotLine& line : plot.lines) {
    if (++told > 8) {
      words += " And " + std::to_string(plot.lines.size() - 8) + " more.";
      break;
    }
    std::vector<PlotPoint> finite;
    std::copy_if(line.points.begin(), line.points.end(), std::back_inserter(finite),
                 [](const PlotPoint& point) { return std::isfinite(point.y); });
    words += " " + line.name + ": ";
    if (finite.empty()) {
      words += "no finite value.";
      continue;
    }
    const auto [smallest, largest] = std::minmax_element(
        finite.begin(), finite.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; });
    const auto told_point = [&](const PlotPoint& point) {
      return value_text(point.y, plot.unit) + " at step " + fixed(point.x, 0);
    };
    words += told_point(finite.front());
    if (finite.size() > 1) {
      words += ", " + told_point(finite.back()) + "; smallest " + told_point(*smallest) + ", largest " +
               told_point(*largest);
    }
    words += ".";
  }
  for (const PlotMarks& marks : plot.marks) {
    words += " " + plot.marks_name + ": " + std::to_string(marks.points.size()) + ", first at step " +
             fixed(marks.points.front().x, 0) + ".";
  }
  return words;
}

Table values_table(const LinePlot& plot) {
  Table table{.title = plot.title + ": values", .head = {"step"}, .folded = true};
  std::set<double> all;
  std::set<double> evaluated;
  for (const PlotLine& line : plot.lines) {
    table.head.push_back(line.name);
    for (const PlotPoint& point : line.points) (line.dotted ? evaluated : all).insert(point.x);
  }
  const std::vector<double> steps(evaluated.empty() ? all.begin() : evaluated.begin(),
                                  evaluated.empty() ? all.end() : evaluated.end());
  const std::size_t rows = std::min(most_rows, steps.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const double step = steps[rows == 1 ? 0 : row * (steps.size() - 1) / (rows - 1)];
    std::vector<std::string> cells = {fixed(step, 0)};
    for (const PlotLine& line : plot.lines) {
      const auto at = std::lower_bound(line.points.begin(), line.points.end(), step,
                                       [](const PlotPoint& point, double x) { return point.x < x; });
      const bool there = at != line.points.end() && at->x == step;
      std::string cell = there ? value_text(at->y, plot.unit) : "-";
      for (const PlotMarks& marks : plot.marks) {
        const bool marked = marks.run == line.run && std::any_of(marks.points.begin(), marks.points.end(),
                                                                 [&](const PlotPoint& mark) { return mark.x == step; });
        if (there && marked && std::isfinite(at->y)) cell += " (" + plot.marks_name + ")";
      }
      cells.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

void write_line_plot(Markup& out, const LinePlot& plot) {
  const Axis x = step_axis(plot, 5);
  const Axis y = value_axis(plot, 6);
  write_legend(out, plot);
  out.open("div", {{"class", "area"}});
  out.open("svg",
           {{"role", "img"}, {"aria-label", in_words(plot)}, {"width", "100%"}, {"height", std::to_string(height)}});
  write_axes(out, x, y);
  for (const PlotLevel& level : plot.levels) {
    const double place = y.place(level.y);
    if (!(place >= 0.0 && place <= 1.0)) continue;
    const std::string at = percent(1.0 - place);
    out.empty("line", {{"class", "level"}, {"x1", "0"}, {"x2", "100%"}, {"y1", at}, {"y2", at}});
  }
  write_lines(out, plot, x, y);
  write_marks(out, plot, x, y);
  out.close();
  out.close();
  out.line();
}

}  // namespace zt
