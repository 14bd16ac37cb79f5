// Wholes in their parts as SVG: one picture a run, on one scale.
#include <algorithm>
#include <cmath>

#include "report/axis.h"
#include "report/svg.h"
#include "train/words.h"

namespace zt {

namespace {

constexpr int bar_height = 18;  // pixels
constexpr int thin_height = 9;
constexpr int gap = 7;

std::string percent(double share) { return fixed(100.0 * share, 3) + "%"; }

double whole_of(const Bar& bar) {
  double sum = 0.0;
  for (const double value : bar.values) sum += value;
  return sum;
}

std::string part_class(std::size_t part) { return "part part" + std::to_string(part % part_colors); }

// Stripes on every second part and dots on every third, in place of colors for those who do not tell these apart. They
// are dashes of a broad line: patterns would make printed pages large.
void write_texture(Markup& out, std::size_t part, const std::string& x, double share_from, double share_to, int y,
                   int height) {
  const std::string end = percent(share_to);
  const auto line = [&](const char* kind, const std::string& at, const std::string& width) {
    out.empty("line", {{"class", kind}, {"x1", x}, {"x2", end}, {"y1", at}, {"y2", at}, {"stroke-width", width}});
  };
  if (!(share_to > share_from)) return;
  if (part % 3 == 1) line("stripes", fixed(y + height / 2.0, 1), std::to_string(height));
  if (part % 3 != 2) return;
  if (height < 12) return line("dots", fixed(y + height / 2.0, 1), "1.8");
  for (const double at : {0.27, 0.73}) line("dots", fixed(y + at * height, 1), "1.8");
}

void write_part(Markup& out, const std::string& name, const std::string& classes, double from, double to, int y,
                int height) {
  out.open("rect", {{"class", classes},
                    {"x", percent(from)},
                    {"width", percent(to - from)},
                    {"y", std::to_string(y)},
                    {"height", std::to_string(height)}});
  out.element("title", {}, name);
  out.close();
}

void write_bar(Markup& out, const BarPlot& plot, const BarGroup& group, const Bar& bar, const Axis& axis, int y) {
  const int height = bar.thin ? thin_height : bar_height;
  double begin = 0.0;
  for (std::size_t part = 0; part < bar.values.size(); ++part) {
    const double value = bar.values[part];
    if (!(value > 0.0)) continue;
    const bool alone = plot.parts.size() == 1;
    const double from = axis.place(begin);
    const double to = axis.place(begin + value);
    write_part(out, plot.parts[part] + ": " + value_text(value, plot.unit),
               alone ? "part " + color_class(group.run) + " alone" : part_class(part), from, to, y, height);
    if (!alone) write_texture(out, part, percent(from), from, to, y, height);
    begin += value;
  }
  const std::string middle = std::to_string(y + height / 2 + 4);
  if (!bar.name.empty()) out.element("text", {{"x", "-8"}, {"y", middle}, {"text-anchor", "end"}}, bar.name);
  double end = begin;
  if (bar.level) {
    end = std::max(end, *bar.level);
    const std::string at = percent(axis.place(*bar.level));
    const std::string top = std::to_string(y - 3);
    const std::string bottom = std::to_string(y + height + 3);
    out.empty("line", {{"class", "halo"}, {"x1", at}, {"x2", at}, {"y1", top}, {"y2", bottom}});
    out.open("line", {{"class", "formula"}, {"x1", at}, {"x2", at}, {"y1", top}, {"y2", bottom}});
    out.element("title", {}, plot.level_name + ": " + value_text(*bar.level, plot.unit));
    out.close();
  }
  out.element("text", {{"class", "whole"}, {"x", percent(axis.place(end))}, {"dx", "7"}, {"y", middle}},
              value_text(whole_of(bar), plot.unit));
}

void write_legend(Markup& out, const BarPlot& plot) {
  out.open("ul", {{"class", "legend"}});
  for (std::size_t part = 0; plot.parts.size() > 1 && part < plot.parts.size(); ++part) {
    const bool used = std::any_of(plot.groups.begin(), plot.groups.end(), [&](const BarGroup& group) {
      return std::any_of(group.bars.begin(), group.bars.end(), [&](const Bar& bar) { return bar.values[part] > 0.0; });
    });
    if (!used) continue;
    out.open("li");
    out.open("svg", {{"class", "sample"}, {"width", "22"}, {"height", "14"}, {"aria-hidden", "true"}});
    write_part(out, plot.parts[part], part_class(part), 0.0, 1.0, 1, 12);
    write_texture(out, part, "0", 0.0, 1.0, 1, 12);
    out.close();
    out.text(plot.parts[part]);
    out.close();
  }
  if (!plot.level_name.empty()) {
    out.open("li");
    out.open("svg", {{"class", "sample"}, {"width", "12"}, {"height", "16"}, {"aria-hidden", "true"}});
    out.empty("line", {{"class", "formula"}, {"x1", "6"}, {"x2", "6"}, {"y1", "0"}, {"y2", "16"}});
    out.close();
    out.text(plot.level_name);
    out.close();
  }
  out.close();
}

}  // namespace

std::string in_words(const BarPlot& plot, const BarGroup& group) {
  std::string words = plot.title + ", " + group.name + ".";
  for (const Bar& bar : group.bars) {
    words += (bar.name.empty() ? " " : " " + bar.name + ": ") + value_text(whole_of(bar), plot.unit);
    if (plot.parts.size() > 1) {
      std::string parts;
      for (std::size_t part = 0; part < bar.values.size(); ++part) {
        if (bar.values[part] > 0.0)
          parts += (parts.empty() ? "" : ", ") + plot.parts[part] + " " + value_text(bar.values[part], plot.unit);
      }
      if (!parts.empty()) words += ", of it " + parts;
    }
    if (bar.level) words += "; " + plot.level_name + " " + value_text(*bar.level, plot.unit);
    words += ".";
  }
  return words;
}

void write_bar_plot(Markup& out, const BarPlot& plot) {
  double largest = 0.0;
  for (const BarGroup& group : plot.groups) {
    for (const Bar& bar : group.bars) largest = std::max({largest, whole_of(bar), bar.level.value_or(0.0)});
  }
  const Axis axis = make_axis(0.0, largest, AxisScale::from_zero, plot.unit, 4);
  write_legend(out, plot);
  out.open("div", {{"class", "area bars"}});
  for (const BarGroup& group : plot.groups) {
    out.open("p", {{"class", "group"}});
    write_run_sample(out, group.run, false);
    out.text(group.name);
    out.close();
    int height = 4;
    for (const Bar& bar : group.bars) height += (bar.thin ? thin_height : bar_height) + gap;
    out.open("svg", {{"role", "img"},
                     {"aria-label", in_words(plot, group)},
                     {"width", "100%"},
                     {"height", std::to_string(height)}});
    for (const Tick& tick : axis.ticks) {
      const std::string at = percent(axis.place(tick.value));
      out.empty("line", {{"class", "grid"}, {"x1", at}, {"x2", at}, {"y1", "0"}, {"y2", "100%"}});
    }
    int y = 4;
    for (const Bar& bar : group.bars) {
      if (bar.thin) y -= gap - 3;
      write_bar(out, plot, group, bar, axis, y);
      y += (bar.thin ? thin_height : bar_height) + gap;
    }
    out.close();
    out.line();
  }
  out.open("svg", {{"aria-hidden", "true"}, {"width", "100%"}, {"height", "20"}});
  for (const Tick& tick : axis.ticks) {
    out.element("text", {{"x", percent(axis.place(tick.value))}, {"y", "14"}, {"text-anchor", "middle"}}, tick.text);
  }
  out.close();
  out.close();
  out.line();
}

}  // namespace zt
