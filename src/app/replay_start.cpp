#include "app/replay_start.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/output_directory.h"
#include "checkpoint/directory.h"
#include "checkpoint/manifest.h"
#include "checkpoint/native.h"
#include "config/difference.h"
#include "core/errors.h"
#include "train/metrics_file.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

// The steps from one start of the run to the next.
struct Part {
  std::int64_t start = 0;      // steps attempted before it
  std::string checkpoint;      // that it went on from, as recorded; empty: the beginning
  std::int64_t last_step = 0;  // of its records; 0: none
};

// Keys that leave the curve what it is.
bool leaves_curve_as_it_is(const std::string& path) {
  static constexpr std::array names = std::to_array<std::string_view>({"device",
                                                                       "zero_optimization",
                                                                       "gradient_accumulation_steps",
                                                                       "steps_per_print",
                                                                       "wall_clock_breakdown",
                                                                       "activation_checkpointing",
                                                                       "training.max_steps",
                                                                       "training.max_epochs",
                                                                       "training.eval_interval",
                                                                       "training.eval_steps",
                                                                       "training.early_stopping",
                                                                       "training.checkpoint_interval",
                                                                       "training.checkpoints_to_keep",
                                                                       "training.checkpoint_in_background",
                                                                       "training.digest_interval",
                                                                       "training.output_dir",
                                                                       "training.sample_prompt",
                                                                       "training.report_delay",
                                                                       "memory_breakdown",
                                                                       "dump_state",
                                                                       "csv_monitor",
                                                                       "tensorboard",
                                                                       "flops_profiler",
                                                                       "comms_logger"});
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return path == name || (path.size() > name.size() && path.starts_with(name) && path[name.size()] == '.');
  });
}

bool same_curve(const Json& a, const Json& b) {
  const auto differences = config_differences(a, b);
  return std::all_of(differences.begin(), differences.end(),
                     [](const ConfigDifference& difference) { return leaves_curve_as_it_is(difference.path); });
}

std::string steps_text(std::int64_t first, std::int64_t last) {
  if (first == last) return "step " + std::to_string(first);
  return "steps " + std::to_string(first) + " to " + std::to_string(last);
}

class History {
 public:
  History(const std::string& run, std::int64_t step);

  ReplayStart find() const;

 private:
  void add_record(Json&& record);
  void require_step() const;
  // The part that wrote a checkpoint which is there: checkpoints of later steps than a part starts from are set aside
  // when it starts, so it is the last part that starts before the checkpoint's step.
  std::size_t writer_of(std::int64_t checkpoint) const { return last_part_before(checkpoint, parts_.size()); }
  std::size_t last_part_before(std::int64_t step, std::size_t parts) const;
  std::string own(std::int64_t checkpoint) const { return (checkpoints_ / checkpoint_name(checkpoint)).string(); }
  bool belongs_to_run(const Part& part) const;
  std::string origin_of(std::size_t part) const;  // empty: it is not there any more
  std::optional<Manifest> manifest_written_by(std::size_t part) const;
  std::optional<Json> config_of(std::size_t part) const;
  std::optional<std::int64_t> newest_before(std::size_t part, std::int64_t step) const;
  std::string left_steps() const;

  std::string run_;
  std::int64_t step_;
  fs::path checkpoints_;
  Json config_;                         // the last one; no object: none
  std::vector<std::int64_t> finished_;  // checkpoints that are there
  std::vector<Part> parts_;
  std::size_t part_of_step_ = 0;
  Json record_ = nullptr;
  std::int64_t last_step_ = 0;
  std::string notice_;
};

