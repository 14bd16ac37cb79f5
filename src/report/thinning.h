// Of a line of many points those that a figure can show.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "report/contents.h"

namespace zt {

// The steps from `first` to `last` in `columns` equal ones; of each column its smallest and its largest value in the
// order in which they come, and a gap where there is one; of all points the first and the last. Points that fit (two a
// column and fewer) stay as they are.
std::vector<PlotPoint> thinned(std::span<const PlotPoint> points, double first, double last, std::size_t columns);

// Of marks one a column, its first.
std::vector<PlotPoint> thinned_marks(std::span<const PlotPoint> points, double first, double last, std::size_t columns);

}  // namespace zt
