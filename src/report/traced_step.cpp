#include "report/traced_step.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "report/recorded_run.h"

namespace zt {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uintmax_t largest_file = std::uintmax_t{1} << 30;
constexpr int most_ranks = 1 << 16;

// The file without its events, which are for other programs and most of it; null where it is no JSON.
Json without_events(std::ifstream& file) {
  const auto keep = [](int depth, Json::parse_event_t event, Json& value) {
    const bool is_their_key = event == Json::parse_event_t::key && depth == 1 && value == "traceEvents";
    return !is_their_key && depth < 8;
  };
  return Json::parse(file, keep, false);
}

std::optional<Activity> activity_named(const std::string& name) {
  for (int index = 0; index < activity_count; ++index) {
    if (name == name_of(static_cast<Activity>(index))) return static_cast<Activity>(index);
  }
  return std::nullopt;
}

bool is_of_unit(Activity activity) { return activity >= Activity::compute; }
bool is_pass(Activity activity) {
  return activity == Activity::forward || activity == Activity::backward || activity == Activity::finish;
}

std::optional<TracedMoment> moment_of(const Json& entry, int rank, std::size_t units) {
  if (!entry.is_array() || entry.size() != 4 || !entry[0].is_number() || !entry[1].is_string() ||
      !entry[2].is_number_integer() || !entry[3].is_number_integer())
    return std::nullopt;
  const auto activity = activity_named(entry[1].get<std::string>());
  if (!activity) return std::nullopt;
  TracedMoment moment{.microseconds = entry[0].get<double>(),
                      .rank = rank,
                      .activity = *activity,
                      .number = entry[2].get<std::int64_t>(),
                      .begins = entry[3].get<std::int64_t>() == 1};
  const bool known = moment.number >= 0 && static_cast<std::size_t>(moment.number) < units;
  if (is_of_unit(*activity) && !known) return std::nullopt;
  return moment;
}

// Gives each moment its progress: the k-th of P passes covers [k / P, (k + 1) / P], its moments evenly. What comes
// before the first pass has the progress 0.
void place(std::vector<TracedMoment>& moments) {
  std::vector<std::size_t> begins;  // of passes
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (is_pass(moments[i].activity) && moments[i].begins) begins.push_back(i);
  }
  for (std::size_t pass = 0; pass < begins.size(); ++pass) {
    const std::size_t end = pass + 1 < begins.size() ? begins[pass + 1] : moments.size();
    const auto count = static_cast<double>(end - begins[pass]);
    for (std::size_t i = begins[pass]; i < end; ++i)
      moments[i].progress = (static_cast<double>(pass) + static_cast<double>(i - begins[pass]) / count) /
                            static_cast<double>(begins.size());
  }
}

// The moments of a rank within its last whole step; empty: it has none.
std::vector<TracedMoment> last_step(const std::vector<TracedMoment>& all, std::int64_t& number) {
  std::size_t begin = all.size();
  std::size_t end = all.size();
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].activity != Activity::step) continue;
    if (!all[i].begins && end == all.size()) end = i;
    if (all[i].begins && end < all.size()) {
      begin = i;
      break;
    }
  }
  if (begin >= end) return {};
  number = all[begin].number;
  const double start = all[begin].microseconds;
  std::vector<TracedMoment> moments(all.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
                                    all.begin() + static_cast<std::ptrdiff_t>(end));
  for (TracedMoment& moment : moments) moment.microseconds -= start;
  place(moments);
  return moments;
}

std::optional<std::vector<TracedUnit>> units_of(const Json& about) {
  const Json* units = find_value(about, "units");
  if (units == nullptr || !units->is_array() || units->empty()) return std::nullopt;
  std::vector<TracedUnit> result;
  for (const Json& unit : *units) {
    const Json* trains = find_value(unit, "trains");
    result.push_back({find_text(unit, "name"), static_cast<std::int64_t>(find_number(unit, "parameters").value_or(0.0)),
                      trains == nullptr || !trains->is_boolean() || trains->get<bool>()});
  }
  return result;
}

std::optional<TracedStep> step_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const Json* about = find_value(json, "zerotrain");
  const Json* log = find_value(json, "log");
  if (about == nullptr || log == nullptr || !log->is_array() || log->empty() || log->size() > most_ranks)
    return std::nullopt;
  const auto units = units_of(*about);
  if (!units) return std::nullopt;
  TracedStep step;
  step.stage = static_cast<int>(std::clamp(find_number(*about, "stage").value_or(0.0), 0.0, 3.0));
  step.ranks = static_cast<int>(log->size());
  step.accumulation =
      static_cast<std::int64_t>(std::clamp(find_number(*about, "accumulation").value_or(1.0), 1.0, 1e9));
  step.units = *units;
  for (int rank = 0; rank < step.ranks; ++rank) {
    const Json& entries = (*log)[static_cast<std::size_t>(rank)];
    if (!entries.is_array()) return std::nullopt;
    std::vector<TracedMoment> all;
    for (const Json& entry : entries) {
      if (const auto moment = moment_of(entry, rank, step.units.size())) all.push_back(*moment);
    }
    std::int64_t number = 0;
    const std::vector<TracedMoment> moments = last_step(all, number);
    if (moments.empty() || (rank > 0 && number != step.step)) return std::nullopt;
    step.step = number;
    step.moments.insert(step.moments.end(), moments.begin(), moments.end());
  }
  // Of one rank the order is the one it was recorded in: begins and ends at the same microsecond keep their sense.
  std::stable_sort(step.moments.begin(), step.moments.end(),
                   [](const TracedMoment& one, const TracedMoment& other) { return one.progress < other.progress; });
  return step;
}

}  // namespace

std::optional<TracedStep> read_traced_step(const std::string& path, std::string& remark) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const auto unreadable = [&](const std::string& why) {
    remark = path + " " + why + ": who holds what is left out of this report.";
    return std::nullopt;
  };
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size > largest_file) return unreadable("is no file that a run writes, or larger than 1 GiB");
  std::ifstream file(path, std::ios::binary);
  std::optional<TracedStep> step = step_of(without_events(file));
  if (!step) return unreadable("is no trace of zerotrain with a whole step in it");
  return step;
}

}  // namespace zt
