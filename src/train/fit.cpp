#include "train/fit.h"

#include <algorithm>
#include <tuple>

#include "core/errors.h"
#include "train/words.h"

namespace zt {

namespace {

std::string in_words(const FitCandidate& candidate) {
  return "stage " + std::to_string(candidate.stage) + ", micro-batch " + std::to_string(candidate.micro) +
         (candidate.accumulation > 1 ? " x " + std::to_string(candidate.accumulation) : "") +
         (candidate.every == 0   ? ""
          : candidate.every == 1 ? ", blocks recomputed"
                                 : ", every " + std::to_string(candidate.every) + "th block recomputed");
}

std::string sent(const FitCandidate& candidate) {
  const auto parameters = static_cast<double>(std::max<std::int64_t>(1, candidate.parameters));
  return fixed(static_cast<double>(candidate.elements) / parameters, 2);
}

// Why not this one, which fits, but another, which is cheaper: in a table and in a sentence.
struct Reason {
  std::string brief, full;
};

Reason why_not(const FitCandidate& candidate, const FitCandidate& chosen) {
  if (candidate.elements > chosen.elements) {
    return {"sends more",
            "sends more, " + sent(candidate) + " elements a parameter and step in place of " + sent(chosen)};
  }
  if ((candidate.every != 0) != (chosen.every != 0)) return {"recomputes", "computes blocks twice"};
  if (candidate.updated > chosen.updated) return {"updates more", "every rank would update more of the parameters"};
  if (candidate.accumulation > chosen.accumulation) return {"more micro-steps", "takes more micro-steps"};
  return {"as cheap", "costs the same and shares out what need not be"};
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

}  // namespace

FitCandidate candidate_of(const Settings& settings, const Plan& plan) {
  return {.stage = settings.zero.stage,
          .micro = settings.batch.micro,
          .accumulation = settings.batch.accumulation,
          .every = settings.checkpoint_every,
          .bytes = plan.total(),
          .elements = plan.elements_applied,
          .updated = plan.updated,
          .parameters = plan.parameters};
}

bool is_cheaper(const FitCandidate& a, const FitCandidate& b) {
  const auto cost = [](const FitCandidate& c) {
    return std::tuple(c.elements, c.every != 0, c.updated, c.accumulation, c.stage);
  };
  return cost(a) < cost(b);
}

Fit choose_fit(std::vector<FitCandidate> candidates, std::int64_t memory) {
  Fit fit{.candidates = std::move(candidates), .chosen = std::nullopt, .memory = memory};
  std::stable_sort(fit.candidates.begin(), fit.candidates.end(), is_cheaper);
  const auto first = std::find_if(fit.candidates.begin(), fit.candidates.end(),
                                  [&](const FitCandidate& candidate) { return candidate.bytes <= memory; });
  if (first != fit.candidates.end()) fit.chosen = static_cast<std::size_t>(first - fit.candidates.begin());
  return fit;
}

std::vector<std::int64_t> micro_batches_to_try(std::int64_t samples) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t divisor = 1; divisor * divisor <= samples; ++divisor) {
    if (samples % divisor != 0) continue;
    divisors.push_back(divisor);
    if (divisor != samples / divisor) divisors.push_back(samples / divisor);
  }
  std::sort(divisors.rbegin(), divisors.rend());
  std::vector<std::int64_t> sizes;
  for (const std::int64_t divisor : divisors) {
    if (sizes.empty() || 2 * divisor <= sizes.back()) sizes.push_back(divisor);
  }
  if (sizes.back() != 1) sizes.push_back(1);
  return sizes;
}

std::vector<std::string> fit_lines(const Fit& fit) {
  const FitCandidate& chosen = fit.candidates.at(fit.chosen.value());
  std::vector<std::string> lines = {"zero_optimization: \"auto\" is " + in_words(chosen) + ": " +
                                    bytes_in_words(chosen.bytes) + " of the " + bytes_in_words(fit.memory) +
                                    " that a rank may take, " + sent(chosen) + " elements sent a parameter and step"};
  for (int stage = 0; stage <= 3; ++stage) {
    // The cheapest that fits, or else the cheapest.
    const FitCandidate* best = nullptr;
    for (const FitCandidate& candidate : fit.candidates) {
      if (candidate.stage != stage || &candidate == &chosen) continue;
      const bool better = best == nullptr || (best->bytes > fit.memory && candidate.bytes <= fit.memory);
      if (better && (stage != chosen.stage || candidate.bytes > fit.memory)) best = &candidate;
    }
    if (best == nullptr) continue;
    lines.push_back("zero_optimization: not " + in_words(*best) + ": " +
                    (best->bytes > fit.memory ? "needs " + bytes_in_words(best->bytes) : why_not(*best, chosen).full));
  }
  return lines;
}

std::vector<std::string> fit_table(const Fit& fit) {
  std::vector<std::string> lines = {"the cheapest first; a rank may take " + bytes_in_words(fit.memory),
                                    "stage micro-batch accumulated recomputed     total   sent"};
  for (const FitCandidate& candidate : fit.candidates) {
    const bool is_chosen = fit.chosen && &candidate == &fit.candidates[*fit.chosen];
    const std::string verdict = is_chosen                      ? "chosen"
                                : candidate.bytes > fit.memory ? "does not fit"
                                                               : why_not(candidate, fit.candidates[*fit.chosen]).brief;
    lines.push_back(padded(std::to_string(candidate.stage), 5) + padded(std::to_string(candidate.micro), 12) +
                    padded(std::to_string(candidate.accumulation), 12) +
                    padded(candidate.every == 0   ? "none"
                           : candidate.every == 1 ? "all"
                                                  : "some",
                           11) +
                    padded(bytes_in_words(candidate.bytes), 10) + padded(sent(candidate), 7) + "  " + verdict);
  }
  return lines;
}

void refuse_unfit(const Fit& fit) {
  const auto least = std::min_element(fit.candidates.begin(), fit.candidates.end(),
                                      [](const FitCandidate& a, const FitCandidate& b) { return a.bytes < b.bytes; });
  throw UserError("zero_optimization: \"auto\" finds nothing that fits the " + bytes_in_words(fit.memory) +
                  " that a rank may take: the least, " + in_words(*least) + ", needs " + bytes_in_words(least->bytes) +
                  ". Take more ranks, a smaller model or sequence, or a smaller micro-batch");
}

}  // namespace zt
