// Estimates: the paper's tables, plans against runs, the largest model, predicted times, and what "auto" chooses.
#include "train/estimate.h"

#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "app/amounts.h"
#include "catch_compat.h"
#include "core/errors.h"
#include "core/json.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/curve.h"
#include "train/estimate_report.h"
#include "train/fit.h"
#include "train/step_time.h"
#include "zero/engine.h"

using namespace zt;
using namespace zt::test;

namespace {

std::int64_t bytes_in(const Plan& plan, MemoryCategory category) {
  return plan.memory.at(static_cast<std::size_t>(category));
}

Plan plan_of(const Settings& settings, int ranks) {
  return make_plan(settings, 0, ranks, 0, scratch_of_device(settings.device));
}

// Of a batch that any of 1 to 5 ranks can be dealt.
Settings with_precision(Settings settings, const std::string& preset, const std::string& sums) {
  settings.precision = {.preset = preset, .grad_accum_dtype = sums, .communication_dtype = ""};
  settings.batch = {.train = 120, .micro = 2, .accumulation = 60};
  settings.loss_scale.initial_scale_power = 4;
  return settings;
}

const std::vector<std::pair<std::string, std::string>> precisions = {
    {"fp32", ""}, {"bf16", ""}, {"bf16", "bf16"}, {"fp16", ""}, {"fp16", "fp16"}};

}  // namespace

TEST_CASE("bare numbers of parameters take the bytes of the paper's table 1") {
  // GB per device at stages 1, 2, 3 as printed: cut off or rounded in the last digit.
  struct Line {
    double parameters;
    int ranks;
    std::array<double, 3> gigabytes;
    std::array<double, 3> last_digit;
  };
  const std::vector<Line> table = {
      {7.5e9, 1, {120, 120, 120}, {1, 1, 1}},
      {7.5e9, 4, {52.5, 41.3, 30}, {0.1, 0.1, 1}},
      {7.5e9, 16, {35.6, 21.6, 7.5}, {0.1, 0.1, 0.1}},
      {7.5e9, 64, {31.4, 16.6, 1.88}, {0.1, 0.1, 0.01}},
      {7.5e9, 256, {30.4, 15.4, 0.47}, {0.1, 0.1, 0.01}},
      {7.5e9, 1024, {30.1, 15.1, 0.12}, {0.1, 0.1, 0.01}},
      {128e9, 1, {2048, 2048, 2048}, {1, 1, 1}},
      {128e9, 4, {896, 704, 512}, {1, 1, 1}},
      {128e9, 16, {608, 368, 128}, {1, 1, 1}},
      {128e9, 64, {536, 284, 32}, {1, 1, 1}},
      {128e9, 256, {518, 263, 8}, {1, 1, 1}},
      {128e9, 1024, {513, 257, 2}, {1, 1, 1}},
      {1e12, 1, {16000, 16000, 16000}, {1, 1, 1}},
      {1e12, 4, {7000, 5500, 4000}, {1, 1, 1}},
      {1e12, 16, {4750, 2875, 1000}, {1, 1, 1}},
      {1e12, 64, {4187, 2218, 250}, {1, 1, 1}},
      {1e12, 256, {4046, 2054, 62.5}, {1, 1, 0.1}},
      {1e12, 1024, {4011, 2013, 15.6}, {1, 1, 0.1}},
  };
  for (const Line& line : table) {
    CHECK(paper_plan(line.parameters, 0, line.ranks).total() == std::llround(16.0 * line.parameters));
    for (int stage = 1; stage <= 3; ++stage) {
      CAPTURE(line.parameters, line.ranks, stage);
      const auto index = static_cast<std::size_t>(stage - 1);
      const double gigabytes = 1e-9 * static_cast<double>(paper_plan(line.parameters, stage, line.ranks).total());
      CHECK(std::abs(gigabytes - line.gigabytes.at(index)) < line.last_digit.at(index));
    }
  }
}

