// What changed from step to step: loss, loss scale, gradient norm, learning rate, throughput.
#include <algorithm>
#include <cmath>

#include "report/contents.h"
#include "train/words.h"

namespace zt {

namespace {

using Runs = std::vector<RecordedRun>;

template <typename Value>
PlotLine line_of(const RecordedRun& run, std::size_t index, Value&& value) {
  PlotLine line{.run = index, .name = run.name};
  line.points.reserve(run.steps.size());
  for (const RecordedStep& step : run.steps) line.points.push_back({static_cast<double>(step.step), value(step)});
  return line;
}

template <typename Value>
std::vector<PlotLine> lines_of(const Runs& runs, Value&& value) {
  std::vector<PlotLine> lines;
  for (std::size_t index = 0; index < runs.size(); ++index) lines.push_back(line_of(runs[index], index, value));
  return lines;
}

template <typename Where, typename Value>
std::vector<PlotMarks> marks_of(const Runs& runs, Where&& where, Value&& value) {
  std::vector<PlotMarks> all;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    PlotMarks marks{.run = index};
    for (const RecordedStep& step : runs[index].steps) {
      if (where(step)) marks.points.push_back({static_cast<double>(step.step), value(step)});
    }
    if (!marks.points.empty()) all.push_back(std::move(marks));
  }
  return all;
}

// Whether the largest value above 0 is more than so many times the smallest.
bool spans_more_than(const std::vector<PlotLine>& lines, double factor) {
  double smallest = HUGE_VAL;
  double largest = 0.0;
  for (const PlotLine& line : lines) {
    for (const PlotPoint& point : line.points) {
      if (!std::isfinite(point.y)) continue;
      if (point.y <= 0.0) return false;
      smallest = std::min(smallest, point.y);
      largest = std::max(largest, point.y);
    }
  }
  return largest > factor * smallest;
}

LinePlot loss_plot(const Runs& runs) {
  LinePlot plot{.id = "loss", .title = "Loss"};
  plot.lines = lines_of(runs, [](const RecordedStep& step) { return step.loss; });
  bool evaluated = false;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    if (runs[index].evaluations.empty()) continue;
    evaluated = true;
    PlotLine line{.run = index, .name = runs[index].name + ", validation", .dotted = true};
    for (const RecordedEvaluation& one : runs[index].evaluations)
      line.points.push_back({static_cast<double>(one.step), one.loss});
    plot.lines.push_back(std::move(line));
  }
  plot.about = "Mean over the global batch of every step, before its update";
  plot.about += evaluated ? "; with marks, the loss on validation data." : ".";
  plot.marks = marks_of(
      runs, [](const RecordedStep& step) { return !std::isfinite(step.loss); },
      [](const RecordedStep&) { return not_recorded; });
  plot.marks_name = "loss not finite";
  if (spans_more_than(plot.lines, 30.0)) plot.scale = AxisScale::log10;
  return plot;
}

Block scale_block(const Runs& runs) {
  LinePlot plot{.id = "loss-scale", .title = "Loss scale", .unit = Unit::power_of_two, .scale = AxisScale::log2};
  plot.lines = lines_of(runs, [](const RecordedStep& step) { return step.loss_scale; });
  const auto is_skipped = [](const RecordedStep& step) { return step.skipped; };
  std::int64_t skipped = 0;
  bool scaled = false;
  for (const RecordedRun& run : runs) {
    skipped += std::count_if(run.steps.begin(), run.steps.end(), is_skipped);
    scaled = scaled || std::any_of(run.steps.begin(), run.steps.end(),
                                   [](const RecordedStep& step) { return step.loss_scale > 1.0; });
  }
  const std::string subject = runs.size() == 1 ? "the run" : "the runs";
  if (!scaled && skipped == 0)
    return Paragraph{"Loss scale: 1 throughout, and no step of " + subject + " was skipped."};
  plot.about = "What the loss of each step was multiplied by. ";
  plot.about += skipped == 0 ? "No step was skipped." : "Crosses are steps whose update was left out.";
  plot.marks = marks_of(runs, is_skipped, [](const RecordedStep& step) { return step.loss_scale; });
  plot.marks_name = "skipped step";
  return plot;
}

LinePlot norm_plot(const Runs& runs) {
  LinePlot plot{.id = "gradient-norm", .title = "Gradient norm"};
  plot.about = "Of the mean gradient, before clipping and without the loss scale.";
  plot.lines = lines_of(runs, [](const RecordedStep& step) { return step.grad_norm; });
  for (const RecordedRun& run : runs) {
    const double clip = find_number(run.config, "gradient_clipping").value_or(0.0);
    const bool there =
        std::any_of(plot.levels.begin(), plot.levels.end(), [&](const PlotLevel& level) { return level.y == clip; });
    if (clip > 0.0 && !there) plot.levels.push_back({clip, "clipped to " + significant(clip, 3)});
  }
  if (spans_more_than(plot.lines, 30.0)) plot.scale = AxisScale::log10;
  return plot;
}

LinePlot rate_plot(const Runs& runs) {
  LinePlot plot{.id = "learning-rate", .title = "Learning rate", .scale = AxisScale::from_zero};
  plot.about = "By the schedule, which counts applied steps.";
  plot.lines = lines_of(runs, [](const RecordedStep& step) { return step.learning_rate; });
  return plot;
}

// Of the runs that count tokens, or of those that count samples; nothing where there are none.
std::optional<LinePlot> throughput_plot(const Runs& runs, bool tokens) {
  LinePlot plot{.id = tokens ? "tokens-per-second" : "samples-per-second",
                .title = tokens ? "Tokens a second" : "Samples a second",
                .unit = Unit::per_second,
                .scale = AxisScale::from_zero};
  plot.about = "All ranks together, step by step; the first steps touch memory for the first time.";
  for (std::size_t index = 0; index < runs.size(); ++index) {
    if (runs[index].counts_tokens == tokens)
      plot.lines.push_back(line_of(runs[index], index, [](const RecordedStep& step) { return step.rate; }));
  }
  if (plot.lines.empty()) return std::nullopt;
  return plot;
}

}  // namespace

Section curves_section(const Runs& runs) {
  Section section{.id = "curves", .title = "Curves"};
  section.blocks = {loss_plot(runs), scale_block(runs), norm_plot(runs), rate_plot(runs)};
  for (const bool tokens : {true, false}) {
    if (auto plot = throughput_plot(runs, tokens)) section.blocks.emplace_back(std::move(*plot));
  }
  return section;
}

}  // namespace zt
