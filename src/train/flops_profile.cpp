#include "train/flops_profile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "comm/agree.h"
#include "core/errors.h"
#include "core/files.h"
#include "core/json.h"
#include "train/estimate_report.h"
#include "train/words.h"

namespace zt {

namespace {

struct Sum {
  double flops = 0.0, product_seconds = 0.0, seconds = 0.0;
  void add(const TimedSpan& operation) {
    flops += operation.span.flops;
    if (operation.span.flops > 0.0) product_seconds += operation.seconds;
    seconds += operation.seconds;
  }
};

std::string rate_of(const Sum& sum) {
  return sum.product_seconds > 0.0 ? count_in_words(sum.flops / sum.product_seconds) + "flop/s" : "-";
}

std::string row(const std::string& name, const std::vector<std::string>& cells) {
  std::string line = "  " + name + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ');
  for (const std::string& cell : cells) line += std::string(cell.size() < 12 ? 12 - cell.size() : 1, ' ') + cell;
  return line;
}

}  // namespace

std::vector<std::string> profile_lines(const std::vector<TimedSpan>& operations, const std::vector<std::string>& units,
                                       const FlopsProfilerSettings& settings, std::int64_t step) {
  std::map<Activity, Sum> passes;
  std::vector<std::array<Sum, 2>> of_unit(units.size());  // forward, backward
  std::vector<double> update(units.size()), collectives(units.size());
  std::map<std::string_view, Sum> kinds;
  Sum all;
  for (const TimedSpan& operation : operations) {
    const TraceRecorder::Span& span = operation.span;
    const bool has_unit = is_of_unit(span.activity) && span.number < static_cast<std::int64_t>(units.size());
    const auto unit = static_cast<std::size_t>(has_unit ? span.number : 0);
    if (span.kind == TraceRecorder::Span::Kind::collective) {
      if (has_unit) collectives[unit] += operation.seconds;
      kinds[span.name].add(operation);
      continue;
    }
    // What a collective runs on the device lies within its own time.
    if (span.activity == Activity::gather || span.activity == Activity::reduce) continue;
    all.add(operation);
    passes[span.pass].add(operation);
    kinds[span.name].add(operation);
    if (!has_unit) continue;
    if (span.activity == Activity::update) update[unit] += operation.seconds;
    if (span.activity == Activity::compute) of_unit[unit].at(span.pass == Activity::backward ? 1 : 0).add(operation);
  }
  std::vector<std::string> lines;
  lines.push_back("flops profile of step " + std::to_string(step) + " on rank 0: " + count_in_words(all.flops) +
                  "flop in products, " + rate_of(all) + " while they run, " + short_seconds(all.seconds) +
                  " in operations");
  lines.push_back(row("pass", {"flop", "products", "rate", "all"}));
  for (const Activity pass : {Activity::forward, Activity::backward, Activity::finish}) {
    const Sum& sum = passes[pass];
    lines.push_back(row(std::string(name_of(pass)), {count_in_words(sum.flops), short_seconds(sum.product_seconds),
                                                     rate_of(sum), short_seconds(sum.seconds)}));
  }
  std::vector<std::size_t> order(units.size());
  for (std::size_t unit = 0; unit < order.size(); ++unit) order[unit] = unit;
  const auto seconds_of = [&](std::size_t unit) {
    return of_unit[unit][0].seconds + of_unit[unit][1].seconds + update[unit] + collectives[unit];
  };
  if (!settings.detailed) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t one, std::size_t other) { return seconds_of(one) > seconds_of(other); });
    order.resize(std::min(order.size(), static_cast<std::size_t>(settings.top_modules)));
  }
  lines.push_back(row("unit", {"flop", "forward", "backward", "update", "collectives"}));
  for (const std::size_t unit : order) {
    const auto& [forward, backward] = of_unit[unit];
    lines.push_back(row(
        units[unit], {count_in_words(forward.flops + backward.flops), short_seconds(forward.seconds),
                      short_seconds(backward.seconds), short_seconds(update[unit]), short_seconds(collectives[unit])}));
  }
  std::vector<std::pair<std::string_view, Sum>> by_time(kinds.begin(), kinds.end());
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const auto& one, const auto& other) { return one.second.seconds > other.second.seconds; });
  lines.push_back(row("operation", {"seconds", "rate"}));
  for (const auto& [name, sum] : by_time)
    lines.push_back(row(std::string(name), {short_seconds(sum.seconds), rate_of(sum)}));
  return lines;
}

FlopsProfilerSettings flops_profiler_settings(const nlohmann::ordered_json& config) {
  const auto& section = config.at("flops_profiler");
  const auto& file = section.at("output_file");
  return {.enabled = section.at("enabled").get<bool>(),
          .profile_step = section.at("profile_step").get<std::int64_t>(),
          .detailed = section.at("detailed").get<bool>(),
          .top_modules = section.at("top_modules").get<std::int64_t>(),
          .output_file = file.is_null() ? "" : file.get<std::string>()};
}

void check_profile_output(const FlopsProfilerSettings& settings) {
  if (!settings.enabled || settings.output_file.empty()) return;
  const std::filesystem::path file = settings.output_file;
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError("flops_profiler.output_file: " + settings.output_file + " is a directory; name a file in it");
  if (!std::filesystem::is_directory(file.parent_path(), error))
    throw UserError("flops_profiler.output_file: there is no directory " + file.parent_path().string());
}

void FlopsProfile::before_step(const Session& session) {
  const std::int64_t step = session.steps().attempted + 1;
  if (step != settings_.profile_step) return;
  trace_.start();
  trace_.device().begin_activity(Activity::step, step);
}

std::vector<std::string> FlopsProfile::after_step(Session& session) {
  std::vector<std::string> lines;
  if (!trace_.recording()) return lines;
  trace_.stop();
  session.wait_for_device();
  std::vector<std::string> units;
  for (const UnitLayout& unit : session.layout().units()) units.push_back(unit.name);
  std::vector<TimedSpan> operations;
  const std::vector<TraceRecorder::Times> times = trace_.recorder().settle();
  for (std::size_t index = 0; index < times.size(); ++index) {
    const TraceRecorder::Span& span = trace_.recorder().spans()[index];
    if (span.kind != TraceRecorder::Span::Kind::activity)
      operations.push_back({span, times[index].end - times[index].begin});
  }
  trace_.recorder().clear();
  is_done_ = true;
  if (session.communicator().rank() == 0) lines = profile_lines(operations, units, settings_, settings_.profile_step);
  if (settings_.output_file.empty()) return lines;
  all_or_none<RunError>(session.communicator(), [&] {
    if (lines.empty()) return;
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_file_atomically(settings_.output_file, text);
  });
  if (!lines.empty())
    lines = {"flops profile of step " + std::to_string(settings_.profile_step) + ": " + settings_.output_file};
  return lines;
}

}  // namespace zt
