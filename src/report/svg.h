// Figures as SVG within the page. Each is as wide as its place: what lies along the width is in percent, lines are
// stretched with their strokes kept, and letters keep their size, so that the same figure is legible on a telephone and
// on paper. Colors and dashes are classes of page_style.cpp.
#pragma once

#include <string>

#include "report/axis.h"
#include "report/contents.h"
#include "report/markup.h"

namespace zt {

constexpr std::size_t run_colors = 8;  // with no common divisor, so that 40 runs look different
constexpr std::size_t run_dashes = 5;
constexpr std::size_t part_colors = 7;

std::string color_class(std::size_t run);  // "run2"
std::string run_class(std::size_t run);    // "run2 dash2"
std::string mark_of(std::size_t run);      // "#mark2"

// Shapes that the figures refer to; once in a page, before them.
void write_definitions(Markup& out);

// `plot` with its legend; what a screen reader says is in the figure.
void write_line_plot(Markup& out, const LinePlot& plot);
void write_bar_plot(Markup& out, const BarPlot& plot);

// A sample of a run's line for a legend, with its mark if it is to be had.
void write_run_sample(Markup& out, std::size_t run, bool with_mark);

// The figure in words, for those who do not see it.
std::string in_words(const LinePlot& plot);
std::string in_words(const BarPlot& plot, const BarGroup& group);

// The same values in a table of a dozen rows.
Table values_table(const LinePlot& plot);

// The `d` of a path within 1000 x 1000, from the upper left; points that are not finite, or cannot be on the axes, are
// gaps. A point alone is a line of no length, which round ends make a dot.
std::string path_of(const std::vector<PlotPoint>& points, const Axis& x, const Axis& y);

}  // namespace zt
