// Which stage, micro-batch and recomputation "auto" stands for: the cheapest that fit the memory of a rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/plan.h"

namespace zt {

struct FitCandidate {
  int stage = 0;
  std::int64_t micro = 1, accumulation = 1;
  std::int64_t every = 0;  // recompute every k-th block; 0: none
  // Planned, of one rank:
  std::int64_t bytes = 0;
  std::int64_t elements = 0;    // sent a step
  std::int64_t updated = 0;     // elements that its optimizer updates
  std::int64_t parameters = 0;  // of the model
};
FitCandidate candidate_of(const Settings& settings, const Plan& plan);

// Cheaper: sends fewer elements a step; among equals, recomputes nothing; then updates fewer elements a rank; then has
// fewer micro-steps; then is the lower stage, which shares less out.
bool is_cheaper(const FitCandidate& a, const FitCandidate& b);

struct Fit {
  std::vector<FitCandidate> candidates;  // the cheapest first
  std::optional<std::size_t> chosen;     // the first that fits; none does
  std::int64_t memory = 0;               // bytes that a rank may take
};
Fit choose_fit(std::vector<FitCandidate> candidates, std::int64_t memory);

// Micro-batches worth a try for so many samples of a rank in a step: divisors of them, each at most half of the one
// before, and 1.
std::vector<std::int64_t> micro_batches_to_try(std::int64_t samples);

// What was chosen, what else there was, and why not: a line each, of every stage its best. For a run's notices.
std::vector<std::string> fit_lines(const Fit& fit);
// All candidates, at most 80 columns.
std::vector<std::string> fit_table(const Fit& fit);
// UserError that says how much the least of the candidates needs.
[[noreturn]] void refuse_unfit(const Fit& fit);

}  // namespace zt
