#include "train/trace_file.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"

namespace zt {

namespace {

// Rows of a rank in the picture. Spans of one row lie within each other or apart.
enum class Row : std::uint8_t { passes, units, compute, gather, reduce, copy };
constexpr std::array<std::string_view, 6> row_names = {"steps and passes", "units",         "compute stream",
                                                       "gather stream",    "reduce stream", "copy stream"};

using Span = TraceRecorder::Span;

Row row_of(const Span& span) {
  if (span.kind != Span::Kind::activity)
    return static_cast<Row>(static_cast<int>(Row::compute) + static_cast<int>(span.stream));
  switch (span.activity) {
    case Activity::compute:
    case Activity::update:
    case Activity::free: return Row::units;
    case Activity::gather: return Row::gather;
    case Activity::reduce: return Row::reduce;
    default: return Row::passes;
  }
}

std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  return {text.data(), static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.3f", seconds * 1e6))};
}

std::string json_string(std::string_view text) { return nlohmann::ordered_json(text).dump(); }

std::string label_of(const Span& span, const Layout& layout) {
  const auto of_unit = [&] { return " " + layout.unit(static_cast<int>(span.number)).name; };
  switch (span.kind) {
    case Span::Kind::activity:
      if (is_of_unit(span.activity)) return std::string(span.name) + of_unit();
      return std::string(span.name) + " " + std::to_string(span.number);
    case Span::Kind::operation:
      if (span.shape[0] == 0) return std::string(span.name);
      return std::string(span.name) + " " + std::to_string(span.shape[0]) + " x " + std::to_string(span.shape[1]) +
             " x " + std::to_string(span.shape[2]);
    default: return std::string(span.name);
  }
}

std::string arguments_of(const Span& span, const Layout& layout, double seconds) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  if (span.kind != Span::Kind::activity) {
    values["for"] = zt::name_of(span.activity);
    if (is_of_unit(span.activity)) values["unit"] = layout.unit(static_cast<int>(span.number)).name;
  }
  if (span.bytes > 0) values[span.kind == Span::Kind::collective ? "bytes sent" : "bytes"] = span.bytes;
  if (span.flops > 0.0) {
    values["flops"] = span.flops;
    if (seconds > 0.0) values["flops per second"] = span.flops / seconds;
  }
  return json_text(values);
}

}  // namespace

TracedSteps traced_steps(const std::string& text) {
  const auto fail = [&]() -> std::int64_t {
    throw UserError("--trace " + text + ": name the steps to record, as 2-3 or 5, counted from 1");
  };
  const auto number = [&](std::string_view digits) {
    if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return fail();
    const std::int64_t value = std::stoll(std::string(digits));
    return value >= 1 ? value : fail();
  };
  const std::string_view all = text;
  const std::size_t dash = all.find('-');
  TracedSteps steps;
  steps.first = number(all.substr(0, dash));
  steps.last = dash == std::string_view::npos ? steps.first : number(all.substr(dash + 1));
  if (steps.last < steps.first) fail();
  return steps;
}

TraceRecord take_record(TraceRecorder& recorder, const Layout& layout, int rank) {
  const std::vector<TraceRecorder::Times> times = recorder.settle();
  const std::vector<Span>& spans = recorder.spans();
  constexpr std::array<std::string_view, 4> categories = {"operation", "copy", "collective", "activity"};
  TraceRecord record;
  const std::string pid = std::to_string(rank);
  record.events = R"({"ph":"M","pid":)" + pid + R"(,"name":"process_name","args":{"name":"rank )" + pid + "\"}}";
  record.events += ",\n" + std::string(R"({"ph":"M","pid":)") + pid +
                   R"(,"name":"process_sort_index","args":{"sort_index":)" + pid + "}}";
  for (std::size_t row = 0; row < row_names.size(); ++row) {
    const std::string tid = std::to_string(row);
    record.events += ",\n" + std::string(R"({"ph":"M","pid":)") + pid + ",\"tid\":" + tid +
                     R"(,"name":"thread_name","args":{"name":)" + json_string(row_names.at(row)) + "}}";
    record.events += ",\n" + std::string(R"({"ph":"M","pid":)") + pid + ",\"tid\":" + tid +
                     R"(,"name":"thread_sort_index","args":{"sort_index":)" + tid + "}}";
  }
  for (std::size_t index = 0; index < spans.size(); ++index) {
    const Span& span = spans[index];
    const double seconds = times[index].end - times[index].begin;
    const Row row = row_of(span);
    record.events += ",\n" + std::string(R"({"ph":"X","pid":)") + pid +
                     ",\"tid\":" + std::to_string(static_cast<int>(row)) +
                     ",\"ts\":" + microseconds(times[index].begin) + ",\"dur\":" + microseconds(seconds) +
                     ",\"name\":" + json_string(label_of(span, layout)) + R"(,"cat":")" +
                     std::string(categories.at(static_cast<std::size_t>(span.kind))) + R"(","args":)" +
                     arguments_of(span, layout, seconds) + "}";
  }
  for (const TraceRecorder::Moment& moment : recorder.log()) {
    const Span& span = spans[moment.span];
    record.log += (record.log.empty() ? "[" : ",[") +
                  microseconds(moment.begins ? times[moment.span].begin : times[moment.span].end) + ",\"" +
                  std::string(span.name) + "\"," + std::to_string(span.number) + (moment.begins ? ",1]" : ",0]");
  }
  if (recorder.left_out() > 0)
    record.log += (record.log.empty() ? "[" : ",[") + std::string("0,\"left out\",") +
                  std::to_string(recorder.left_out()) + ",0]";
  recorder.clear();
  return record;
}

std::string trace_text(const TracedRun& run, const Layout& layout, const std::vector<TraceRecord>& ranks) {
  nlohmann::ordered_json about = {{"format", 1},
                                  {"stage", run.stage},
                                  {"world_size", run.ranks},
                                  {"precision", run.precision},
                                  {"accumulation", run.accumulation},
                                  {"steps", {run.steps.first, run.steps.last}}};
  about["units"] = nlohmann::ordered_json::array();
  for (const UnitLayout& unit : layout.units()) {
    std::int64_t parameters = 0;
    for (const SegmentLayout& segment : unit.segments) parameters += segment.used;
    about["units"].push_back({{"name", unit.name}, {"parameters", parameters}, {"trains", unit.trains()}});
  }
  std::string text = "{\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n";
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) text += (rank > 0 ? ",\n" : "") + ranks[rank].events;
  text += "\n],\n\"zerotrain\":" + json_text(about) + ",\n\"log\":[";
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) text += (rank > 0 ? ",\n[" : "\n[") + ranks[rank].log + "]";
  return text + "\n]}\n";
}

std::string packed(const TraceRecord& record) { return record.events + '\0' + record.log; }

TraceRecord unpacked(const std::string& text) {
  const std::size_t end = text.find('\0');
  return {text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 1)};
}

}  // namespace zt