History::History(const std::string& run, std::int64_t step)
    : run_(run),
      step_(step),
      checkpoints_(fs::path(run) / "checkpoints"),
      config_(last_config_of(run)),
      finished_(list_checkpoints(checkpoints_.string()).finished),
      parts_(1) {
  bool is_first = true;
  notice_ = read_metrics((fs::path(run) / "metrics.jsonl").string(), [&](Json&& record) {
    // A run in another directory than the one it goes on from begins with that.
    if (std::exchange(is_first, false) && record.value("kind", Json()) == "resume") parts_.clear();
    add_record(std::move(record));
  });
  if (parts_.empty()) parts_.emplace_back();
  if (!finished_.empty()) last_step_ = std::max(last_step_, finished_.back());
  if (last_step_ == 0) {
    const std::string config = (fs::path(run) / "config.resolved.json").string();
    throw UserError(config_.is_object() ? run + " has no step yet: nothing can be replayed"
                                        : config + " is missing or damaged: name the directory of a run");
  }
  require_step();
  if (record_.is_null()) part_of_step_ = last_part_before(step_, parts_.size());
}

void History::add_record(Json&& record) {
  const Json kind = record.value("kind", Json());
  const Json number = record.value("step", Json());
  if (!number.is_number_integer()) return;
  const auto step = number.get<std::int64_t>();
  if (kind == "resume") {
    const Json checkpoint = record.value("checkpoint", Json());
    parts_.push_back({step, checkpoint.is_string() ? checkpoint.get<std::string>() : std::string(), 0});
  } else if (kind == "train" && !parts_.empty()) {
    parts_.back().last_step = std::max(parts_.back().last_step, step);
    last_step_ = std::max(last_step_, step);
    if (step != step_) return;
    part_of_step_ = parts_.size() - 1;
    record_ = std::move(record);
  }
}

void History::require_step() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Part& part : parts_) first = std::min(first, part.start);
  if (step_ > last_step_)
    throw UserError("--step " + std::to_string(step_) + ": the last step of " + run_ + " is " +
                    std::to_string(last_step_));
  if (step_ <= first)
    throw UserError("--step " + std::to_string(step_) + ": " + run_ + " begins with step " + std::to_string(first + 1) +
                    ", as it goes on from " + parts_.front().checkpoint +
                    ": replay the steps before in the run that this is from");
}

std::size_t History::last_part_before(std::int64_t step, std::size_t parts) const {
  for (std::size_t part = parts; part > 0; --part) {
    if (parts_[part - 1].start < step) return part - 1;
  }
  return 0;
}

// The run may have been moved since: its config says where it was.
bool History::belongs_to_run(const Part& part) const {
  const fs::path folder = fs::path(part.checkpoint).parent_path();
  std::error_code error;
  if (fs::weakly_canonical(folder, error) == fs::weakly_canonical(checkpoints_, error)) return true;
  const Json::json_pointer key("/training/output_dir");
  return config_.is_object() && config_.contains(key) && config_.at(key).is_string() &&
         folder == fs::path(config_.at(key).get<std::string>()) / "checkpoints";
}

std::string History::origin_of(std::size_t part) const {
  const Part& of = parts_[part];
  std::error_code error;
  if (!belongs_to_run(of)) return fs::exists(fs::path(of.checkpoint) / manifest_name, error) ? of.checkpoint : "";
  const bool is_there = std::binary_search(finished_.begin(), finished_.end(), of.start);
  // This part or a later one may have come by this step again, and written another checkpoint under the name.
  const bool is_another = std::any_of(parts_.begin() + static_cast<std::ptrdiff_t>(part), parts_.end(),
                                      [&](const Part& later) { return later.start < of.start; });
  return is_there && !is_another ? own(of.start) : "";
}

std::optional<Manifest> History::manifest_written_by(std::size_t part) const {
  for (auto checkpoint = finished_.rbegin(); checkpoint != finished_.rend(); ++checkpoint) {
    if (*checkpoint <= parts_[part].start || writer_of(*checkpoint) != part) continue;
    try {
      return NativeCheckpoint(own(*checkpoint)).manifest();
    } catch (const RunError&) {  // damaged: another one may tell
    }
  }
  return std::nullopt;
}

