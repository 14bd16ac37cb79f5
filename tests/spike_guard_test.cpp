#include "optim/spike_guard.h"

#include <cmath>
#include <limits>

#include "catch_compat.h"
#include "core/errors.h"

using zt::Spike;
using zt::SpikeAction;
using zt::SpikeGuard;
using zt::SpikeGuardSettings;

namespace {

SpikeGuard guard(std::int64_t window, double deviations) {
  return SpikeGuard({.action = SpikeAction::skip, .deviations = deviations, .window = window});
}

}  // namespace

TEST_CASE("a loss above mean plus deviations of the window is a spike, one at the limit is not") {
  SpikeGuard spikes = guard(4, 3.0);
  for (const double loss : {1.0, 3.0, 1.0, 3.0}) spikes.record(loss, 1.0);  // mean 2, deviation 1
  CHECK_FALSE(spikes.check(5.0, 1.0));
  const auto spike = spikes.check(std::nextafter(5.0, 6.0), 1.0);
  REQUIRE(spike);
  CHECK(spike->quantity == Spike::Quantity::loss);
  CHECK(spike->mean == 2.0);
  CHECK(spike->deviation == 1.0);
  CHECK(spike->limit == 5.0);
  // Downwards there is no limit.
  CHECK_FALSE(spikes.check(-100.0, 0.0));
}

TEST_CASE("the gradient norm has a range of its own, looked at after the loss") {
  SpikeGuard spikes = guard(4, 2.0);
  for (const double norm : {10.0, 14.0, 10.0, 14.0}) spikes.record(1.0, norm);  // mean 12, deviation 2
  CHECK_FALSE(spikes.check(1.0, 16.0));
  const auto spike = spikes.check(1.0, 16.5);
  REQUIRE(spike);
  CHECK(spike->quantity == Spike::Quantity::grad_norm);
  CHECK(spike->value == 16.5);
  CHECK(spike->limit == 16.0);
  CHECK(spikes.check(2.0, 16.5)->quantity == Spike::Quantity::loss);
}

TEST_CASE("nothing is a spike before the window is full") {
  SpikeGuard spikes = guard(3, 1.0);
  for (int step = 0; step < 3; ++step) {
    CHECK_FALSE(spikes.check(1e30, 1e30));
    spikes.record(1.0 + step, 1.0);
  }
  CHECK(spikes.check(1e30, 1e30));
}

TEST_CASE("the window holds the last applied steps only") {
  SpikeGuard spikes = guard(3, 2.0);
  for (const double loss : {900.0, 4.0, 5.0, 6.0}) spikes.record(loss, 1.0);
  CHECK(spikes.state().losses == std::vector<double>{4.0, 5.0, 6.0});
  const auto spike = spikes.check(7.0, 1.0);  // limit 5 + 2 sqrt(2/3)
  REQUIRE(spike);
  CHECK(spike->limit == Approx(5.0 + 2.0 * std::sqrt(2.0 / 3.0)));
  CHECK_FALSE(spikes.check(6.6, 1.0));
  // Looking does not change the range.
  CHECK(spikes.state().losses == std::vector<double>{4.0, 5.0, 6.0});
}

TEST_CASE("a curve without noise has a range of a hundredth of its mean for a deviation") {
  SpikeGuard spikes = guard(5, 6.0);
  for (int step = 0; step < 5; ++step) spikes.record(2.0, 2.0);
  CHECK_FALSE(spikes.check(2.0 + 6 * 0.02, 2.0));
  CHECK(spikes.check(2.0 + 6.1 * 0.02, 2.0));
}

TEST_CASE("a falling loss is no spike, however steep or slow") {
  for (const double factor : {0.2, 0.9, 0.999, 1.0}) {
    SpikeGuard spikes = guard(10, 3.0);
    double loss = 8.0;
    for (int step = 0; step < 100; ++step, loss *= factor) {
      REQUIRE_FALSE(spikes.check(loss, loss));
      spikes.record(loss, loss);
    }
  }
}

TEST_CASE("a loss that doubles each step is a spike once the window is full") {
  SpikeGuard spikes = guard(10, 3.0);
  double loss = 1.0;
  int step = 0;
  for (; step < 100 && !spikes.check(loss, 1.0); ++step, loss *= 2.0) spikes.record(loss, 1.0);
  CHECK(step == 10);
}

TEST_CASE("switched off it keeps and says nothing") {
  SpikeGuard spikes{SpikeGuardSettings{.window = 2}};
  for (int step = 0; step < 5; ++step) spikes.record(1.0, 1.0);
  CHECK(spikes.state() == zt::SpikeGuardState{});
  CHECK_FALSE(spikes.check(1e9, 1e9));
}

TEST_CASE("a guard restored in the middle goes on as if it had not stopped; of a longer window the newest count") {
  SpikeGuard first = guard(4, 2.0);
  for (const double value : {7.0, 1.0, 2.0, 1.0, 2.0}) first.record(value, value);
  SpikeGuard second = guard(4, 2.0);
  second.set_state(first.state());
  CHECK(second.state() == first.state());
  CHECK(second.check(2.6, 1.0)->limit == first.check(2.6, 1.0)->limit);
  SpikeGuard shorter = guard(2, 2.0);
  shorter.set_state(first.state());
  CHECK(shorter.state().losses == std::vector<double>{1.0, 2.0});
  CHECK_THROWS_AS(first.set_state({{1.0}, {}}), zt::RunError);
}
