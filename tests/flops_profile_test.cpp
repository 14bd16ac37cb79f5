// The profile of a step: made-up operations are added up by pass and unit.
#include "train/flops_profile.h"

#include "catch_compat.h"

namespace zt {
namespace {

using Timed = Trace::Timed;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST_CASE("operations are added up by pass, by unit and by kind; what a collective runs is its own") {
  const std::vector<Timed> operations = {
      {.name = "matmul",
       .pass = Activity::forward,
       .activity = Activity::compute,
       .number = 0,
       .flops = 2e9,
       .seconds = 1.0},
      {.name = "matmul",
       .pass = Activity::backward,
       .activity = Activity::compute,
       .number = 1,
       .flops = 4e9,
       .seconds = 1.0},
      {.name = "layer_norm_forward",
       .pass = Activity::forward,
       .activity = Activity::compute,
       .number = 1,
       .seconds = 0.5},
      {.name = "reduce_scatter",
       .pass = Activity::backward,
       .activity = Activity::reduce,
       .number = 1,
       .collective = true,
       .seconds = 3.0},
      {.name = "reduce_onto", .pass = Activity::backward, .activity = Activity::reduce, .number = 1, .seconds = 2.0},
      {.name = "adam_update", .pass = Activity::finish, .activity = Activity::update, .number = 0, .seconds = 0.25},
  };
  const std::string text = joined(profile_lines(operations, {"a", "b"}, {}, 7));
  INFO(text);
  CHECK(text.find("flops profile of step 7 on rank 0: 6.00 Gflop in products, 3.00 Gflop/s while they run, 2.75 s in "
                  "operations") != std::string::npos);
  CHECK(text.find("  a                           2.00 G      1.00 s           0      250 ms           0") !=
        std::string::npos);
  CHECK(text.find("  b                           4.00 G      500 ms      1.00 s           0      3.00 s") !=
        std::string::npos);
  CHECK(text.find("reduce_onto") == std::string::npos);
  CHECK(text.find("reduce_scatter") < text.find("  matmul"));

  const std::string top = joined(profile_lines(operations, {"a", "b"}, {.detailed = false}, 7));
  CHECK(top.find("\n  b  ") != std::string::npos);
  CHECK(top.find("\n  a  ") == std::string::npos);
}

TEST_CASE("a step without operations has a profile, too") {
  CHECK(profile_lines({}, {}, {}, 1).size() > 3);
  CHECK(profile_lines({}, {"a"}, {.detailed = false, .top_modules = 5}, 1).size() > 3);
}

}  // namespace
}  // namespace zt
