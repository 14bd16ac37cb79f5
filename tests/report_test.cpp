// Reports: what is read of runs, what is said of equal curves, where figures put their points, and the page as a whole.
#include <cmath>

#include "page_check.h"
#include "report/axis.h"
#include "report/equal_curves.h"
#include "report/html_page.h"
#include "report/markup.h"
#include "report/svg.h"
#include "report/text_report.h"
#include "report/thinning.h"
#include "report_support.h"

using namespace zt::testing;
using zt::PlotPoint;

namespace {

const char* const summary_of_two_ranks =
    R"({"status": "completed", "steps": {"attempted": 2, "applied": 2, "skipped": 0},
  "model": {"type": "gpt", "parameters": 1000}, "weights_checksum": "00000000000000ab",
  "run": {"world_size": 2, "stage": 2, "precision": "fp32", "device": "cpu", "micro_batch": 2, "accumulation": 1},
  "memory": {"formula_bytes_per_parameter": 10.0,
    "planned": {"parameters": 4000, "gradients": 2000, "optimizer": 4000, "activations": 500, "communication": 100,
                "data": 8, "workspace": 92, "padding": 0},
    "ranks": [{"rank": 0, "parameters": 4000, "gradients": 2000, "optimizer": 4000, "activations": 500,
               "communication": 100, "data": 8, "workspace": 92, "padding": 0, "peak_resident": 20000},
              {"rank": 1, "parameters": 4000, "gradients": 2000, "optimizer": 4000, "activations": 500,
               "communication": 100, "data": 8, "workspace": 92, "padding": 0, "peak_resident": 20000}]},
  "communication": {"elements_per_parameter_and_step": 1.0, "planned": 1.0, "paper": 1.0, "elements": 2000,
    "reduce_scatter": {"calls": 2, "bytes": 4000, "seconds": 0.01}, "all_gather": {"calls": 2, "bytes": 4000, "seconds": 0.02}},
  "throughput": {"tokens_per_second": 1024.0},
  "seconds": {"train": 1.0, "forward": 0.2, "backward": 0.4, "optimizer": 0.1, "data_wait": 0.0,
              "communication_exposed": 0.03}})";

std::string two_steps() { return step_line(1, "4.0") + step_line(2, "3.0"); }

