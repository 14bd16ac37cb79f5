#include "optim/early_stopping.h"

#include <limits>
#include <vector>

#include "catch_compat.h"

using zt::BestEvaluation;
using zt::EarlyStopping;

namespace {

// The number of the evaluation, from 1, after which the run stops; 0: it does not.
int stops_after(EarlyStopping& stopping, const std::vector<double>& losses) {
  int evaluation = 0;
  for (const double loss : losses) {
    ++evaluation;
    if (stopping.evaluated(10 * evaluation, loss)) return evaluation;
  }
  return 0;
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("patience counts evaluations without improvement in a row") {
  EarlyStopping stopping({.patience = 3});
  CHECK(stops_after(stopping, {5.0, 4.0, 4.5, 4.2, 3.9, 4.0, 3.9, 4.1, 0.0}) == 8);
  CHECK(stopping.best() == BestEvaluation{50, 3.9});
  EarlyStopping impatient({.patience = 1});
  CHECK(stops_after(impatient, {5.0, 4.0, 4.0}) == 3);
  EarlyStopping first({.patience = 1});
  CHECK(stops_after(first, {5.0}) == 0);
}

TEST_CASE("an improvement is more than min_delta, measured from the last one; the best is the lowest all the same") {
  EarlyStopping stopping({.patience = 3, .min_delta = 1.0});
  // 9.5 and 9 are no improvements, 8.9 is one over 10; then nothing below 7.9 comes.
  CHECK(stops_after(stopping, {10.0, 9.5, 9.0, 8.9, 8.5, 8.0, 7.9, 1.0}) == 7);
  CHECK(stopping.best() == BestEvaluation{70, 7.9});
}

TEST_CASE("a loss that is not finite is no improvement, also as the first") {
  EarlyStopping stopping({.patience = 2});
  CHECK(stops_after(stopping, {not_a_number, 3.0, not_a_number, std::numeric_limits<double>::infinity()}) == 4);
  CHECK(stopping.best() == BestEvaluation{20, 3.0});
  EarlyStopping never({.patience = 2});
  CHECK(stops_after(never, {not_a_number, not_a_number}) == 2);
  CHECK_FALSE(never.best());
}

TEST_CASE("patience 0 never stops, and still knows the best: the earliest of equals") {
  EarlyStopping stopping({});
  CHECK(stops_after(stopping, std::vector<double>(100, 2.0)) == 0);
  CHECK(stopping.best() == BestEvaluation{10, 2.0});
}

TEST_CASE("restored in the middle it goes on as if it had not stopped") {
  const std::vector<double> losses = {5.0, 4.0, not_a_number, 4.5, 3.0, 3.0, 3.5, 2.9, 2.95, 3.1, 3.0, 2.99};
  EarlyStopping whole({.patience = 4, .min_delta = 0.05});
  const int expected = stops_after(whole, losses);
  CHECK(expected == 12);
  for (std::size_t cut = 0; cut < losses.size(); ++cut) {
    EarlyStopping first({.patience = 4, .min_delta = 0.05});
    std::size_t evaluation = 0;
    for (; evaluation < cut; ++evaluation)
      REQUIRE_FALSE(first.evaluated(10 * static_cast<int>(evaluation + 1), losses[evaluation]));
    EarlyStopping second({.patience = 4, .min_delta = 0.05});
    second.set_state(first.state());
    bool stops = false;
    for (; evaluation < losses.size(); ++evaluation)
      stops = second.evaluated(10 * static_cast<int>(evaluation + 1), losses[evaluation]);
    CHECK(stops);
    CHECK(second.state() == whole.state());
  }
}
