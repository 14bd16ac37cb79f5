// train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks: any two give the third.
#include <algorithm>
#include <set>

#include "config/resolver.h"

namespace zt {
namespace {

constexpr const char* train_key = "train_batch_size";
constexpr const char* micro_key = "train_micro_batch_size_per_gpu";
constexpr const char* steps_key = "gradient_accumulation_steps";

std::string text(std::int64_t number) { return std::to_string(number); }

// "; the nearest that fit: 24 and 32"
std::string nearest_multiples(std::int64_t number, std::int64_t unit) {
  const std::int64_t below = number / unit * unit;
  if (below == 0) return "; the least that fits: " + text(unit);
  if (below > largest_batch - unit) return "; the nearest that fits: " + text(below);
  return "; the nearest that fit: " + text(below) + " and " + text(below + unit);
}

// Whether the product is within the largest batch, without computing it: it may be beyond 64 bits.
bool fits(std::int64_t a, std::int64_t b, std::int64_t ranks) { return a <= largest_batch / b / ranks; }

// "config.json and ds_config.json": the files that say nothing of what is missing.
std::string files_of(const ConfigTree& tree) {
  std::set<std::string> files;
  for (const auto& [path, origin] : tree.origins) {
    const std::size_t line = origin.text.rfind(':');
    if (line != std::string::npos) files.insert(origin.text.substr(0, line));
  }
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : " and ") + file;
  return text;
}

}  // namespace

bool Resolver::set_on_command_line(const std::string& path) const {
  const Origin* origin = tree_.origin_of(path);
  return given(path) && origin != nullptr && origin->text == "--set";
}

// The files' numbers were for the number of ranks that the run began with.
void Resolver::resolve_resumed_batch() {
  const ResumedBatch& resumed = *options_.resumed;
  if (resumed.train == 0) {
    const auto number = [&](const char* key) { return known({key}) ? get<std::int64_t>(key) : 0; };
    const std::int64_t on_one_rank = number(train_key) / std::max<std::int64_t>(1, number(steps_key));
    const std::int64_t micro = number(micro_key) != 0 ? number(micro_key) : std::max<std::int64_t>(1, on_one_rank);
    for (const char* key : {train_key, steps_key}) values_[key] = 1;
    values_[micro_key] = micro;
    return;
  }
  const auto told = [&](const char* key) {
    return set_on_command_line(key) && known({key}) ? get<std::int64_t>(key) : 0;
  };
  const std::int64_t train = told(train_key) != 0 ? told(train_key) : resumed.train;
  const std::int64_t micro = told(micro_key) != 0 ? told(micro_key) : resumed.micro;
  if (train % micro != 0) {
    problem(told(micro_key) != 0 ? micro_key : train_key, "the run goes on with train_batch_size " + text(train) +
                                                              " in micro-batches of " + text(micro) +
                                                              nearest_multiples(train, micro));
    return;
  }
  const std::int64_t micro_batches = train / micro;
  const std::int64_t least = (micro_batches + world_size_ - 1) / world_size_;
  if (told(steps_key) != 0 && told(steps_key) != least) {
    problem(steps_key, "found " + text(told(steps_key)) + ", but the run goes on with " + text(micro_batches) +
                           " micro-batches a step, on " + text(world_size_) +
                           (world_size_ == 1 ? " rank in " : " ranks in ") + text(least) +
                           " micro-steps: remove it, or set train_micro_batch_size_per_gpu");
    return;
  }
  if (micro_batches % world_size_ != 0) {
    const std::int64_t idle = least * world_size_ - micro_batches;
    notices_.push_back(text(micro_batches) + " micro-batches a step on " + text(world_size_) +
                       " ranks: in the last of " + text(least) + " micro-steps " + text(idle) +
                       (idle == 1 ? " rank has none and only takes" : " ranks have none and only take") +
                       " part in what the others gather and reduce");
  }
  values_[train_key] = train;
  values_[micro_key] = micro;
  values_[steps_key] = least;
}

void Resolver::resolve_batch() {
  for (const char* key : {train_key, micro_key, steps_key}) {
    if (checked_.wrong.contains(key)) return;
  }
  if (options_.resumed) return resolve_resumed_batch();
  const auto value = [&](const char* key) { return known({key}) ? get<std::int64_t>(key) : 0; };
  std::int64_t train = value(train_key);
  std::int64_t micro = value(micro_key);
  std::int64_t steps = value(steps_key);
  const std::string ranks = text(world_size_) + (world_size_ == 1 ? " rank" : " ranks");

  if (train == 0 && micro == 0) {
    const bool has_auto = holds_auto(train_key) || holds_auto(micro_key) || holds_auto(steps_key);
    const std::string place = where(steps != 0 ? steps_key : train_key);
    problems_.push_back({train_key, place.empty() ? files_of(tree_) : place,
                         std::string(has_auto ? "no number given (\"auto\" counts as absent)" : "missing") +
                             (steps != 0 ? "; gradient_accumulation_steps alone is not enough" : "") +
                             ": give train_batch_size (samples of a step over all ranks) or "
                             "train_micro_batch_size_per_gpu (of one rank in one pass)"});
    return;
  }
  if (train == 0 && steps == 0) steps = 1;
  const std::string limit = " is more than " + text(largest_batch) + " samples a step: lower one of them";
  if (micro != 0 && steps != 0 && !fits(micro, steps, world_size_)) {
    problem(micro_key, text(micro) + " x gradient_accumulation_steps " + text(steps) + " x " + ranks + limit);
    return;
  }
  if (train == 0) {
    train = micro * steps * world_size_;
  } else if (micro != 0 && steps != 0) {
    const std::int64_t product = micro * steps * world_size_;
    if (product != train) {
      std::string fix = "set train_batch_size to " + text(product);
      if (train % (micro * world_size_) == 0) {
        fix += ", or gradient_accumulation_steps to " + text(train / (micro * world_size_));
      } else if (train % (steps * world_size_) == 0) {
        fix += ", or train_micro_batch_size_per_gpu to " + text(train / (steps * world_size_));
      }
      if (train % (micro * steps) == 0) {
        const std::int64_t fitting = train / (micro * steps);
        fix += ", or run on " + text(fitting) + (fitting == 1 ? " rank" : " ranks");
      }
      problem(train_key, "found " + text(train) + ", but train_micro_batch_size_per_gpu " + text(micro) +
                             " x gradient_accumulation_steps " + text(steps) + " x " + ranks + " = " + text(product) +
                             ": " + fix);
      return;
    }
  } else {
    // The given one of the other two, or accumulation 1.
    const char* other_key = micro != 0 ? micro_key : steps_key;
    const std::int64_t other = micro != 0 ? micro : (steps != 0 ? steps : 1);
    if (!fits(other, 1, world_size_)) {
      problem(micro == 0 && steps == 0 ? train_key : other_key,
              (micro == 0 && steps == 0 ? "" : text(other) + " x ") + ranks + limit);
      return;
    }
    const std::int64_t unit = other * world_size_;
    if (train % unit != 0) {
      const std::string factors = micro == 0 && steps == 0
                                      ? ranks
                                      : std::string(other_key) + " " + text(other) + " x " + ranks + " = " + text(unit);
      problem(train_key, "found " + text(train) + ", not a multiple of " + factors + nearest_multiples(train, unit));
      return;
    }
    if (micro == 0) {
      steps = other;
      micro = train / unit;
    } else {
      steps = train / unit;
    }
  }
  values_[train_key] = train;
  values_[micro_key] = micro;
  values_[steps_key] = steps;
}

}  // namespace zt