std::optional<Json> History::config_of(std::size_t part) const {
  if (part + 1 == parts_.size() && config_.is_object()) return config_;
  if (const auto manifest = manifest_written_by(part)) return manifest->config;
  return std::nullopt;
}

std::optional<std::int64_t> History::newest_before(std::size_t part, std::int64_t step) const {
  std::optional<std::int64_t> found;
  for (const std::int64_t checkpoint : finished_) {
    if (checkpoint < step && checkpoint > parts_[part].start && writer_of(checkpoint) == part) found = checkpoint;
  }
  return found;
}

std::string History::left_steps() const {
  std::string text;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    std::int64_t last = parts_[part].last_step;
    for (std::size_t later = part + 1; later < parts_.size(); ++later) last = std::min(last, parts_[later].start);
    std::int64_t first = parts_[part].start + 1;
    const bool has_origin = parts_[part].checkpoint.empty() || !origin_of(part).empty();
    if (!config_of(part)) continue;
    if (!has_origin) {
      first = last + 1;
      for (const std::int64_t checkpoint : finished_) {
        if (checkpoint > parts_[part].start && writer_of(checkpoint) == part) first = std::min(first, checkpoint + 1);
      }
    }
    if (first <= last) text += (text.empty() ? "" : ", ") + steps_text(first, last);
  }
  return text.empty() ? "no step of this run can be replayed" : text + " can be replayed";
}

ReplayStart History::find() const {
  ReplayStart start;
  start.record = record_;
  start.notice = notice_;
  start.else_possible = left_steps();
  const auto refuse = [&](const std::string& why) {
    throw UserError("step " + std::to_string(step_) + " of " + run_ + " cannot be replayed: " + why + "; " +
                    start.else_possible);
  };
  std::optional<Json> config = config_of(part_of_step_);
  start.config_is_known = config.has_value();
  for (std::size_t later = part_of_step_ + 1; later < parts_.size() && !config; ++later) config = config_of(later);
  if (const auto manifest = manifest_written_by(part_of_step_); manifest && manifest->data_samples > 0)
    start.samples = manifest->data_samples;

  std::size_t part = part_of_step_;
  for (std::int64_t before = step_;;) {
    if (const auto checkpoint = newest_before(part, before)) {
      start.checkpoint = own(*checkpoint);
      break;
    }
    const Part& from = parts_[part];
    if (from.checkpoint.empty()) break;
    start.checkpoint = origin_of(part);
    if (!start.checkpoint.empty()) {
      if (const std::int64_t now = NativeCheckpoint(start.checkpoint).manifest().step; now != from.start)
        refuse(start.checkpoint + ", from which it went on, holds another step now, " + std::to_string(now));
      break;
    }
    const std::string gone = from.checkpoint + ", from which " +
                             steps_text(from.start + 1, std::max(from.start + 1, from.last_step)) +
                             " went on, is not there any more";
    if (part == 0 || !belongs_to_run(from)) refuse(gone);
    // Checkpoints change no number, so the steps before lead to the same state.
    const std::size_t earlier = last_part_before(from.start, part);
    const std::optional<Json> of_earlier = config_of(earlier);
    if (!of_earlier) {
      start.config_is_known = false;
    } else if (config && !same_curve(*of_earlier, *config)) {
      refuse(gone + ", and the steps before ran with other settings");
    }
    before = from.start + 1;
    part = earlier;
  }
  if (!start.checkpoint.empty()) {
    const Manifest manifest = NativeCheckpoint(start.checkpoint).manifest();
    if (manifest.data_samples > 0) start.samples_before = manifest.data_samples;
    if (!config) config = manifest.config;
  }
  if (!config) {
    throw UserError((fs::path(run_) / "config.resolved.json").string() +
                    " is missing or damaged: name the directory of a run");
  }
  start.config = std::move(*config);
  return start;
}

}  // namespace

ReplayStart find_replay_start(const std::string& run, std::int64_t step) { return History(run, step).find(); }

}  // namespace zt