zt::PlotLine line_of_ten_thousand() {
  zt::PlotLine line;
  for (int step = 1; step <= 10000; ++step) line.points.push_back({step * 1.0, std::sin(step * 0.37) + step * 1e-4});
  line.points[4321].y = 50.0;
  line.points[7654].y = -50.0;
  return line;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("a run's records are read, numbers that are not finite with what they were") {
  const RunsFolder folder;
  const std::string path =
      folder.run("a", step_line(1, "4.25") + step_line(2, "null", R"(, "not_finite": "nan")") +
                          step_line(3, "null", R"(, "not_finite": "inf")") + evaluation_line(3, "3.5"));
  const zt::RecordedRun run = zt::read_run(path);
  REQUIRE(run.steps.size() == 3);
  CHECK(run.name == "a");
  CHECK(run.steps[0].loss == 4.25);
  CHECK(run.steps[0].grad_norm == 2.0);
  CHECK(run.steps[0].rate == 1024.0);
  CHECK(run.counts_tokens);
  CHECK(std::isnan(run.steps[1].loss));
  CHECK(std::isinf(run.steps[2].loss));
  REQUIRE(run.evaluations.size() == 1);
  CHECK(run.evaluations[0].loss == 3.5);
  CHECK(run.unreadable_lines == 0);
  // A file of the run names it, too.
  CHECK(zt::read_run(path + "/metrics.jsonl").steps.size() == 3);
}

TEST_CASE("of a resumed run the later records of a step count") {
  const RunsFolder folder;
  const zt::RecordedRun run =
      zt::read_run(folder.run("a", step_line(1, "5.0") + step_line(2, "4.0") + evaluation_line(2, "4.5") +
                                       step_line(3, "3.0") + resume_line(1) + step_line(2, "4.1") +
                                       evaluation_line(2, "4.6") + step_line(3, "3.1") + step_line(4, "2.1")));
  REQUIRE(run.steps.size() == 4);
  CHECK(run.steps[1].loss == 4.1);
  CHECK(run.steps[2].loss == 3.1);
  CHECK(run.steps[3].step == 4);
  REQUIRE(run.evaluations.size() == 1);
  CHECK(run.evaluations[0].loss == 4.6);
  CHECK(run.resumes == std::vector<std::int64_t>{1});
}

TEST_CASE("of a run that went on from an earlier step the steps behind that are another branch, and left out") {
  const RunsFolder folder;
  const std::string first = step_line(1, "5.0") + step_line(2, "4.0") + step_line(3, "3.0") +
                            evaluation_line(3, "3.5") + resume_line(3) + step_line(4, "2.0") +
                            evaluation_line(4, "2.5");
  const zt::RecordedRun run = zt::read_run(folder.run("a", first + resume_line(1) + step_line(2, "4.1")));
  REQUIRE(run.steps.size() == 2);
  CHECK(run.steps[1].loss == 4.1);
  CHECK(run.evaluations.empty());
  CHECK(run.resumes == std::vector<std::int64_t>{1});
  CHECK(zt::read_run(folder.run("b", first)).steps.size() == 4);
}

TEST_CASE("a line that is cut off is left out and told of") {
  const RunsFolder folder;
  const std::string whole = two_steps();
  const zt::RecordedRun cut = zt::read_run(folder.run("cut", whole + step_line(3, "2.0").substr(0, 60)));
  CHECK(cut.steps.size() == 2);
  CHECK(cut.last_line_cut);
  CHECK(cut.unreadable_lines == 0);
  REQUIRE(cut.remarks.size() == 1);
  CHECK(contains(cut.remarks[0], "cut off"));
  // Killed in the middle of a line and then gone on: the next record begins on the same line.
  const zt::RecordedRun resumed = zt::read_run(
      folder.run("resumed", whole + step_line(3, "2.0").substr(0, 60) + resume_line(2) + step_line(3, "1.5")));
  CHECK(resumed.steps.size() == 3);
  CHECK(resumed.steps[2].loss == 1.5);
  CHECK(resumed.resumes == std::vector<std::int64_t>{2});
  CHECK(resumed.unreadable_lines == 1);
  CHECK_FALSE(resumed.last_line_cut);
  // No newline behind the last line: it is whole all the same.
  CHECK(zt::read_run(folder.run("short", whole.substr(0, whole.size() - 1))).steps.size() == 2);
}

TEST_CASE("what is no run gets a sentence") {
  const RunsFolder folder;
  const auto said = [](const std::string& path) { return message_of([&] { zt::read_run(path); }); };
  CHECK(contains(said(folder.path("nowhere")), "there is no run"));
  CHECK(contains(said(folder.run("empty", "")), "holds no step yet"));
  CHECK(contains(said(folder.run("resumed", resume_line(0))), "holds no step yet"));
  CHECK(contains(said(folder.run("other", "step,loss\n1,2\n")), "holds no record of a step"));
  CHECK(contains(said(folder.run("binary", std::string(3 << 20, '\0'))), "longer than any line"));
  std::ofstream(folder.path("notes.txt")) << "hello\n";
  CHECK(contains(said(folder.path("notes.txt")), "is a file and no run"));
  fs::create_directories(folder.path("bare"));
  CHECK(contains(said(folder.path("bare")), "has no metrics.jsonl"));
  std::ofstream(folder.path("bare") + "/manifest.json") << "{}";
  CHECK(contains(said(folder.path("bare")), "it is a checkpoint"));
  const std::string a = folder.run("a", two_steps());
  CHECK(contains(message_of([&] { zt::read_runs({a, a + "/"}); }), "is the same run as"));
}

TEST_CASE("a summary that is none is left out, and the report says so") {
  const RunsFolder folder;
  for (const std::string& summary : {std::string("{"), std::string("[1]"), std::string(100000, '[')}) {
    const zt::RecordedRun run = zt::read_run(folder.run("a", two_steps(), summary));
    CHECK(run.summary.is_null());
    REQUIRE_FALSE(run.remarks.empty());
    CHECK(contains(run.remarks[0], "summary.json"));
  }
  // Numbers that no machine has.
  const auto absurd = zt::read_runs({folder.run("absurd", step_line(1, "4.0"), R"({"steps": {"attempted": 1},
      "model": {"parameters": 1e300}, "memory": {"formula_bytes_per_parameter": 1e300, "ranks": [{"rank": -1e99,
      "parameters": 1.7e308, "gradients": 1.7e308, "optimizer": -5}]}, "seconds": {"train": 1e308, "forward": -1e308},
      "communication": {"elements_per_parameter_and_step": 1e308, "paper": 1e308, "all_gather": {"bytes": 1e308}}})")});
  const std::string page = zt::html_page(zt::make_contents(absurd), "zerotrain");
  CHECK(problems_of(page).empty());
  CHECK_FALSE(contains(page, "nan%"));
  CHECK_FALSE(contains(page, "inf%"));
  CHECK_FALSE(zt::text_report(zt::make_contents(absurd)).empty());
  // Members of other types than a run writes.
  const auto odd = zt::read_runs({folder.run("odd", two_steps(), R"({"memory": 5, "steps": [], "run": {"stage": "x"},
      "communication": {"elements_per_parameter_and_step": "much"}, "seconds": null, "status": 7})")});
  CHECK(problems_of(zt::html_page(zt::make_contents(odd), "zerotrain")).empty());
}

TEST_CASE("runs get the shortest names that tell them apart") {
  const RunsFolder folder;
  const auto runs =
      zt::read_runs({folder.run("x/a", two_steps()), folder.run("y/a", two_steps()), folder.run("b", two_steps())});
  CHECK(runs[0].name == "x/a");
  CHECK(runs[1].name == "y/a");
  CHECK(runs[2].name == "b");
}

TEST_CASE("curves that agree are told to be one, others where they part") {
  const RunsFolder folder;
  const auto runs = zt::read_runs({folder.run("a", two_steps() + step_line(3, "2.0"), summary_of_two_ranks),
                                   folder.run("b", two_steps(), summary_of_two_ranks),
                                   folder.run("c", step_line(1, "4.0") + step_line(2, "3.00000001")),
                                   folder.run("d", step_line(7, "1.0"))});
  CHECK(zt::compare_curves(runs[0], runs[1]).same());
  CHECK(zt::compare_curves(runs[0], runs[1]).common_steps == 2);
  const auto parted = zt::compare_curves(runs[0], runs[2]);
  REQUIRE(parted.difference);
  CHECK(parted.difference->step == 2);
  CHECK(parted.common_steps == 1);
  CHECK(zt::runs_by_curve(runs) == std::vector<std::vector<std::size_t>>{{0, 1}, {2}, {3}});
  const auto words = zt::equality_in_words(runs);
  REQUIRE(words.size() == 3);
  CHECK(contains(words[0], "the losses of a and b are equal in every recorded digit over 2 steps"));
  CHECK(words[1] == "c parts from a at step 2: loss 3.00000001, there 3.");
  CHECK(contains(words[2], "no step in common"));

  // The weights count where the runs end at the same step.
  const auto both = zt::read_runs(
      {folder.run("e", two_steps(), summary_of_two_ranks), folder.run("f", two_steps(), summary_of_two_ranks)});
  CHECK(contains(zt::equality_in_words(both).at(0), "the losses of both runs are equal"));
  CHECK(contains(zt::equality_in_words(both).at(0), "equal to the last bit (checksum 00000000000000ab)"));
  std::string other = summary_of_two_ranks;
  other.replace(other.find("ab\""), 2, "ac");
  const auto differ =
      zt::read_runs({folder.run("g", two_steps(), other), folder.run("h", two_steps(), summary_of_two_ranks)});
  CHECK(contains(zt::equality_in_words(differ).at(0), "weights that they end with differ"));
  CHECK(zt::equality_in_words({runs[0]}).empty());
}

TEST_CASE("losses that are not finite at the same steps are the same curve") {
  const RunsFolder folder;
  const std::string lines = step_line(1, "4.0") + step_line(2, "null", R"(, "not_finite": "nan")");
  const auto runs = zt::read_runs({folder.run("a", lines), folder.run("b", lines)});
  CHECK(zt::compare_curves(runs[0], runs[1]).same());
}

TEST_CASE("axes have round numbers around all values") {
  const zt::Axis loss = zt::make_axis(2.3, 4.4, zt::AxisScale::linear, zt::Unit::plain, 5);
  CHECK(loss.low == Approx(2.216));
  CHECK(loss.high == Approx(4.484));
  REQUIRE(loss.ticks.size() == 4);
  CHECK(loss.ticks[0].text == "2.5");
  CHECK(loss.ticks[3].text == "4.0");
  CHECK(loss.place(2.216) == Approx(0.0).margin(1e-9));
  CHECK(loss.place(3.35) == Approx(0.5));
  const zt::Axis scale = zt::make_axis(65536.0, 4294967296.0, zt::AxisScale::log2, zt::Unit::power_of_two, 4);
  CHECK(scale.ticks.front().text == "2^20");
  CHECK(scale.ticks.back().text == "2^30");
  CHECK(scale.place(std::exp2(24.0)) == Approx(0.5));
  const zt::Axis rates = zt::make_axis(90.0, 130000.0, zt::AxisScale::from_zero, zt::Unit::per_second, 3);
  CHECK(rates.low == 0.0);
  CHECK(rates.ticks.back().text == "100 k");
  // One value, zero, negative values for a logarithm, very large and very small ranges: low < high, and few ticks.
  for (const double value : {0.0, 1.0, -3.0, 1e-300, 1e300}) {
    for (const auto kind :
         {zt::AxisScale::linear, zt::AxisScale::from_zero, zt::AxisScale::log2, zt::AxisScale::log10}) {
      const zt::Axis axis = zt::make_axis(value, value, kind, zt::Unit::plain, 5);
      CAPTURE(value, static_cast<int>(kind));
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() < 12);
      CHECK(std::isfinite(axis.place(value)));
    }
  }
  const zt::Axis steps = zt::make_step_axis(1.0, 240.0, 5);
  CHECK(steps.place(1.0) == 0.0);
  CHECK(steps.place(240.0) == 1.0);
  CHECK(zt::make_step_axis(7.0, 7.0, 5).ticks.size() == 1);
}

TEST_CASE("points lie where their step and value put them; what is not finite is a gap") {
  zt::Axis x;
  x.low = 0.0;
  x.high = 10.0;
  zt::Axis y;
  y.low = 0.0;
  y.high = 4.0;
  CHECK(zt::path_of({{0.0, 4.0}, {5.0, 1.0}, {10.0, 0.0}}, x, y) == "M0 0 500 750 1000 1000");
  CHECK(zt::path_of({{0.0, 4.0}, {1.0, zt::not_recorded}, {2.0, 2.0}, {3.0, 2.0}}, x, y) == "M0 0h0M200 500 300 500");
  CHECK(zt::path_of({{5.0, 2.0}}, x, y) == "M500 500h0");
  CHECK(zt::path_of({{5.0, HUGE_VAL}}, x, y).empty());
  CHECK(zt::path_of({}, x, y).empty());
}

TEST_CASE("long lines are thinned to the smallest and the largest of a column, and keep their ends and gaps") {
  zt::PlotLine line = line_of_ten_thousand();
  line.points[6000].y = zt::not_recorded;
  const auto few = zt::thinned(line.points, 1.0, 10000.0, 100);
  CHECK(few.size() <= 203);
  CHECK(few.size() > 150);
  CHECK(few.front().x == 1.0);
  CHECK(few.back().x == 10000.0);
  for (std::size_t i = 1; i < few.size(); ++i) CHECK(few[i - 1].x < few[i].x);
  const auto has = [&](double value) {
    return std::any_of(few.begin(), few.end(), [&](const PlotPoint& point) { return point.y == value; });
  };
  CHECK(has(50.0));
  CHECK(has(-50.0));
  CHECK(std::count_if(few.begin(), few.end(), [](const PlotPoint& point) { return std::isnan(point.y); }) == 1);
  // Of every column the extremes, by a plain search.
  for (int column = 0; column < 100; ++column) {
    double smallest = HUGE_VAL;
    double largest = -HUGE_VAL;
    for (const PlotPoint& point : line.points) {
      if (std::min(99, static_cast<int>((point.x - 1.0) / 9999.0 * 100.0)) != column || std::isnan(point.y)) continue;
      smallest = std::min(smallest, point.y);
      largest = std::max(largest, point.y);
    }
    CAPTURE(column);
    CHECK(has(smallest));
    CHECK(has(largest));
  }
  const std::vector<PlotPoint> short_line(line.points.begin(), line.points.begin() + 200);
  CHECK(zt::thinned(short_line, 1.0, 200.0, 100).size() == 200);
  CHECK(zt::thinned_marks(line.points, 1.0, 10000.0, 60).size() == 60);
}

TEST_CASE("texts are escaped, and bytes that are no characters are replaced") {
  CHECK(zt::escaped("a < b & \"c\" > d") == "a &lt; b &amp; &quot;c&quot; &gt; d");
  CHECK(zt::escaped("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  const std::string replaced = "\xef\xbf\xbd";
  CHECK(zt::escaped("\xff") == replaced);
  CHECK(zt::escaped("\xc3") == replaced);                                // cut off
  CHECK(zt::escaped("\xc0\xaf") == replaced + replaced);                 // overlong
  CHECK(zt::escaped("\xed\xa0\x80") == replaced + replaced + replaced);  // a surrogate
  CHECK(zt::escaped(std::string("a\0b\x1b", 4)) == "a" + replaced + "b" + replaced);
}

TEST_CASE("names of runs and texts of configs cannot become markup") {
  const RunsFolder folder;
  const std::string config = R"({"training": {"sample_prompt": "</pre><script>alert(1)</script>", "x": "&nbsp;"}})";
  const std::string other = R"({"training": {"sample_prompt": "\"><img src=x>", "x": "&nbsp;"}})";
  const auto runs = zt::read_runs({folder.run("<b>bold&co</b>\"'", two_steps(), summary_of_two_ranks, config),
                                   folder.run("\xff\x01", two_steps(), summary_of_two_ranks, other)});
  const std::string page = zt::html_page(zt::make_contents(runs), "zerotrain <test>");
  CHECK(problems_of(page) == std::vector<std::string>{});
  CHECK_FALSE(contains(page, "<script"));
  CHECK_FALSE(contains(page, "<img"));
  CHECK(contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
  for (const char c : zt::text_report(zt::make_contents(runs)))
    CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}

TEST_CASE("the page of several runs is well-formed and says what the figures show") {
  const RunsFolder folder;
  std::string fp16 =
      R"({"kind": "train", "step": 1, "loss": 4.5, "grad_norm": null, "learning_rate": 0.001,)"
      R"( "loss_scale": 65536.0, "skipped": true, "skip_reason": "gradient_overflow", "step_seconds": 0.5,)"
      R"( "tokens_per_second": 1000.0})"
      "\n" +
      step_line(2, "4.0") + step_line(3, "null", R"(, "not_finite": "nan")") + evaluation_line(3, "3.9");
  const auto runs = zt::read_runs(
      {folder.run("stage0", two_steps(), summary_of_two_ranks, R"({"gradient_clipping": 1.0, "a": {"b": 1}})"),
       folder.run("stage1", two_steps(), summary_of_two_ranks, R"({"gradient_clipping": 1.0, "a": {"b": 2}})"),
       folder.run("fp16", fp16)});
  const std::string page = zt::html_page(zt::make_contents(runs), "zerotrain");
  CHECK(problems_of(page) == std::vector<std::string>{});
  for (const char* said :
       {"One curve: the losses of stage0 and stage1", "to the last bit", "skipped step: 1, first at step 1",
        "loss not finite: 1, first at step 3", "clipped to 1", "a.b", "what was planned, to the byte",
        "no summary.json", "model states by formula 10.0 kB", "as planned", "the formula says 1.0000"}) {
    INFO(said);
    CHECK(contains(page, said));
  }
  const PageReader reader(page);
  const auto figures = std::count_if(reader.elements.begin(), reader.elements.end(),
                                     [](const PageElement& element) { return element.name == "figure"; });
  CHECK(figures == 9);
}

TEST_CASE("runs of one step, and runs without one finite loss, have a page and a text, too") {
  const RunsFolder folder;
  for (const std::string& metrics :
       {step_line(1, "4.0"), step_line(5, "null", R"(, "not_finite": "inf")"),
        step_line(1, "null", R"(, "not_finite": "nan")") + step_line(2, "null", R"(, "not_finite": "nan")"),
        step_line(1, "1e308") + step_line(2, "-1e308"), step_line(1, "0.0") + step_line(2, "0.0"),
        std::string(R"({"kind": "train", "step": 9000000000000000000, "loss": 1.0, "learning_rate": -1e300})")}) {
    const auto runs = zt::read_runs({folder.run("a", metrics)});
    const std::string page = zt::html_page(zt::make_contents(runs), "zerotrain");
    CHECK(problems_of(page) == std::vector<std::string>{});
    CHECK_FALSE(contains(page, "nan%"));
    CHECK_FALSE(contains(page, "inf%"));
    CHECK(contains(zt::text_report(zt::make_contents(runs)), "Loss"));
  }
}

TEST_CASE("the page of eight runs of a hundred thousand steps stays under a megabyte") {
  const RunsFolder folder;
  std::vector<zt::RecordedRun> runs;
  for (int number = 0; number < 8; ++number) {
    runs.push_back(zt::read_run(folder.run("run" + std::to_string(number), two_steps(), summary_of_two_ranks)));
    runs.back().steps.clear();
    for (int step = 1; step <= 100000; ++step) {
      const double noise = std::sin(step * (1.7 + number));
      runs.back().steps.push_back({.step = step,
                                   .loss = 3.0 + noise,
                                   .grad_norm = 1.0 + 0.5 * noise,
                                   .learning_rate = 1e-3 * step,
                                   .loss_scale = std::exp2(10 + step % 7),
                                   .seconds = 0.1,
                                   .rate = 1000.0 + noise,
                                   .skipped = step % 3 == 0});
    }
  }
  const std::string page = zt::html_page(zt::make_contents(runs), "zerotrain");
  CHECK(page.size() < 1000000);
  CHECK(problems_of(page) == std::vector<std::string>{});
}

TEST_CASE("the text is in ASCII, no line longer than 80 columns, and its plots show the lines") {
  const RunsFolder folder;
  const std::string long_name =
      "a-name-of-a-run-that-is-so-long-that-it-does-not-fit-into-one-line-of-eighty-columns-at-all";
  const auto runs =
      zt::read_runs({folder.run("stage0", two_steps(), summary_of_two_ranks),
                     folder.run(long_name, two_steps() + evaluation_line(2, "3.5"), summary_of_two_ranks)});
  const std::string text = zt::text_report(zt::make_contents(runs));
  for (const std::string& line : lines_of(text)) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
  zt::LinePlot plot{.title = "Loss"};
  plot.lines = {{.run = 0, .name = "a", .points = {{1.0, 4.0}, {2.0, 2.0}}},
                {.run = 1, .name = "b", .points = {{1.0, 4.0}, {2.0, 3.0}}}};
  plot.marks = {{.run = 1, .points = {{2.0, 3.0}}}};
  plot.marks_name = "skipped step";
  const auto lines = zt::text_lines(plot);
  REQUIRE(lines.size() >= 17);
  CHECK(lines[0].substr(0, 13) == "       4.0 |#");  // both at step 1
  CHECK(lines[13].back() == 'a');
  CHECK(lines[7].back() != ' ');
  CHECK(contains(lines[14], "b |"));
  CHECK(lines[14].back() == 'x');
  CHECK(contains(lines.back(), "x skipped step"));

  zt::BarPlot bars{.title = "Memory", .unit = zt::Unit::bytes, .parts = {"p", "g"}, .level_name = "formula"};
  bars.groups = {{.run = 0, .name = "a", .bars = {{.name = "rank 0", .values = {1000.0, 3000.0}, .level = 2000.0}}}};
  const auto of_bars = zt::text_lines(bars);
  REQUIRE(of_bars.size() >= 3);
  CHECK(std::count(of_bars[1].begin(), of_bars[1].end(), '#') == 15);
  CHECK(contains(of_bars[1], "|"));
  CHECK(contains(of_bars[1], "4.00 kB"));
}

TEST_CASE("one large value of a config does not make a page large") {
  const RunsFolder folder;
  const auto config = [](char letter) {
    return R"({"model": {"freeze": [")" + std::string(2000000, letter) + R"("]}})";
  };
  const auto runs =
      zt::read_runs({folder.run("a", two_steps(), "", config('x')), folder.run("b", two_steps(), "", config('y'))});
  const std::string page = zt::html_page(zt::make_contents(runs), "zerotrain");
  CHECK(page.size() < 400000);
  CHECK(contains(page, "more bytes)"));
}