TEST_CASE("the paper's bytes and elements are those of the formulas that runs show") {
  const Precision fp16 = make_precision({.preset = "fp16", .grad_accum_dtype = "", .communication_dtype = ""}, 1);
  for (int stage = 0; stage <= 3; ++stage) {
    for (const int ranks : {1, 2, 3, 64, 1024}) {
      CAPTURE(stage, ranks);
      CHECK(paper_bytes_per_parameter(stage, ranks) ==
            Approx(formula_bytes_per_parameter(stage, ranks, fp16, 1, 2)).epsilon(1e-14));
      const Plan plan = paper_plan(1e9, stage, ranks);
      CHECK(static_cast<double>(plan.elements_applied) ==
            Approx((stage == 3 ? 3e9 : 2e9) * (ranks - 1) / ranks).epsilon(1e-9));
      CHECK(bytes_in(plan, MemoryCategory::parameters) == std::llround(stage == 3 ? 2e9 / ranks : 2e9));
      CHECK(bytes_in(plan, MemoryCategory::gradients) == std::llround(stage >= 2 ? 2e9 / ranks : 2e9));
      CHECK(bytes_in(plan, MemoryCategory::optimizer) == std::llround(stage >= 1 ? 12e9 / ranks : 12e9));
    }
  }
}

TEST_CASE("the largest models for 32 GB on 64 ranks are those of the paper's table 2") {
  const std::array<double, 4> billions = {2.0, 7.6, 14.4, 128.0};
  for (int stage = 0; stage <= 3; ++stage) {
    const double largest = 32e9 / paper_bytes_per_parameter(stage, 64);
    CHECK(std::abs(1e-9 * largest - billions.at(static_cast<std::size_t>(stage))) < 0.1);
  }
}

TEST_CASE("what a plan says of memory, bytes, calls and updates is what a run holds, sends and makes") {
  for (const auto& [preset, sums] : precisions) {
    for (const bool gpt : {true, false}) {
      Settings base = with_precision(gpt ? tiny_gpt() : tiny_mlp(), preset, sums);
      base.training.max_steps = 1;
      const Dataset data = data_for(base);
      for (int ranks = 1; ranks <= 5; ++ranks) {
        for (int stage = 0; stage <= 3; ++stage) {
          CAPTURE(preset, sums, gpt, ranks, stage);
          const Settings settings = at(base, ranks, stage);
          const Curve curve = trace_curve(settings, data, ranks);
          REQUIRE_FALSE(curve.steps.front().skipped);
          const Plan plan = plan_of(settings, ranks);
          CHECK(plan.memory == curve.held);
          CHECK(plan.padding == curve.padding);
          CHECK(plan.elements_applied == curve.elements_sent);
          for (int kind = 0; kind < collective_kind_count; ++kind) {
            const auto index = static_cast<std::size_t>(kind);
            CAPTURE(kind);
            CHECK(plan.sent.at(index).calls == curve.counts.training.at(index).calls);
            CHECK(plan.sent.at(index).elements == curve.counts.training.at(index).elements);
            CHECK(plan.sent.at(index).bytes == curve.counts.training.at(index).bytes);
          }
        }
      }
    }
  }
}

TEST_CASE("a plan's products are the model's, and those of recomputed blocks on top") {
  Settings settings = with_batch(tiny_gpt(), 2, 5, 1);
  const Plan kept = plan_of(settings, 1);
  // By the rule backward counts attention's two products twice; five are computed for its two.
  const double attention = 2.0 * 3 * (16.0 * 17 / 2) * 24 * 10;  // a product, of 3 blocks and 10 samples
  // The head's rows are padded, too.
  CHECK(kept.step_flops >= kept.model_flops + attention);
  CHECK(kept.step_flops < 1.05 * kept.model_flops + attention);
  settings.checkpoint_every = 1;
  const Plan recomputed = plan_of(settings, 1);
  CHECK(recomputed.model_flops == kept.model_flops);
  CHECK(recomputed.step_flops > 1.15 * kept.step_flops);
  CHECK(recomputed.step_flops < 1.34 * kept.step_flops);
  CHECK(kept.logits == 2 * 16 * 80 * 4);  // 67 tokens in rows of 80
  for (int stage = 0; stage <= 3; ++stage) {
    settings.zero.stage = stage;
    settings.batch.train = 40;
    const Plan shared = plan_of(settings, 4);
    CHECK(shared.updated >= shared.parameters / (stage == 0 ? 1 : 4));
    CHECK(shared.updated < 2 * shared.parameters / (stage == 0 ? 1 : 4) + 4 * 128 * 8);
  }
}

