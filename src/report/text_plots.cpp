// Plots in characters.
#include <algorithm>
#include <cmath>

#include "report/axis.h"
#include "report/text_report.h"
#include "train/words.h"

namespace zt {

namespace {

constexpr int label_width = 10;  // of the values beside a plot
constexpr int plot_width = text_width - label_width - 2;
constexpr int plot_height = 14;

char letter_of(std::size_t run) { return static_cast<char>('a' + run % 26); }
char capital_of(std::size_t run) { return static_cast<char>('A' + run % 26); }

std::string flush_right(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - static_cast<int>(text.size()))), ' ') + text;
}

// Rows of characters; several runs at one place are '#'.
class Canvas {
 public:
  Canvas() : rows_(plot_height, std::string(plot_width, ' ')) {}
  void put(int column, int row, char sign) {
    if (column < 0 || column >= plot_width || row < 0 || row >= plot_height) return;
    char& there = rows_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    there = is_letter(there) && there != sign && is_letter(sign) ? '#' : there == '#' ? '#' : sign;
  }
  const std::string& row(int index) const { return rows_[static_cast<std::size_t>(index)]; }

 private:
  std::vector<std::string> rows_;
};

int column_of(const Axis& x, double step) {
  return static_cast<int>(std::lround(std::clamp(x.place(step), 0.0, 1.0) * (plot_width - 1)));
}
int row_of(const Axis& y, double value) {
  return static_cast<int>(std::lround((1.0 - std::clamp(y.place(value), 0.0, 1.0)) * (plot_height - 1)));
}

// A line is shown by the mean of what falls into a column; evaluations by their last value.
void draw_line(Canvas& canvas, const PlotLine& line, const Axis& x, const Axis& y) {
  std::vector<double> sums(plot_width, 0.0);
  std::vector<int> counts(plot_width, 0);
  for (const PlotPoint& point : line.points) {
    if (!std::isfinite(point.y) || !std::isfinite(y.place(point.y))) continue;
    const auto column = static_cast<std::size_t>(column_of(x, point.x));
    sums[column] += y.place(point.y);
    ++counts[column];
  }
  for (std::size_t column = 0; column < sums.size(); ++column) {
    if (counts[column] == 0) continue;
    const double place = std::clamp(sums[column] / counts[column], 0.0, 1.0);
    canvas.put(static_cast<int>(column), static_cast<int>(std::lround((1.0 - place) * (plot_height - 1))),
               line.dotted ? capital_of(line.run) : letter_of(line.run));
  }
}

void add_marks(std::vector<std::string>& lines, const LinePlot& plot, const Axis& x) {
  for (const PlotMarks& marks : plot.marks) {
    std::string row(plot_width, ' ');
    for (const PlotPoint& point : marks.points) row[static_cast<std::size_t>(column_of(x, point.x))] = 'x';
    lines.push_back(flush_right(std::string(1, letter_of(marks.run)), label_width) + " |" + row);
  }
}

std::string step_row(const Axis& x) {
  std::string row(text_width, ' ');
  int free_from = 0;
  for (const Tick& tick : x.ticks) {
    const int middle = label_width + 2 + column_of(x, tick.value);
    const int begin =
        std::clamp(middle - static_cast<int>(tick.text.size()) / 2, 0, text_width - static_cast<int>(tick.text.size()));
    if (begin < free_from) continue;
    row.replace(static_cast<std::size_t>(begin), tick.text.size(), tick.text);
    free_from = begin + static_cast<int>(tick.text.size()) + 1;
  }
  return row;
}

}  // namespace

std::vector<std::string> text_lines(const LinePlot& plot) {
  const Axis x = step_axis(plot, 6);
  const Axis y = value_axis(plot, 4);
  Canvas canvas;
  for (const PlotLevel& level : plot.levels) {
    const double place = y.place(level.y);
    if (!(place >= 0.0 && place <= 1.0)) continue;
    for (int column = 0; column < plot_width; column += 2) canvas.put(column, row_of(y, level.y), '-');
  }
  for (const bool dotted : {false, true}) {
    for (const PlotLine& line : plot.lines) {
      if (line.dotted == dotted) draw_line(canvas, line, x, y);
    }
  }
  std::vector<std::string> labels(plot_height);
  for (const Tick& tick : y.ticks) labels[static_cast<std::size_t>(row_of(y, tick.value))] = tick.text;
  std::vector<std::string> lines;
  for (int row = 0; row < plot_height; ++row)
    lines.push_back(flush_right(labels[static_cast<std::size_t>(row)], label_width) + " |" + canvas.row(row));
  add_marks(lines, plot, x);
  lines.push_back(std::string(label_width, ' ') + " +" + std::string(plot_width, '-'));
  lines.push_back(step_row(x));
  std::string legend;
  for (const PlotLine& line : plot.lines) {
    legend += legend.empty() ? "" : "   ";
    legend += line.dotted ? capital_of(line.run) : letter_of(line.run);
    legend += " " + line.name;
  }
  if (plot.lines.size() > 1) legend += "   # several at one place";
  if (!plot.marks.empty()) legend += "   x " + plot.marks_name;
  for (const PlotLevel& level : plot.levels) legend += "   - - " + level.name;
  for (std::string& line : wrapped(legend, text_width - label_width - 2, label_width + 2))
    lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> text_lines(const BarPlot& plot) {
  constexpr int name_width = 9;
  constexpr int width = text_width - name_width - 12;
  double largest = 0.0;
  for (const BarGroup& group : plot.groups) {
    for (const Bar& bar : group.bars) {
      double whole = 0.0;
      for (const double value : bar.values) whole += value;
      largest = std::max({largest, whole, bar.level.value_or(0.0)});
    }
  }
  if (!(largest > 0.0)) largest = 1.0;
  static const std::string signs = "#+o=.:%*";
  std::vector<std::string> lines;
  for (const BarGroup& group : plot.groups) {
    for (std::string& line : wrapped(group.name, text_width)) lines.push_back(std::move(line));
    for (const Bar& bar : group.bars) {
      std::string row(width + 1, ' ');
      double begin = 0.0;
      for (std::size_t part = 0; part < bar.values.size(); ++part) {
        const double end = begin + bar.values[part];
        const auto from = static_cast<std::size_t>(std::lround(begin / largest * width));
        const auto to = static_cast<std::size_t>(std::lround(end / largest * width));
        std::fill(row.begin() + static_cast<std::ptrdiff_t>(from), row.begin() + static_cast<std::ptrdiff_t>(to),
                  signs[part % signs.size()]);
        begin = end;
      }
      if (bar.level) row[static_cast<std::size_t>(std::lround(*bar.level / largest * width))] = '|';
      lines.push_back(flush_right(bar.name, name_width) + " " + row + flush_right(value_text(begin, plot.unit), 10));
    }
  }
  std::string legend;
  for (std::size_t part = 0; plot.parts.size() > 1 && part < plot.parts.size(); ++part)
    legend += (legend.empty() ? "" : "   ") + std::string(1, signs[part % signs.size()]) + " " + plot.parts[part];
  if (!plot.level_name.empty()) legend += (legend.empty() ? "" : "   ") + ("| " + plot.level_name);
  for (std::string& line : wrapped(legend, text_width - name_width - 1, name_width + 1))
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace zt
