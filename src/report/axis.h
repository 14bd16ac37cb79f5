// The axis of a figure: which values it shows, where they lie, and what is written beside it.
#pragma once

#include <string>
#include <vector>

#include "report/contents.h"

namespace zt {

struct Tick {
  double value = 0.0;
  std::string text{};
};

struct Axis {
  AxisScale scale = AxisScale::linear;
  double low = 0.0, high = 1.0;  // low < high; above 0 for logarithmic ones
  std::vector<Tick> ticks{};

  // 0 at `low`, 1 at `high`; beyond them for other values. Not a number for what a logarithm does not have.
  double place(double value) const;
};

// All that lies in [smallest, largest], with a little room, and round numbers among it, at most about `most_ticks`. A
// logarithmic scale of values that are not all above 0 becomes a linear one.
Axis make_axis(double smallest, double largest, AxisScale scale, Unit unit, int most_ticks);

// Of steps: whole numbers, from the first to the last without a margin.
Axis make_step_axis(double first, double last, int most_ticks);

// "1.25 GB", "2.31e-05", "65536 (2^16)": as a reader wants one value.
std::string value_text(double value, Unit unit);

// The axis of a figure that shows all these lines, marks and levels.
Axis value_axis(const LinePlot& plot, int most_ticks);
Axis step_axis(const LinePlot& plot, int most_ticks);

}  // namespace zt
