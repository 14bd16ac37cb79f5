#include "report/equal_curves.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "train/words.h"

namespace zt {

namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string number_word(std::size_t count) {
  static constexpr std::array<const char*, 11> words = {"no",  "one",   "two",   "three", "four", "five",
                                                        "six", "seven", "eight", "nine",  "ten"};
  return count < words.size() ? words.at(count) : std::to_string(count);
}

std::string value_text(double value) {
  if (std::isnan(value)) return "not a number";
  if (std::isinf(value)) return "infinite";
  return significant(value, 9);
}

std::string listed(const std::vector<RecordedRun>& runs, const std::vector<std::size_t>& of) {
  std::string text;
  for (std::size_t i = 0; i < of.size(); ++i)
    text += (i == 0 ? "" : i + 1 == of.size() ? " and " : ", ") + runs[of[i]].name;
  return text;
}

std::int64_t last_step(const RecordedRun& run) { return run.steps.back().step; }

// What the checksums say of runs that have the same curve; empty: nothing.
std::string weights_in_words(const std::vector<RecordedRun>& runs, const std::vector<std::size_t>& group) {
  const std::string first = find_text(runs[group.front()].summary, "weights_checksum");
  bool equal = !first.empty();
  for (const std::size_t run : group) {
    const std::string checksum = find_text(runs[run].summary, "weights_checksum");
    if (checksum.empty() || last_step(runs[run]) != last_step(runs[group.front()])) return "";
    equal = equal && checksum == first;
  }
  if (first.empty()) return "";
  if (!equal) return " The weights that they end with differ all the same.";
  return " The weights that they end with are equal to the last bit (checksum " + first + ").";
}

std::string group_in_words(const std::vector<RecordedRun>& runs, const std::vector<std::size_t>& group) {
  std::int64_t common = compare_curves(runs[group[0]], runs[group[1]]).common_steps;
  for (std::size_t i = 2; i < group.size(); ++i)
    common = std::min(common, compare_curves(runs[group[0]], runs[group[i]]).common_steps);
  const bool all = group.size() == runs.size();
  const std::string subject =
      all ? (group.size() == 2 ? "both" : "all " + number_word(group.size())) + " runs" : listed(runs, group);
  return "One curve: the losses of " + subject + " are equal in every recorded digit over " + std::to_string(common) +
         (common == 1 ? " step" : " steps") + ", and so are gradient norms and loss scales." +
         weights_in_words(runs, group);
}

}  // namespace

CurveComparison compare_curves(const RecordedRun& first, const RecordedRun& second) {
  CurveComparison result;
  auto a = first.steps.begin();
  auto b = second.steps.begin();
  while (a != first.steps.end() && b != second.steps.end()) {
    if (a->step != b->step) {
      (a->step < b->step ? a : b)++;
      continue;
    }
    const auto differs = [&](const char* what, double x, double y) {
      if (!result.difference && !same(x, y)) result.difference = CurveDifference{a->step, what, x, y};
    };
    differs("loss", a->loss, b->loss);
    differs("gradient norm", a->grad_norm, b->grad_norm);
    differs("loss scale", a->loss_scale, b->loss_scale);
    differs("skipped", a->skipped ? 1.0 : 0.0, b->skipped ? 1.0 : 0.0);
    if (result.difference) return result;
    ++result.common_steps;
    ++a;
    ++b;
  }
  return result;
}

std::vector<std::vector<std::size_t>> runs_by_curve(const std::vector<RecordedRun>& runs) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<std::size_t>& members) {
      return std::all_of(members.begin(), members.end(),
                         [&](std::size_t member) { return compare_curves(runs[member], runs[run]).same(); });
    });
    if (group != groups.end()) {
      group->push_back(run);
    } else {
      groups.push_back({run});
    }
  }
  return groups;
}

std::vector<std::string> equality_in_words(const std::vector<RecordedRun>& runs) {
  std::vector<std::string> sentences;
  if (runs.size() < 2) return sentences;
  const auto groups = runs_by_curve(runs);
  for (const auto& group : groups) {
    if (group.size() > 1) sentences.push_back(group_in_words(runs, group));
  }
  const RecordedRun& first = runs[groups.front().front()];
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const RecordedRun& other = runs[groups[i].front()];
    const CurveComparison comparison = compare_curves(first, other);
    if (comparison.same()) continue;
    if (!comparison.difference) {
      sentences.push_back(other.name + " has no step in common with " + first.name + ".");
      continue;
    }
    const CurveDifference& difference = *comparison.difference;
    std::string sentence = other.name + " parts from " + first.name + " at step " + std::to_string(difference.step);
    if (difference.what == "skipped") {
      sentence += ", which only one of them skipped";
    } else {
      sentence +=
          ": " + difference.what + " " + value_text(difference.second) + ", there " + value_text(difference.first);
    }
    sentences.push_back(sentence + ".");
  }
  return sentences;
}

}  // namespace zt
