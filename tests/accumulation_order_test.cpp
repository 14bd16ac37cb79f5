// training.gradient_accumulation_order "local": stages 0 and 1 add up their own micro-batches and send the sums once a
// step. Curves, memory and traffic; accumulation_sums_test.cpp has what is added in which order.
#include "catch_compat.h"
#include "tiny_models.h"
#include "train/curve.h"
#include "zero/engine.h"

using namespace zt;
using namespace zt::test;

namespace {

const std::vector<std::string> presets = {"fp32", "bf16", "fp16"};

Settings locally(Settings settings) {
  settings.training.accumulation_order = AccumulationOrder::local;
  return settings;
}

Settings in_precision(Settings settings, const std::string& preset) {
  settings.precision.preset = preset;
  settings.loss_scale.initial_scale_power = 8;
  return settings;
}

void require_plan_is_kept(const Curve& curve) {
  CHECK(curve.held == curve.plan.memory);
  CHECK(curve.padding == curve.plan.padding);
  CHECK(curve.elements_sent == curve.elements_planned);
}

// Stages 0 and 1 in local order at one number of ranks: the same curve, which is returned.
Curve require_pair_agrees(const Settings& settings, const Dataset& data, int ranks, const CurveOptions& options = {}) {
  const Curve stage_0 = trace_curve(at(locally(settings), ranks, 0), data, ranks, options);
  const Curve stage_1 = trace_curve(at(locally(settings), ranks, 1), data, ranks, options);
  CHECK(stage_1.same_bits(stage_0));
  require_plan_is_kept(stage_0);
  require_plan_is_kept(stage_1);
  return stage_0;
}

}  // namespace

TEST_CASE("Local order: stages 0 and 1 agree, stages 2 and 3 keep the global curve, one rank or one micro-step too") {
  for (const std::string& preset : presets) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (const int accumulation : {1, 3, 4}) {
        for (const bool is_gpt : {true, false}) {
          INFO(preset << ", " << ranks << " ranks, A = " << accumulation << (is_gpt ? ", gpt" : ", mlp"));
          const Settings settings =
              in_precision(with_batch(is_gpt ? tiny_gpt() : tiny_mlp(), 2, accumulation, ranks), preset);
          const Dataset data = data_for(settings);
          const Curve global = trace_curve(at(settings, ranks, 1), data, ranks);
          const Curve local = require_pair_agrees(settings, data, ranks);
          const bool same_order = ranks == 1 || accumulation == 1;
          // A few 16-bit gradients may add up in fp32 without any rounding, in either order.
          if (same_order || preset == "fp32") CHECK(local.same_bits(global) == same_order);
          for (const int stage : {2, 3}) {
            const Curve sliced = trace_curve(at(locally(settings), ranks, stage), data, ranks);
            CHECK(sliced.same_bits(global));
            require_plan_is_kept(sliced);
          }
        }
      }
    }
  }
}

TEST_CASE("Local order holds and sends what its formulas say, exactly where tensors need no padding") {
  Settings base = tiny_mlp();
  base.model.mlp.layers = {256, 256, 256, 512};  // every tensor and slice a multiple of 128 elements
  base.model.mlp.bias = false;
  base.optimizer = {};
  base.training.max_steps = 2;
  base.training.eval_interval = 0;
  const Dataset data = data_for(base);
  for (const std::string& preset : presets) {
    for (const int ranks : {1, 2, 4}) {
      for (const int accumulation : {1, 3, 5}) {
        for (const int stage : {0, 1}) {
          INFO(preset << ", " << ranks << " ranks, A = " << accumulation << ", stage " << stage);
          const Settings settings =
              locally(at(in_precision(with_batch(base, 2, accumulation, ranks), preset), ranks, stage));
          const Curve curve = trace_curve(settings, data, ranks);
          require_plan_is_kept(curve);
          const auto parameters = static_cast<double>(curve.plan.parameters);
          const auto bytes = [&](MemoryCategory category) {
            return static_cast<double>(curve.held.at(static_cast<std::size_t>(category)));
          };
          CHECK(bytes(MemoryCategory::parameters) + bytes(MemoryCategory::gradients) +
                    bytes(MemoryCategory::optimizer) ==
                curve.plan.formula_bytes * parameters);
          CHECK(curve.padding == 0);
          const double others = (ranks - 1.0) / ranks;
          CHECK(curve.plan.paper_elements == 2.0 * others);
          CHECK(static_cast<double>(curve.elements_sent) == 2.0 * others * parameters * 2.0 /* steps */);
          const CollectiveCount& reduced =
              curve.counts.training.at(static_cast<std::size_t>(CollectiveKind::reduce_scatter));
          const double sent_bytes = accumulation == 1 && preset != "fp32" ? 2.0 : 4.0;  // sums are fp32
          CHECK(static_cast<double>(reduced.bytes) == sent_bytes * static_cast<double>(reduced.elements));
          CHECK(reduced.calls == 2 * 3);  // once a step and unit, with its one segment
        }
      }
    }
  }
}

