#include "report/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/errors.h"

namespace zt {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::uintmax_t largest_file = std::uintmax_t{64} << 20;  // of summary and config
constexpr std::size_t longest_line = std::size_t{1} << 20;         // of metrics.jsonl
constexpr int deepest_nesting = 64;

bool is_nested_too_deeply(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > deepest_nesting) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Json parse_object(const std::string& text) {
  if (is_nested_too_deeply(text)) return nullptr;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return nullptr;
  return json;
}

// A number, or null with what it was beside it ("not_finite"); no number at all: not recorded.
double recorded_number(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end()) return not_recorded;
  if (found->is_number()) return found->get<double>();
  return find_text(record, "not_finite") == "inf" ? std::numeric_limits<double>::infinity() : not_recorded;
}

// Replaces what is there of the same step. Steps come in ascending order where no line is lost.
template <typename Record>
void put(std::vector<Record>& records, const Record& record) {
  if (records.empty() || records.back().step < record.step) {
    records.push_back(record);
    return;
  }
  const auto at = std::lower_bound(records.begin(), records.end(), record.step,
                                   [](const Record& one, std::int64_t step) { return one.step < step; });
  if (at->step == record.step) {
    *at = record;
  } else {
    records.insert(at, record);
  }
}

// What was recorded behind `step` belongs to another branch than the run's end, which goes on from there.
template <typename Record>
void drop_behind(std::vector<Record>& records, std::int64_t step) {
  const auto first = std::upper_bound(records.begin(), records.end(), step,
                                      [](std::int64_t at, const Record& record) { return at < record.step; });
  records.erase(first, records.end());
}

// False: no record that a run writes.
bool take_record(const Json& record, RecordedRun& run) {
  const auto number = record.find("step");
  const std::string kind = find_text(record, "kind");
  if (kind.empty() || number == record.end() || !number->is_number_integer()) return false;
  const auto step = number->get<std::int64_t>();
  if (kind == "train") {
    if (!record.contains("loss")) return false;
    RecordedStep read{.step = step,
                      .loss = recorded_number(record, "loss"),
                      .grad_norm = recorded_number(record, "grad_norm"),
                      .learning_rate = recorded_number(record, "learning_rate"),
                      .loss_scale = recorded_number(record, "loss_scale"),
                      .seconds = recorded_number(record, "step_seconds")};
    const bool tokens = record.contains("tokens_per_second");
    run.counts_tokens = run.counts_tokens || tokens;
    read.rate = recorded_number(record, tokens ? "tokens_per_second" : "samples_per_second");
    const auto skipped = record.find("skipped");
    read.skipped = skipped != record.end() && skipped->is_boolean() && skipped->get<bool>();
    put(run.steps, read);
  } else if (kind == "eval") {
    put(run.evaluations, {.step = step, .loss = recorded_number(record, "loss")});
  } else if (kind == "resume") {
    drop_behind(run.steps, step);
    drop_behind(run.evaluations, step);
    std::erase_if(run.resumes, [&](std::int64_t earlier) { return earlier > step; });
    run.resumes.push_back(step);
  }
  return true;
}

bool take_line(const std::string& line, RecordedRun& run) {
  if (const Json record = parse_object(line); record.is_object()) return take_record(record, run);
  // A run that was killed while it wrote a line and then went on has the next line behind the beginning of that one.
  const std::size_t next = line.rfind("{\"kind\"");
  if (next == std::string::npos || next == 0) return false;
  if (const Json record = parse_object(line.substr(next)); record.is_object()) take_record(record, run);
  return false;
}

void read_metrics(const fs::path& path, RecordedRun& run) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError("cannot read " + path.string());
  std::string line(longest_line, '\0');
  std::int64_t lines = 0;
  bool last_readable = true;
  while (file.getline(line.data(), static_cast<std::streamsize>(line.size())) || file.gcount() > 0) {
    ++lines;
    const bool too_long = file.fail() && !file.eof();
    if (too_long) {
      throw UserError(path.string() + ":" + std::to_string(lines) +
                      " is longer than any line of metrics.jsonl: " + "this is no file of a run");
    }
    auto length = static_cast<std::size_t>(file.gcount());
    if (!file.eof()) --length;  // the newline counts
    if (length == 0) continue;
    last_readable = take_line(line.substr(0, length), run);
    if (!last_readable) ++run.unreadable_lines;
  }
  if (!last_readable) {
    run.last_line_cut = true;
    --run.unreadable_lines;
  }
  if (!run.steps.empty()) return;
  if (lines > 0 && run.evaluations.empty() && run.resumes.empty())
    throw UserError(path.string() + " holds no record of a step: is it the metrics.jsonl of a run?");
  throw UserError(path.string() + " holds no step yet: there is nothing to report of " + run.path);
}

