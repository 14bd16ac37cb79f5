// A report for a terminal: the same contents, with plots in characters, 80 columns wide, in ASCII.
#pragma once

#include <string>
#include <vector>

#include "report/contents.h"

namespace zt {

constexpr int text_width = 80;

std::string text_report(const Contents& contents);

// Lines of a plot, of bars, of a table; none longer than `text_width`. Each run has a letter, a to z; where several
// runs have drawn the same place stands '#'.
std::vector<std::string> text_lines(const LinePlot& plot);
std::vector<std::string> text_lines(const BarPlot& plot);
std::vector<std::string> text_lines(const Table& table);
std::vector<std::string> wrapped(const std::string& text, int width, int indent = 0);

}  // namespace zt