TEST_CASE("The formulas of local order are the table's") {
  constexpr AccumulationOrder local = AccumulationOrder::local;
  for (const int ranks : {1, 2, 64}) {
    const double n = ranks;
    const auto bytes = [&](int stage, const PrecisionSettings& settings, int accumulation) {
      return formula_bytes_per_parameter(stage, ranks, make_precision(settings, accumulation), accumulation, 2, {1},
                                         local);
    };
    for (const char* half : {"bf16", "fp16"}) {
      CHECK(bytes(0, {half, "", ""}, 4) == 18.0);
      CHECK(bytes(1, {half, "", ""}, 4) == 6.0 + 12.0 / n);
      CHECK(bytes(1, {half, half, ""}, 4) == 4.0 + 12.0 / n);
      CHECK(bytes(2, {half, "", ""}, 4) == 2.0 + 16.0 / n);
      CHECK(bytes(3, {half, "", ""}, 4) == 18.0 / n);
      CHECK(bytes(1, {half, "", ""}, 1) == 4.0 + 12.0 / n);
    }
    CHECK(bytes(0, {"fp32", "", ""}, 4) == 16.0);
    CHECK(bytes(1, {"fp32", "", ""}, 4) == 8.0 + 8.0 / n);
    for (const int accumulation : {2, 9}) {
      const auto elements = [&](int stage) {
        return paper_elements_per_parameter(stage, ranks, accumulation, {1}, local);
      };
      CHECK(elements(0) == 2.0 * (n - 1.0) / n);
      CHECK(elements(1) == 2.0 * (n - 1.0) / n);
      CHECK(elements(2) == paper_elements_per_parameter(2, ranks, accumulation));
      CHECK(elements(3) == paper_elements_per_parameter(3, ranks, accumulation));
    }
  }
}

TEST_CASE("Local order keeps its bits with threads, odd addresses, recomputation, pretended nodes and late streams") {
  for (const std::string& preset : presets) {
    INFO(preset);
    Settings settings = in_precision(with_batch(tiny_gpt(), 2, 3, 3), preset);
    settings.model.gpt.attn_pdrop = 0.2;
    const Dataset data = data_for(settings);
    const Curve reference = require_pair_agrees(settings, data, 3);
    Settings threaded = settings;
    threaded.device.threads = 2;
    threaded.checkpoint_every = 2;
    CHECK(require_pair_agrees(threaded, data, 3).same_bits(reference));
    for (const CurveOptions& options :
         {CurveOptions{.misalignment = 4}, CurveOptions{.ranks_per_node = 1}, CurveOptions{.ranks_per_node = 2},
          CurveOptions{.lazy = true}, CurveOptions{.compute_late = true}}) {
      for (const int stage : {0, 1}) {
        CHECK(trace_curve(at(locally(settings), 3, stage), data, 3, options).same_bits(reference));
      }
    }
  }
}

TEST_CASE("Local order: frozen tensors, untied heads, dropout, sums in 16 bits, and losses read a step late") {
  for (const char* preset : {"fp32", "bf16"}) {
    INFO(preset);
    Settings settings = in_precision(with_batch(tiny_gpt(), 2, 3, 2), preset);
    settings.bf16_check_grad_overflow = false;
    const Dataset data = data_for(settings);
    const auto differs_late = [&](const Settings& variant) {
      const Curve at_once = require_pair_agrees(variant, data, 2);
      Settings late = variant;
      late.training.report_delay = 1;
      return !require_pair_agrees(late, data, 2).same_bits(at_once) ||
             !require_pair_agrees(late, data, 2, {.compute_late = true}).same_bits(at_once);
    };
    CHECK_FALSE(differs_late(settings));
    Settings frozen = settings;
    frozen.model.freeze = {"h.1", "*.bias", "wpe*"};  // a unit without gradients, and units without vectors' ones
    CHECK_FALSE(differs_late(frozen));
    Settings untied = settings;
    untied.model.gpt.tie_word_embeddings = false;
    untied.model.gpt.bias = false;
    untied.model.gpt.resid_pdrop = untied.model.gpt.embd_pdrop = 0.1;
    CHECK_FALSE(differs_late(untied));
    Settings short_sums = settings;
    short_sums.precision.grad_accum_dtype = preset;
    CHECK_FALSE(differs_late(short_sums));
  }
}

TEST_CASE("Local order: steps that overflow are skipped, or run again, alike at stages 0 and 1") {
  for (const OnOverflow on_overflow : {OnOverflow::skip, OnOverflow::retry}) {
    for (const char* sums : {"fp32", "fp16"}) {
      Settings settings = in_precision(with_batch(tiny_gpt(), 2, 3, 2), "fp16");
      settings.precision.grad_accum_dtype = sums;
      settings.loss_scale.initial_scale_power = 20;
      settings.loss_scale.hysteresis = 1;
      settings.loss_scale.on_overflow = on_overflow;
      settings.training.max_steps = 10;
      const Dataset data = data_for(settings);
      const Curve curve = require_pair_agrees(settings, data, 2);
      const bool retries = on_overflow == OnOverflow::retry;
      INFO("sums in " << sums << (retries ? ", run again" : ", skipped"));
      CHECK(curve.steps.front().skipped != retries);
      CHECK((curve.steps.front().retries > 0) == retries);
      CHECK_FALSE(curve.steps.back().skipped);
      CHECK(curve.steps.back().scale < 0x1p20);
    }
  }
}