TEST_CASE("activations are told with and without recomputation") {
  const Settings settings = with_batch(tiny_gpt(), 2, 1, 2);
  const Plan plan = plan_of(settings, 2);
  const ActivationBytes bytes = activation_bytes(settings, plan, plan_of);
  CHECK(bytes.kept == bytes_in(plan, MemoryCategory::activations));
  Settings recomputing = settings;
  recomputing.checkpoint_every = 1;
  const Plan less = plan_of(recomputing, 2);
  CHECK(bytes.recomputed == bytes_in(less, MemoryCategory::activations));
  CHECK(bytes.recomputed < bytes.kept);
  const ActivationBytes same = activation_bytes(recomputing, less, plan_of);
  CHECK(same.kept == bytes.kept);
  CHECK(same.recomputed == bytes.recomputed);
  const Settings mlp = with_batch(tiny_mlp(), 2, 1, 2);
  const ActivationBytes rows = activation_bytes(mlp, plan_of(mlp, 2), plan_of);
  CHECK(rows.kept == rows.recomputed);
}

TEST_CASE("the largest model fits and the next does not") {
  for (const bool gpt : {true, false}) {
    for (const int stage : {0, 3}) {
      for (const std::int64_t memory : {std::int64_t{120'000}, std::int64_t{4'000'000}, std::int64_t{90'000'000}}) {
        CAPTURE(gpt, stage, memory);
        Settings settings = with_batch(gpt ? tiny_gpt() : tiny_mlp(), 2, 1, 2);
        settings.zero.stage = stage;
        const auto largest = largest_model(settings, 2, memory, plan_of);
        if (!largest) {
          settings.model = scaled_model(settings.model, 1);
          CHECK(plan_of(settings, 2).total() > memory);
          continue;
        }
        const ModelSettings& model = largest->model;
        settings.model = model;
        const Plan plan = plan_of(settings, 2);
        CHECK(plan.total() == largest->bytes);
        CHECK(plan.parameters == largest->parameters);
        CHECK(plan.total() <= memory);
        const std::int64_t size =
            gpt ? model.gpt.n_head : *std::max_element(model.mlp.layers.begin() + 1, model.mlp.layers.end() - 1);
        settings.model = scaled_model(gpt ? tiny_gpt().model : tiny_mlp().model, size);
        CHECK(plan_of(settings, 2).total() == largest->bytes);
        settings.model = scaled_model(gpt ? tiny_gpt().model : tiny_mlp().model, size + 1);
        CHECK(plan_of(settings, 2).total() > memory);
      }
    }
  }
  Settings settings = with_batch(tiny_mlp(), 2, 1, 1);
  CHECK_FALSE(largest_model(settings, 1, 10, plan_of));
  settings.model.mlp.layers = {20, 3};
  CHECK_FALSE(largest_model(settings, 1, 1'000'000'000, plan_of));
}

TEST_CASE("models grow in proportion") {
  ModelSettings gpt = tiny_gpt().model;
  gpt.gpt.n_inner = 100;
  const ModelSettings twice = scaled_model(gpt, 6);
  CHECK(twice.gpt.n_head == 6);
  CHECK(twice.gpt.n_embd == 48);
  CHECK(twice.gpt.n_layer == 6);
  CHECK(twice.gpt.n_inner == 200);
  const ModelSettings mlp = scaled_model(tiny_mlp().model, 66);
  CHECK(mlp.mlp.layers == std::vector<std::int64_t>{20, 66, 18, 3});
}

namespace {

// 300 flops of the model, none on top; each kind of collective sends 120 bytes in 6 calls; of 4 units.
Plan plain_plan(int stage, int ranks) {
  Plan plan;
  plan.ranks = ranks;
  plan.stage = stage;
  plan.parameters = 100;
  plan.step_flops = plan.model_flops = 300.0;
  plan.updated = 50;
  plan.units = 4;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    plan.sent.at(static_cast<std::size_t>(kind)).bytes = 120;
    plan.sent.at(static_cast<std::size_t>(kind)).calls = 6;
  }
  return plan;
}

// The same with 60 bytes sent to owners and back in 3 calls.
Plan plan_with_blocks(int stage, int ranks) {
  Plan plan = plain_plan(stage, ranks);
  plan.sent.at(static_cast<std::size_t>(CollectiveKind::all_to_all)).bytes = 60;
  plan.sent.at(static_cast<std::size_t>(CollectiveKind::all_to_all)).calls = 3;
  return plan;
}

}  // namespace

TEST_CASE("blocks that go to owners and back take the time of reductions, and nothing hides them") {
  const Rates rates{.flops = 10.0, .gather_bandwidth = 12.0, .reduce_bandwidth = 6.0, .latency = 0.5, .updates = 25.0};
  for (int stage = 0; stage <= 3; ++stage) {
    for (const bool overlaps : {false, true}) {
      CAPTURE(stage, overlaps);
      const auto predicted = [&](const Plan& plan) {
        return predict_step(plan, 1, AccumulationOrder::global, rates, overlaps);
      };
      const StepTime without = predicted(plain_plan(stage, 3));
      const StepTime with = predicted(plan_with_blocks(stage, 3));
      CHECK(without.all_to_all == 0.0);
      CHECK(with.all_to_all == 10.0 + 3 * 2 * 0.5);
      CHECK(with.exposed == Approx(without.exposed + 13.0));
      CHECK(with.step == Approx(without.step + 13.0));
      CHECK(predicted(plan_with_blocks(stage, 1)).step == predicted(plain_plan(stage, 1)).step);
    }
  }
}

TEST_CASE("an optimizer's products are part of the update, not of the passes") {
  const Rates rates{.flops = 10.0, .updates = 25.0};
  Plan plan = plain_plan(0, 1);
  const StepTime without = predict_step(plan, 1, AccumulationOrder::global, rates, false);
  plan.update_flops = 40.0;
  plan.step_flops += plan.update_flops;
  const StepTime time = predict_step(plan, 1, AccumulationOrder::global, rates, false);
  CHECK(time.forward == without.forward);
  CHECK(time.backward == without.backward);
  CHECK(time.update == without.update + 4.0);
  // Rates that were measured in such a step predict it.
  MeasuredRun run;
  run.step_seconds = time.step;
  run.forward = time.forward;
  run.backward = time.backward;
  run.optimizer = time.update;
  const Rates found = rates_of(run, plan);
  CHECK(found.flops == Approx(rates.flops));
  CHECK(found.updates == Approx(rates.updates));
}

TEST_CASE("the time of a step is the sum of its parts where nothing is hidden") {
  const Rates rates{.flops = 10.0, .gather_bandwidth = 12.0, .reduce_bandwidth = 6.0, .latency = 0.5, .updates = 25.0};
  for (int stage = 0; stage <= 3; ++stage) {
    const StepTime time = predict_step(plain_plan(stage, 3), 1, AccumulationOrder::global, rates, false);
    CHECK(time.forward == 10.0);
    CHECK(time.backward == 20.0);
    CHECK(time.update == 2.0);
    CHECK(time.gather == 10.0 + 6 * 2 * 0.5);
    CHECK(time.reduce == 20.0 + 6 * 2 * 0.5);
    CHECK(time.exposed == 16.0 + 26.0);
    CHECK(time.step == 10.0 + 20.0 + 2.0 + 42.0);
    const StepTime alone = predict_step(plain_plan(stage, 1), 1, AccumulationOrder::global, rates, false);
    CHECK(alone.exposed == 0.0);
    CHECK(alone.step == 32.0);
  }
}

TEST_CASE("beside computing, only what a phase cannot hide is exposed") {
  // Gathers take 12 s and reduces 24 s; forward takes 10 s and backward 20 s; A = 2.
  const Rates rates{.flops = 10.0, .gather_bandwidth = 10.0, .reduce_bandwidth = 5.0, .latency = 0.0, .updates = 0.0};
  const auto exposed = [&](int stage, AccumulationOrder order) {
    return predict_step(plain_plan(stage, 3), 2, order, rates, true).exposed;
  };
  // Of a micro-step: reduce 12 s beside backward's 10 s. Stage 0 gathers 12 s more in the last one.
  CHECK(exposed(0, AccumulationOrder::global) == Approx(2.0 + 14.0));
  // Twice 2 s of reduces, and 12 s of gathers beside the first forward's 5 s.
  CHECK(exposed(1, AccumulationOrder::global) == Approx(4.0 + 7.0));
  CHECK(exposed(2, AccumulationOrder::global) == Approx(4.0 + 7.0));
  // Each pass gathers 3 s: hidden by forward's 5 s, in backward's 10 s beside 12 s of reduces.
  CHECK(exposed(3, AccumulationOrder::global) == Approx(2 * 5.0));
  // In local order all 24 s of reduces fall into the last backward.
  CHECK(exposed(0, AccumulationOrder::local) == Approx(26.0));
  CHECK(exposed(1, AccumulationOrder::local) == Approx(14.0 + 7.0));
  CHECK(exposed(2, AccumulationOrder::local) == exposed(2, AccumulationOrder::global));
  // A network a hundred times as fast: the first and the last unit's alone.
  const Rates fast{.flops = 10.0, .gather_bandwidth = 1e3, .reduce_bandwidth = 5e2, .latency = 0.0, .updates = 0.0};
  const auto least = [&](int stage) {
    return predict_step(plain_plan(stage, 3), 2, AccumulationOrder::global, fast, true).exposed;
  };
  CHECK(least(0) == Approx((0.12 + 0.12) / 4));
  CHECK(least(1) == Approx(0.12 / 4));
  CHECK(least(3) == Approx((2 * 0.03 + 0.12) / 4));
}

TEST_CASE("rates taken from a run predict its own step") {
  const Rates rates{.flops = 10.0, .gather_bandwidth = 12.0, .reduce_bandwidth = 6.0, .latency = 0.0, .updates = 25.0};
  for (const auto& [stage, has_blocks] :
       {std::pair(0, false), std::pair(1, false), std::pair(2, false), std::pair(3, false), std::pair(0, true),
        std::pair(1, true), std::pair(2, true), std::pair(3, true)}) {
    CAPTURE(stage, has_blocks);
    const Plan plan = has_blocks ? plan_with_blocks(stage, 3) : plain_plan(stage, 3);
    const StepTime time = predict_step(plan, 1, AccumulationOrder::global, rates, false);
    const bool publishes = stage == 1 || stage == 2;
    // Five steps, of which a tenth of the time went to waiting for data.
    MeasuredRun run;
    run.step_seconds = time.step / 0.9;
    run.forward = 5 * (time.forward + (stage == 3 ? time.gather / 2 : 0.0));
    run.backward = 5 * (time.backward + time.reduce + (stage == 0 ? time.gather : stage == 3 ? time.gather / 2 : 0.0));
    run.optimizer = 5 * (time.update + time.all_to_all + (publishes ? time.gather : 0.0));
    run.data_wait = 5 * time.step / 9;
    run.gather = 5 * time.gather;
    run.reduce = 5 * time.reduce;
    if (has_blocks) run.all_to_all = 5 * time.all_to_all;
    const Rates found = rates_of(run, plan);
    CHECK(found.flops == Approx(rates.flops));
    CHECK(found.updates == Approx(rates.updates));
    CHECK(found.gather_bandwidth == Approx(rates.gather_bandwidth));
    CHECK(found.reduce_bandwidth == Approx(rates.reduce_bandwidth));
    CHECK(predict_step(plan, 1, AccumulationOrder::global, found, false).step == Approx(time.step));
  }
  CHECK_THROWS_AS(rates_of(MeasuredRun{}, plain_plan(0, 1)), UserError);
}

TEST_CASE("micro-batches to try are divisors that halve at least") {
  CHECK(micro_batches_to_try(1) == std::vector<std::int64_t>{1});
  CHECK(micro_batches_to_try(8) == std::vector<std::int64_t>{8, 4, 2, 1});
  CHECK(micro_batches_to_try(12) == std::vector<std::int64_t>{12, 6, 3, 1});
  CHECK(micro_batches_to_try(9) == std::vector<std::int64_t>{9, 3, 1});
  CHECK(micro_batches_to_try(999999937) == std::vector<std::int64_t>{999999937, 1});
}

TEST_CASE("the cheapest that fits is chosen: least sent, nothing recomputed, updates shared") {
  const auto candidate = [](int stage, std::int64_t accumulation, std::int64_t every, std::int64_t bytes,
                            std::int64_t elements, std::int64_t updated) {
    return FitCandidate{.stage = stage,
                        .micro = 8 / accumulation,
                        .accumulation = accumulation,
                        .every = every,
                        .bytes = bytes,
                        .elements = elements,
                        .updated = updated,
                        .parameters = 100};
  };
  const std::vector<FitCandidate> candidates = {candidate(3, 1, 0, 50, 300, 25),   candidate(3, 1, 1, 30, 300, 25),
                                                candidate(0, 1, 0, 160, 200, 100), candidate(2, 1, 0, 90, 200, 25),
                                                candidate(1, 1, 0, 110, 200, 25),  candidate(1, 1, 1, 80, 200, 25),
                                                candidate(2, 1, 1, 70, 200, 25),   candidate(1, 2, 0, 75, 300, 25)};
  const auto chosen = [&](std::int64_t memory) {
    const Fit fit = choose_fit(candidates, memory);
    const FitCandidate& best = fit.candidates.at(fit.chosen.value());
    return std::tuple(best.stage, best.accumulation, best.every);
  };
  CHECK(chosen(1000) == std::tuple(1, 1, 0));  // stage 0 sends as much, but each rank updates everything
  CHECK(chosen(109) == std::tuple(2, 1, 0));
  CHECK(chosen(89) == std::tuple(1, 1, 1));
  CHECK(chosen(79) == std::tuple(2, 1, 1));
  CHECK(chosen(69) == std::tuple(3, 1, 0));
  CHECK(chosen(49) == std::tuple(3, 1, 1));
  const Fit none = choose_fit(candidates, 29);
  CHECK_FALSE(none.chosen);
  try {
    refuse_unfit(none);
    FAIL("nothing fits");
  } catch (const UserError& error) {
    const std::string text = error.what();
    CHECK(text.find("the least, stage 3, micro-batch 8, blocks recomputed, needs 30 B") != std::string::npos);
    CHECK(text.find("nothing that fits the 29 B") != std::string::npos);
  }

  const std::vector<std::string> lines = fit_lines(choose_fit(candidates, 109));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] ==
        "zero_optimization: \"auto\" is stage 2, micro-batch 8: 90 B of the 109 B that a rank may take, 2.00 elements "
        "sent a parameter and step");
  CHECK(lines[1] == "zero_optimization: not stage 0, micro-batch 8: needs 160 B");
  CHECK(lines[2] == "zero_optimization: not stage 1, micro-batch 8, blocks recomputed: computes blocks twice");
  CHECK(lines[3] ==
        "zero_optimization: not stage 3, micro-batch 8: sends more, 3.00 elements a parameter and step in place of "
        "2.00");
  const std::vector<std::string> table = fit_table(choose_fit(candidates, 109));
  REQUIRE(table.size() == candidates.size() + 2);
  for (const std::string& line : table) CHECK(line.size() <= 80);
  CHECK(table[2].ends_with("does not fit"));
  CHECK(table[3].ends_with("chosen"));
}

TEST_CASE("amounts are read with their units") {
  CHECK(count_of("--parameters", "7.5e9") == 7.5e9);
  CHECK(count_of("--parameters", "7.5B") == 7.5e9);
  CHECK(count_of("--parameters", "350M") == 350e6);
  CHECK(bytes_of("--memory", "80GB") == 80e9);
  CHECK(bytes_of("--memory", "80 GB") == 80e9);
  CHECK(bytes_of("--memory", "64GiB") == 64.0 * 1073741824.0);
  CHECK(bytes_of("--memory", "1024") == 1024.0);
  CHECK(bytes_of("--bandwidth", "25GB/s") == 25e9);
  CHECK(bytes_of("--bandwidth", "2.5k") == 2500.0);
  for (const char* wrong : {"", "x", "-1", "0", "nan", "inf", "1e30", "5 apples", "1e9GiBs", "7.5 Bi"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(count_of("--parameters", wrong), UserError);
    CHECK_THROWS_AS(bytes_of("--memory", wrong), UserError);
  }
}

TEST_CASE("tables keep to 80 columns whatever the size") {
  std::vector<EstimateRow> rows;
  for (const int ranks : {1, 1024, 1 << 20}) {
    for (int stage = 0; stage <= 3; ++stage) {
      EstimateRow& row = rows.emplace_back();
      row.plan = paper_plan(1e12, stage, ranks);
      for (std::int64_t& bytes : row.plan.memory) bytes = 999'499'999'999'999;
      row.largest_parameters = 123.4e12;
    }
  }
  for (const auto& table : {state_table(rows), largest_table(rows, 80'000'000'000)}) {
    for (const std::string& line : table) {
      INFO(line);
      CHECK(line.size() <= 80);
    }
  }
  for (EstimateRow& row : rows) {
    row.batch = {.train = 999'999'999, .micro = 1'000'000, .accumulation = 100'000};
    row.own_batch = false;
    row.activations = ActivationBytes{999'499'999'999'999, 999'499'999'999'999};
    row.plan.logits = 134'217'728;
    row.plan.parameters = 1000;
    row.plan.elements_applied = 999'990;
    row.positions = 999'999'999;
    row.time = StepTime{123.4, 99.99, 0.0999, 1e-6, 12.3, 12.3, 9999.0};
    row.largest = LargestModel{tiny_gpt().model, 123'456'789'012, 79'999'999'999};
    row.largest->model.gpt.n_layer = 1234;
    row.largest->model.gpt.n_embd = 123456;
  }
  for (const auto& table : {memory_table(rows), largest_table(rows, 80'000'000'000), time_table(rows)}) {
    for (const std::string& line : table) {
      INFO(line);
      CHECK(line.size() <= 80);
    }
  }
  CHECK(time_table(rows).at(2).find("blocks") == std::string::npos);
  // A plan that sends blocks shows them, in as many columns.
  rows.back().time->all_to_all = 9999.0;
  const std::vector<std::string> with_blocks = time_table(rows);
  for (const std::string& line : with_blocks) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
  CHECK(with_blocks.at(3).find("  reduce  blocks exposed    step") != std::string::npos);
  CHECK(with_blocks.back().find(" 9999 s") != std::string::npos);
  const auto json = estimate_json(rows, true);
  REQUIRE(json.size() == rows.size());
  CHECK(json.back().at("prediction").at("all_to_all") == 9999.0);
  CHECK(json.at(5).at("stage") == 1);
  CHECK(json.at(5).at("world_size") == 1024);
  CHECK(json.at(5).at("largest").at("model").at("n_layer") == 1234);
}
