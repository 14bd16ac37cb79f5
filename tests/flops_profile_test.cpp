// The profile of a step: made-up operations are added up by pass and unit.
#include "train/flops_profile.h"

#include "catch_compat.h"

namespace zt {
namespace {

TimedSpan timed(std::string_view name, Activity pass, Activity activity, std::int64_t unit, double seconds,
                double flops = 0.0) {
  TimedSpan operation;
  operation.span.name = name;
  operation.span.pass = pass;
  operation.span.activity = activity;
  operation.span.number = unit;
  operation.span.flops = flops;
  operation.seconds = seconds;
  return operation;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST_CASE("operations are added up by pass, by unit and by kind; what a collective runs is its own") {
  std::vector<TimedSpan> operations = {
      timed("matmul", Activity::forward, Activity::compute, 0, 1.0, 2e9),
      timed("matmul", Activity::backward, Activity::compute, 1, 1.0, 4e9),
      timed("layer_norm_forward", Activity::forward, Activity::compute, 1, 0.5),
      timed("reduce_scatter", Activity::backward, Activity::reduce, 1, 3.0),
      timed("reduce_onto", Activity::backward, Activity::reduce, 1, 2.0),
      timed("adam_update", Activity::finish, Activity::update, 0, 0.25),
  };
  operations[3].span.kind = TraceRecorder::Span::Kind::collective;
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
