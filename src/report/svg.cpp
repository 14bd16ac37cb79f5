#include "report/svg.h"

#include <array>
#include <cmath>
#include <string_view>

#include "train/words.h"

namespace zt {

namespace {

// Marks of evaluations: a circle, a square, a diamond, a triangle, and one upside down.
constexpr std::array<std::string_view, run_dashes> shapes = {"M-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0z",
                                                             "M-.9-.9H.9V.9H-.9z", "M0-1.25L1.25 0L0 1.25L-1.25 0z",
                                                             "M0-1.2L1.1 .8H-1.1z", "M0 1.2L1.1-.8H-1.1z"};

}  // namespace

std::string color_class(std::size_t run) { return "run" + std::to_string(run % run_colors); }

std::string run_class(std::size_t run) { return color_class(run) + " dash" + std::to_string(run % run_dashes); }

std::string mark_of(std::size_t run) { return "#mark" + std::to_string(run % run_dashes); }

void write_definitions(Markup& out) {
  out.open("svg", {{"class", "definitions"}, {"width", "0"}, {"height", "0"}, {"aria-hidden", "true"}});
  out.open("defs");
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    out.empty("path", {{"id", "mark" + std::to_string(shape)}, {"d", shapes.at(shape)}, {"transform", "scale(4.4)"}});
  }
  out.empty("path", {{"id", "cross"}, {"d", "M-4.5-4.5L4.5 4.5M-4.5 4.5L4.5-4.5"}});
  out.close();
  out.close();
  out.line();
}

void write_run_sample(Markup& out, std::size_t run, bool with_mark) {
  out.open("svg", {{"class", "sample " + run_class(run)}, {"width", "34"}, {"height", "14"}, {"aria-hidden", "true"}});
  out.empty("path", {{"class", "line"}, {"d", "M1 7H33"}});
  if (with_mark) {
    out.empty("use", {{"class", "mark"}, {"href", mark_of(run)}, {"x", "17"}, {"y", "7"}});
  }
  out.close();
}

}  // namespace zt
