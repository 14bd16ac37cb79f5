#include "report/thinning.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace zt {

namespace {

std::size_t column_of(double x, double first, double last, std::size_t columns) {
  if (!(last > first)) return 0;
  const double place = (x - first) / (last - first) * static_cast<double>(columns);
  return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(columns - 1)));
}

// What is kept of the points of one column.
struct Kept {
  std::optional<std::size_t> smallest{}, largest{}, gap{};

  void look(std::span<const PlotPoint> points, std::size_t index) {
    if (!std::isfinite(points[index].y)) {
      gap = index;
      return;
    }
    if (!smallest || points[index].y < points[*smallest].y) smallest = index;
    if (!largest || points[index].y > points[*largest].y) largest = index;
  }
  void move_to(std::vector<std::size_t>& indices) {
    std::vector<std::size_t> of_column;
    for (const auto& index : {smallest, largest, gap}) {
      if (index) of_column.push_back(*index);
    }
    std::sort(of_column.begin(), of_column.end());
    indices.insert(indices.end(), of_column.begin(), of_column.end());
    *this = {};
  }
};

}  // namespace

std::vector<PlotPoint> thinned(std::span<const PlotPoint> points, double first, double last, std::size_t columns) {
  if (points.size() <= 2 * columns) return {points.begin(), points.end()};
  std::vector<std::size_t> indices = {0};
  Kept kept;
  std::size_t column = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t of_point = column_of(points[i].x, first, last, columns);
    if (of_point != column) kept.move_to(indices);
    column = of_point;
    kept.look(points, i);
  }
  kept.move_to(indices);
  indices.push_back(points.size() - 1);
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  std::vector<PlotPoint> result;
  result.reserve(indices.size());
  for (const std::size_t index : indices) result.push_back(points[index]);
  return result;
}

std::vector<PlotPoint> thinned_marks(std::span<const PlotPoint> points, double first, double last,
                                     std::size_t columns) {
  std::vector<PlotPoint> result;
  std::optional<std::size_t> column;
  for (const PlotPoint& point : points) {
    const std::size_t of_point = column_of(point.x, first, last, columns);
    if (column == of_point) continue;
    column = of_point;
    result.push_back(point);
  }
  return result;
}

}  // namespace zt
