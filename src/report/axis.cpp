#include "report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "train/words.h"

namespace zt {

namespace {

// Beyond this the arithmetic of axes could overflow; such values are shown as not finite ones are.
constexpr double largest_shown = 1e300;

constexpr double margin_share = 0.04;  // of the range of values, above and below them

double logarithm(double value, AxisScale scale) {
  return scale == AxisScale::log2 ? std::log2(value) : std::log10(value);
}

bool is_logarithmic(AxisScale scale) { return scale == AxisScale::log2 || scale == AxisScale::log10; }

// 1, 2, 2.5 or 5 times a power of ten, at least `at_least`.
double round_step(double at_least) {
  const double power = std::pow(10.0, std::floor(std::log10(at_least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= at_least * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

// Digits behind the point that multiples of `step` need.
int decimals_of(double step) {
  for (int decimals = 0; decimals < 9; ++decimals) {
    const double scaled = step * std::pow(10.0, decimals);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return decimals;
  }
  return 9;
}

std::string bytes_text(double value) {
  return std::abs(value) < 9e18 ? bytes_in_words(static_cast<std::int64_t>(value)) : significant(value, 3) + " B";
}

// "12.0 k" and "12 k" say the same.
std::string without_zeros(std::string text) {
  const std::size_t point = text.find('.');
  const std::size_t end = std::min(text.find(' '), text.size());
  if (point == std::string::npos || point > end) return text;
  std::size_t last = end;
  while (text[last - 1] == '0') --last;
  if (last == point + 1) last = point;
  return text.erase(last, end - last);
}

std::string tick_text(double value, double step, Unit unit) {
  if (value == 0.0) return "0";
  if (unit == Unit::bytes) return without_zeros(bytes_text(value));
  if (unit == Unit::seconds) return without_zeros(value_text(value, unit));
  if (std::abs(value) >= 10000.0) return without_zeros(count_in_words(value));
  const int decimals = decimals_of(step);
  return decimals > 4 ? significant(value, 3) : fixed(value, decimals);
}

void add_linear_ticks(Axis& axis, double step, Unit unit) {
  const double first = std::ceil(axis.low / step - 1e-6);
  const double last = std::floor(axis.high / step + 1e-6);
  for (double index = first; index <= last && axis.ticks.size() < 64; ++index)
    axis.ticks.push_back({index * step, tick_text(index * step, step, unit)});
}

Axis linear_axis(double smallest, double largest, bool from_zero, Unit unit, int most_ticks) {
  Axis axis;
  axis.scale = AxisScale::linear;
  if (from_zero) {
    smallest = std::min(smallest, 0.0);
    largest = std::max(largest, 0.0);
  }
  if (largest - smallest <= std::abs(largest) * 1e-12) {  // one value
    const double margin = largest == 0.0 ? 1.0 : std::abs(largest) * 0.05;
    if (!from_zero || largest == 0.0) {
      smallest -= from_zero ? 0.0 : margin;
      largest += margin;
    }
  }
  const double range = largest - smallest;
  const double step = round_step(range / std::max(1, most_ticks));
  axis.low = from_zero && smallest == 0.0 ? 0.0 : smallest - margin_share * range;
  axis.high = from_zero && largest == 0.0 ? 0.0 : largest + margin_share * range;
  add_linear_ticks(axis, step, unit);
  return axis;
}

Axis logarithmic_axis(double smallest, double largest, AxisScale scale, Unit unit, int most_ticks) {
  Axis axis;
  axis.scale = scale;
  const double base = scale == AxisScale::log2 ? 2.0 : 10.0;
  const double range = std::max(1.0, logarithm(largest, scale) - logarithm(smallest, scale));
  const double low = logarithm(smallest, scale) - margin_share * range;
  const double high = logarithm(smallest, scale) + (1.0 + margin_share) * range;
  axis.low = std::pow(base, low);
  axis.high = std::pow(base, high);
  const double every = std::max(1.0, std::ceil((high - low) / std::max(1, most_ticks)));
  // Few powers of ten: their doubles and fivefolds, too.
  const bool between = scale == AxisScale::log10 && high - low < 2.5;
  for (double exponent = std::floor(low / every) * every; exponent <= high; exponent += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(base, exponent);
      if ((factor > 1.0 && !between) || value < axis.low || value > axis.high) continue;
      axis.ticks.push_back({value, unit == Unit::power_of_two ? "2^" + fixed(exponent, 0) : significant(value, 3)});
    }
  }
  return axis;
}

template <typename Look>
void look_at_points(const LinePlot& plot, Look&& look) {
  for (const PlotLine& line : plot.lines) std::for_each(line.points.begin(), line.points.end(), look);
  for (const PlotMarks& marks : plot.marks) std::for_each(marks.points.begin(), marks.points.end(), look);
}

}  // namespace

double Axis::place(double value) const {
  if (!is_logarithmic(scale)) return (value - low) / (high - low);
  if (!(value > 0.0)) return not_recorded;
  return (logarithm(value, scale) - logarithm(low, scale)) / (logarithm(high, scale) - logarithm(low, scale));
}

Axis make_axis(double smallest, double largest, AxisScale scale, Unit unit, int most_ticks) {
  if (is_logarithmic(scale) && smallest > 0.0) return logarithmic_axis(smallest, largest, scale, unit, most_ticks);
  return linear_axis(smallest, largest, scale == AxisScale::from_zero, unit, most_ticks);
}

Axis make_step_axis(double first, double last, int most_ticks) {
  Axis axis;
  axis.low = first;
  axis.high = last > first ? last : first + std::max(1.0, std::abs(first) * 1e-9);
  add_linear_ticks(axis, std::max(1.0, std::ceil(round_step((axis.high - axis.low) / std::max(1, most_ticks)))),
                   Unit::whole);
  if (last <= first) axis.ticks = {{first, tick_text(first, 1.0, Unit::whole)}};
  return axis;
}

std::string value_text(double value, Unit unit) {
  if (std::isnan(value)) return "not finite";
  if (std::isinf(value)) return "infinite";
  switch (unit) {
    case Unit::bytes: return bytes_text(value);
    case Unit::seconds:
      if (value >= 1.0) return seconds_in_words(value);
      return value >= 1e-3 ? significant(value * 1e3, 3) + " ms" : significant(value * 1e6, 3) + " us";
    case Unit::per_second: return count_in_words(value);
    case Unit::whole: return fixed(value, 0);
    case Unit::power_of_two: {
      const double exponent = std::log2(value);
      if (value > 1.0 && exponent == std::floor(exponent)) return "2^" + fixed(exponent, 0);
      return significant(value, 9);
    }
    case Unit::plain: break;
  }
  return significant(value, 6);
}

Axis value_axis(const LinePlot& plot, int most_ticks) {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -smallest;
  const auto look = [&](double value) {
    if (!(std::abs(value) <= largest_shown)) return;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  };
  look_at_points(plot, [&](const PlotPoint& point) { look(point.y); });
  // A level far above all values would flatten them.
  const double values_end = largest;
  for (const PlotLevel& level : plot.levels) {
    if (level.y <= 3.0 * std::abs(values_end)) look(level.y);
  }
  if (smallest > largest) smallest = largest = 1.0;  // nothing finite
  return make_axis(smallest, largest, plot.scale, plot.unit, most_ticks);
}

Axis step_axis(const LinePlot& plot, int most_ticks) {
  double first = std::numeric_limits<double>::infinity();
  double last = -first;
  look_at_points(plot, [&](const PlotPoint& point) {
    first = std::min(first, point.x);
    last = std::max(last, point.x);
  });
  return first <= last ? make_step_axis(first, last, most_ticks) : make_step_axis(0.0, 1.0, most_ticks);
}

}  // namespace zt
