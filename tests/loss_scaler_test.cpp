#include "optim/loss_scaler.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "core/errors.h"

using zt::LossScaler;
using zt::LossScaleSettings;
using Verdict = zt::LossScaler::Verdict;

namespace {

// Runs a sequence of events, 'o' overflow and '.' clean, and gives log2 of the scale after each.
std::vector<int> powers_after(LossScaler& scaler, const std::string& events) {
  std::vector<int> powers;
  for (const char event : events) {
    scaler.update(event == 'o');
    powers.push_back(static_cast<int>(std::log2(scaler.scale())));
  }
  return powers;
}

LossScaleSettings small(std::int64_t power, std::int64_t window, std::int64_t hysteresis) {
  LossScaleSettings settings;
  settings.initial_scale_power = power;
  settings.loss_scale_window = window;
  settings.hysteresis = hysteresis;
  return settings;
}

LossScaleSettings apex(std::int64_t power, std::int64_t window) {
  LossScaleSettings settings = zt::apex_loss_scale();
  settings.initial_scale_power = power;
  settings.loss_scale_window = window;
  return settings;
}

template <typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const zt::UserError& error) {
    return error.what();
  }
  return {};
}

bool refused(const LossScaleSettings& settings, const std::string& words) {
  return message_of([&] { LossScaler{settings}; }).find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("from 2^32 with hysteresis 2 the first overflow only warns, then the scale halves each step") {
  LossScaler scaler{LossScaleSettings{}};  // power 32, window 1000, hysteresis 2, minimum 1: the lecture's
  CHECK(scaler.scale() == 4294967296.0);
  CHECK(powers_after(scaler, "oooooooo") == std::vector<int>{32, 31, 30, 29, 28, 27, 26, 25});
}

TEST_CASE("coming down from 2^32 to 2^16 costs 17 skipped steps") {
  LossScaler scaler{LossScaleSettings{}};
  int skipped = 0;
  while (scaler.scale() > 65536.0) {
    CHECK(scaler.update(true) == Verdict::skip);
    ++skipped;
  }
  CHECK(skipped == 17);
}

TEST_CASE("from a fresh start the first growth comes with clean step window + 1, the next a window apart") {
  LossScaler scaler{small(8, 3, 1)};
  CHECK(powers_after(scaler, "..........") == std::vector<int>{8, 8, 8, 9, 9, 9, 10, 10, 10, 11});

  LossScaler lecture{LossScaleSettings{}};
  for (int step = 0; step < 1000; ++step) REQUIRE(lecture.update(false) == Verdict::apply);
  CHECK(lecture.scale() == 0x1p32);
  CHECK(lecture.update(false) == Verdict::apply);
  CHECK(lecture.scale() == 0x1p33);
}

TEST_CASE("after an overflow the scale grows with clean step window + 1 again") {
  LossScaler scaler{small(8, 2, 1)};
  //                                                             o  .  .  .  .  .  o  .  .  .
  CHECK(powers_after(scaler, "o.....o...") == std::vector<int>{7, 7, 7, 8, 8, 9, 8, 8, 8, 9});
}

TEST_CASE("a decrease does not refill the hysteresis, a growth does") {
  LossScaler scaler{small(8, 2, 2)};
  //   o: spent   o: 7   ...: growth to 8 and refill   o: spent   o: 7   o: 6
  CHECK(powers_after(scaler, "oo...ooo") == std::vector<int>{8, 7, 7, 7, 8, 8, 7, 6});
  // Clean steps that are too few for a growth leave it spent.
  LossScaler spent{small(8, 4, 2)};
  CHECK(powers_after(spent, "o..o..o") == std::vector<int>{8, 8, 8, 7, 7, 7, 6});
}

TEST_CASE("consecutive_hysteresis refills at every clean step") {
  LossScaleSettings settings = small(8, 4, 2);
  settings.consecutive_hysteresis = true;
  LossScaler scaler{settings};
  CHECK(powers_after(scaler, "o.o.oo") == std::vector<int>{8, 8, 8, 8, 8, 7});
}

TEST_CASE("hysteresis 3 tolerates two overflows") {
  LossScaler scaler{small(8, 100, 3)};
  CHECK(powers_after(scaler, "oooo") == std::vector<int>{8, 8, 7, 6});
}

TEST_CASE("an overflow at the minimum ends the run and leaves the state as it was") {
  LossScaler scaler{small(1, 100, 1)};
  CHECK(scaler.update(true) == Verdict::skip);
  CHECK(scaler.scale() == 1.0);
  const auto before = scaler.state();
  CHECK(scaler.update(true) == Verdict::at_minimum);
  CHECK(scaler.state() == before);
}

TEST_CASE("hysteresis is spent at the minimum, too, before the run ends") {
  LossScaler scaler{small(0, 100, 2)};
  CHECK(scaler.update(true) == Verdict::skip);
  CHECK(scaler.update(true) == Verdict::at_minimum);
}

TEST_CASE("the scale stops at a minimum that is no power of two, and rises to one that it starts below") {
  LossScaleSettings settings = small(3, 100, 1);
  settings.min_loss_scale = 3.0;
  LossScaler scaler{settings};
  CHECK(scaler.update(true) == Verdict::skip);
  CHECK(scaler.scale() == 4.0);
  CHECK(scaler.update(true) == Verdict::skip);
  CHECK(scaler.scale() == 3.0);
  CHECK(scaler.update(true) == Verdict::at_minimum);

  settings.initial_scale_power = 1;
  LossScaler below{settings};
  CHECK(below.update(true) == Verdict::skip);
  CHECK(below.scale() == 3.0);
}

TEST_CASE("growth ends where the reciprocal would leave the normal fp32 numbers") {
  LossScaler scaler{small(125, 1, 1)};
  CHECK(powers_after(scaler, "......") == std::vector<int>{125, 126, 126, 126, 126, 126});
  const auto scale = static_cast<float>(scaler.scale());
  CHECK(std::isnormal(scale));
  CHECK(std::isnormal(1.0F / scale));
}

TEST_CASE("a static scale never moves and skips on overflow, 1.0 included, by either rule") {
  for (const double scale : {1.0, 1000.0, 0.5}) {
    for (const zt::LossScaleRule rule : {zt::LossScaleRule::deepspeed, zt::LossScaleRule::apex}) {
      LossScaleSettings settings;
      settings.rule = rule;
      settings.loss_scale = scale;
      settings.loss_scale_window = 1;
      LossScaler scaler{settings};
      CHECK(scaler.scales());
      CHECK_FALSE(scaler.dynamic());
      for (int step = 0; step < 10; ++step) {
        CHECK(scaler.update(true) == Verdict::skip);
        CHECK(scaler.update(false) == Verdict::apply);
        CHECK(scaler.update(false) == Verdict::apply);
        CHECK(scaler.scale() == scale);
      }
    }
  }
}

TEST_CASE("without loss scaling a value that is not finite stops the run") {
  LossScaler scaler = LossScaler::none();
  CHECK(scaler.scale() == 1.0);
  CHECK(scaler.update(false) == Verdict::apply);
  CHECK(scaler.update(true) == Verdict::stop);
  CHECK(scaler.scale() == 1.0);
}

TEST_CASE("apex's rule grows with exactly the window-th clean step, counted anew after a growth and an overflow") {
  LossScaler scaler{apex(8, 3)};
  CHECK(powers_after(scaler, ".......") == std::vector<int>{8, 8, 9, 9, 9, 10, 10});
  //                           .  o  .  .  .  .   o
  CHECK(powers_after(scaler, ".o....o") == std::vector<int>{10, 9, 9, 9, 10, 10, 9});
  LossScaler each{apex(8, 1)};
  CHECK(powers_after(each, "..o.") == std::vector<int>{9, 10, 9, 10});
}

TEST_CASE("apex's rule knows no hysteresis, starts at 2^16 and ends its growth at 2^24") {
  LossScaleSettings settings = zt::apex_loss_scale();
  settings.hysteresis = 5;
  CHECK(LossScaler{settings}.scale() == 65536.0);
  settings.loss_scale_window = 1;
  LossScaler scaler{settings};
  CHECK(powers_after(scaler, "o.........") == std::vector<int>{15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
  CHECK(powers_after(scaler, "..o..") == std::vector<int>{24, 24, 23, 24, 24});
}

TEST_CASE("apex's rule starts at the maximum where that is below 2^16, and need not be a power of two") {
  LossScaleSettings settings = apex(16, 1);
  settings.max_loss_scale = 3000.0;
  LossScaler scaler{settings};
  CHECK(scaler.scale() == 3000.0);
  CHECK(scaler.update(true) == Verdict::skip);
  CHECK(scaler.scale() == 1500.0);
  scaler.update(false);
  scaler.update(false);
  CHECK(scaler.scale() == 3000.0);
}

TEST_CASE("without a minimum apex's rule ends a run where the scale's reciprocal would overflow, with one at it") {
  LossScaler scaler{apex(0, 10)};
  int skipped = 0;
  while (scaler.update(true) == Verdict::skip) ++skipped;
  CHECK(skipped == 126);
  CHECK(scaler.scale() == 0x1p-126);
  LossScaleSettings settings = apex(4, 10);
  settings.min_loss_scale = 5.0;
  LossScaler bounded{settings};
  CHECK(bounded.update(true) == Verdict::skip);
  CHECK(bounded.update(true) == Verdict::skip);
  CHECK(bounded.scale() == 5.0);
  CHECK(bounded.update(true) == Verdict::at_minimum);
}

TEST_CASE("a retry halves the scale each time, hysteresis or not, down to the minimum") {
  LossScaleSettings settings = small(3, 2, 4);
  settings.on_overflow = zt::OnOverflow::retry;
  settings.consecutive_hysteresis = true;
  LossScaler scaler{settings};
  for (const double expected : {4.0, 2.0, 1.0}) {
    CHECK(scaler.update(true) == Verdict::retry);
    CHECK(scaler.scale() == expected);
  }
  CHECK(scaler.update(true) == Verdict::at_minimum);
  // The attempt that fits is the first clean step.
  CHECK(powers_after(scaler, "...o...") == std::vector<int>{0, 0, 1, 0, 0, 0, 1});
  // Where the scale starts below the minimum, nothing could be lowered.
  settings.min_loss_scale = 100.0;
  CHECK(LossScaler{settings}.update(true) == Verdict::at_minimum);
}

TEST_CASE("a static scale cannot be lowered for a retry") {
  LossScaleSettings settings;
  settings.on_overflow = zt::OnOverflow::retry;
  settings.loss_scale = 128.0;
  CHECK(refused(settings, "fp16.on_overflow"));
}

TEST_CASE("a scaler restored in the middle goes on as if it had not stopped") {
  const std::string events = "o.o...o..oo......o.....";
  LossScaleSettings retrying = small(10, 2, 2);
  retrying.on_overflow = zt::OnOverflow::retry;
  for (const LossScaleSettings& settings : {small(10, 2, 2), apex(10, 2), retrying}) {
    LossScaler whole{settings};
    const auto expected = powers_after(whole, events);
    for (std::size_t cut = 0; cut <= events.size(); ++cut) {
      LossScaler first{settings};
      auto powers = powers_after(first, events.substr(0, cut));
      LossScaler second{settings};
      second.set_state(first.state());
      const auto rest = powers_after(second, events.substr(cut));
      powers.insert(powers.end(), rest.begin(), rest.end());
      CHECK(powers == expected);
      CHECK(second.state() == whole.state());
    }
  }
}

TEST_CASE("a saved state that no run can have is refused, and a static scale stays the config's") {
  LossScaler scaler{LossScaleSettings{}};
  CHECK_THROWS_AS(scaler.set_state({.scale = std::numeric_limits<double>::quiet_NaN()}), zt::RunError);
  CHECK_THROWS_AS(scaler.set_state({.scale = 2.0, .clean_steps = -1}), zt::RunError);
  CHECK_THROWS_AS(scaler.set_state({.scale = 2.0, .clean_steps = 3, .hysteresis = 0}), zt::RunError);
  CHECK(scaler.scale() == 0x1p32);
  LossScaleSettings settings;
  settings.loss_scale = 128.0;
  LossScaler fixed{settings};
  fixed.set_state({.scale = 64.0, .clean_steps = 5});
  CHECK(fixed.scale() == 128.0);
  CHECK(fixed.state().clean_steps == 5);
}

TEST_CASE("scales that fp32 cannot hold are refused with the key's name") {
  CHECK(refused(small(127, 1, 1), "fp16.initial_scale_power: 127"));
  LossScaleSettings settings;
  settings.loss_scale = 1e39;
  CHECK(refused(settings, "fp16.loss_scale"));
  settings = {};
  settings.min_loss_scale = -1.0;
  CHECK(refused(settings, "fp16.min_loss_scale"));
  settings = {};
  settings.max_loss_scale = 0x1p127;
  CHECK(refused(settings, "fp16.max_loss_scale"));
  settings.rule = zt::LossScaleRule::apex;
  CHECK(refused(settings, "amp.max_loss_scale"));
  settings = {};
  settings.loss_scale_window = 0;
  CHECK(refused(settings, "fp16.loss_scale_window"));
}