// An object; null where there is none, with a remark if there is a file.
Json read_object(const fs::path& path, RecordedRun& run) {
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  const auto unreadable = [&](const std::string& why) {
    run.remarks.push_back(path.filename().string() + " of " + run.path + " " + why +
                          " and was left out of this report.");
    return Json(nullptr);
  };
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size > largest_file) return unreadable("is no file that a run writes");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  Json json = parse_object(text.str());
  if (json.is_null()) return unreadable("is not a JSON object");
  return json;
}

std::string last_parts(const fs::path& path, int count) {
  fs::path result;
  fs::path rest = path;
  for (int i = 0; i < count && rest.has_filename(); ++i, rest = rest.parent_path())
    result = i == 0 ? rest.filename() : rest.filename() / result;
  return result.empty() ? path.string() : result.string();
}

}  // namespace

const Json* find_value(const Json& json, std::string_view path) {
  const Json* value = &json;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    if (!value->is_object()) return nullptr;
    const auto found = value->find(std::string(path.substr(0, dot)));
    if (found == value->end()) return nullptr;
    value = &*found;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return value;
}

std::optional<double> find_number(const Json& json, std::string_view path) {
  const Json* value = find_value(json, path);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::string find_text(const Json& json, std::string_view path) {
  const Json* value = find_value(json, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

RecordedRun read_run(const std::string& path) {
  static const std::vector<std::string> files = {"metrics.jsonl", "summary.json", "config.resolved.json", "train.log"};
  std::error_code error;
  RecordedRun run;
  if (!fs::exists(path, error))
    throw UserError("there is no run " + path + ": a run is the directory that it wrote to");
  fs::path directory = path;
  if (!fs::is_directory(path, error)) {
    if (std::find(files.begin(), files.end(), directory.filename().string()) == files.end())
      throw UserError(path + " is a file and no run: give the directory that the run wrote to (training.output_dir)");
    directory = directory.has_parent_path() ? directory.parent_path() : fs::path(".");
  }
  run.path = directory.string();
  const fs::path place = fs::absolute(directory).lexically_normal();
  run.name = last_parts(place.has_filename() ? place : place.parent_path(), 1);
  if (!fs::exists(directory / "metrics.jsonl", error)) {
    throw UserError(
        run.path + " is no run: it has no metrics.jsonl" +
        (fs::exists(directory / "manifest.json", error) ? " (it is a checkpoint; the run is two levels up)" : ""));
  }
  read_metrics(directory / "metrics.jsonl", run);
  run.summary = read_object(directory / "summary.json", run);
  run.config = read_object(directory / "config.resolved.json", run);
  if (run.unreadable_lines > 0) {
    run.remarks.push_back(std::to_string(run.unreadable_lines) + " line(s) of metrics.jsonl of " + run.path +
                          " cannot be read and were left out.");
  }
  if (run.last_line_cut) run.remarks.push_back("The last line of metrics.jsonl of " + run.path + " is cut off.");
  if (run.summary.is_null() && run.remarks.empty()) {
    run.remarks.push_back(run.path +
                          " has no summary.json: the run is going on, or it was killed. What only the "
                          "summary tells (memory, communication, times) is missing.");
  }
  std::string remark;
  run.traced = read_traced_step((directory / "trace.json").string(), remark);
  if (!remark.empty()) run.remarks.push_back(remark);
  return run;
}

std::vector<RecordedRun> read_runs(const std::vector<std::string>& paths) {
  std::vector<RecordedRun> runs;
  std::vector<fs::path> places;
  for (const std::string& path : paths) {
    runs.push_back(read_run(path));
    std::error_code error;
    fs::path place = fs::weakly_canonical(runs.back().path, error);
    if (error) place = runs.back().path;
    if (!place.has_filename()) place = place.parent_path();
    const auto same = std::find(places.begin(), places.end(), place);
    if (same != places.end())
      throw UserError(path + " is the same run as " + runs[static_cast<std::size_t>(same - places.begin())].path);
    places.push_back(place);
  }
  std::size_t longest = 0;
  for (const fs::path& place : places)
    longest = std::max(longest, static_cast<std::size_t>(std::distance(place.begin(), place.end())));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (int parts = 1; parts <= static_cast<int>(longest); ++parts) {
      runs[i].name = last_parts(places[i], parts);
      const auto alike = std::count_if(places.begin(), places.end(),
                                       [&](const fs::path& other) { return last_parts(other, parts) == runs[i].name; });
      if (alike == 1) break;
    }
  }
  return runs;
}

}  // namespace zt
