// Recording a step changes none of its bits, and says what it did: counts are those of the plan.
#include "train/trace.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "catch_compat.h"
#include "comm/threads.h"
#include "communicator_checks.h"
#include "core/errors.h"
#include "report/traced_step.h"
#include "run_program.h"
#include "train/trace_file.h"

namespace zt {
namespace {

TEST_CASE("steps to trace are named as 5 or 2-3") {
  CHECK(traced_steps("5").first == 5);
  CHECK(traced_steps("5").last == 5);
  CHECK(traced_steps("2-13").first == 2);
  CHECK(traced_steps("2-13").last == 13);
  for (const char* wrong : {"0", "-", "3-2", "a", "1-", "-4", "1-2-3", " 1", "99999999999999999999", "2,3"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(traced_steps(wrong), UserError);
  }
}

class TraceFile {
 public:
  std::string write(const std::string& text) const {
    const std::string path = (folder_.path() / "trace.json").string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  test::TemporaryDirectory folder_;
};

std::string trace_of(const std::string& log) {
  return R"({"traceEvents":[{"ph":"X","args":{"deep":[[[[[[[[1]]]]]]]]}}],"zerotrain":{"stage":3,"accumulation":1,)"
         R"("units":[{"name":"a","parameters":3,"trains":true},{"name":"b","parameters":4,"trains":false}]},"log":[)" +
         log + "]}";
}

TEST_CASE("the last whole step of a trace is read, with times since it began and its passes in equal shares") {
  const TraceFile file;
  std::string remark;
  const auto step = read_traced_step(
      file.write(trace_of(
          R"([[10,"step",4,1],[20,"step",4,0],[30,"step",5,1],[31,"forward",0,1],[32,"compute",1,1],[33,"compute",1,0],)"
          R"([34,"forward",0,0],[35,"finish",5,1],[36,"finish",5,0],[40,"step",5,0],[50,"step",6,1]])")),
      remark);
  REQUIRE(step);
  CHECK(remark.empty());
  CHECK(step->step == 5);
  CHECK(step->stage == 3);
  CHECK(step->ranks == 1);
  REQUIRE(step->units.size() == 2);
  CHECK(step->units[1].name == "b");
  CHECK_FALSE(step->units[1].trains);
  REQUIRE(step->moments.size() == 6);
  CHECK(step->moments[0].microseconds == 1.0);
  CHECK(step->moments[0].progress == 0.0);
  CHECK(step->moments[1].activity == Activity::compute);
  CHECK(step->moments[1].number == 1);
  CHECK(step->moments[2].progress == 0.25);
  CHECK(step->moments[4].progress == 0.5);
  CHECK_FALSE(step->moments[5].begins);
}

TEST_CASE("what is no trace is left out with a remark, whatever it holds") {
  const TraceFile file;
  std::string remark;
  CHECK_FALSE(read_traced_step("/nowhere/trace.json", remark));
  CHECK(remark.empty());
  const std::string whole = R"([[1,"step",4,1],[2,"step",4,0]])";
  for (const std::string& text :
       {std::string(), std::string("["), std::string("[]"), std::string("{}"), std::string(R"({"log":[]})"),
        trace_of(""), trace_of("[]"), trace_of("3"), trace_of(R"([[1,"step",4,1]])"),
        trace_of(R"([[2,"step",4,0],[1,"step",4,1]])"), trace_of(whole + R"(,[[1,"step",5,1],[2,"step",5,0]])"),
        trace_of(whole + ",{}"), std::string(100'000, '[')}) {
    CAPTURE(text.substr(0, 200));
    remark.clear();
    CHECK_FALSE(read_traced_step(file.write(text), remark));
    CHECK(remark.find("trace.json") != std::string::npos);
  }
}

TEST_CASE("moments of units that the model does not have, and of unknown kinds, are passed over") {
  const TraceFile file;
  std::string remark;
  const auto step = read_traced_step(
      file.write(trace_of(
          R"([[1,"step",4,1],[2,"gather",7,1],[2,"gather",-1,1],[3,"dance",0,1],["x","gather",0,1],[3],[4,"gather",0,1],[9,"step",4,0]])")),
      remark);
  REQUIRE(step);
  REQUIRE(step->moments.size() == 1);
  CHECK(step->moments[0].microseconds == 3.0);
}

TEST_CASE("recorded collectives do what they do without, and tell the bytes that are counted") {
  for (const int ranks : {1, 3}) {
    CAPTURE(ranks);
    REQUIRE_NOTHROW(run_ranks_as_threads(ranks, 0, [](Communicator& c) {
      test::PlainDevice device;
      Trace trace(device, c);
      trace.start();
      test::check_communicator(trace.communicator(), trace.device(), {1, 64});
      trace.stop();
      std::map<std::string, std::int64_t> bytes, calls;
      for (const TraceRecorder::Span& span : trace.recorder().spans()) {
        bytes[std::string(span.name)] += span.bytes;
        ++calls[std::string(span.name)];
      }
      for (const CollectiveKind kind :
           {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
        const std::string name(name_of(kind));
        const CollectiveCount& count = c.counts().training.at(static_cast<std::size_t>(kind));
        test::require(calls[name] == count.calls && count.calls > 0, "calls of " + name);
        test::require(bytes[name] == count.bytes && (count.bytes > 0) == (c.size() > 1), "bytes of " + name);
      }
    }));
  }
}

}  // namespace
}  // namespace zt
