// Presets of precision: what each holds, that all stages and numbers of ranks compute the same bits with it, and that
// it computes what fp32 does but for rounding. Frozen parameters.
#include <cmath>
#include <map>

#include "catch_compat.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "device/cpu/cpu_device.h"
#include "model/segments.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/curve.h"
#include "train/session.h"
#include "zero/engine.h"

using namespace zt;
using namespace zt::test;

namespace {

Settings with_preset(Settings settings, std::string_view preset) {
  settings.precision.preset = preset;
  settings.loss_scale.initial_scale_power = 6;
  return settings;
}

void require_plan_is_kept(const Curve& curve) {
  CHECK(curve.held == curve.plan.memory);
  CHECK(curve.padding == curve.plan.padding);
  CHECK(curve.elements_sent == curve.elements_planned);
}

void require_stages_agree(const Settings& base, int ranks) {
  const Dataset data = data_for(base);
  const Curve reference = trace_curve(at(base, ranks, 0), data, ranks);
  CHECK(std::isfinite(reference.steps.back().loss));
  for (int stage = 0; stage <= 3; ++stage) {
    INFO("stage " << stage << ", " << ranks << " ranks, A = " << base.batch.accumulation << ", "
                  << base.precision.preset << " " << base.precision.communication_dtype);
    const Curve curve = trace_curve(at(base, ranks, stage), data, ranks);
    CHECK(curve.same_bits(reference));
    require_plan_is_kept(curve);
  }
}

}  // namespace

TEST_CASE("Every preset computes the same bits at all stages, with and without accumulation") {
  for (const PrecisionPreset& preset : precision_presets()) {
    for (const int ranks : {1, 3}) {
      for (const int accumulation : {1, 3}) {
        require_stages_agree(with_preset(with_batch(tiny_gpt(), 2, accumulation, ranks), preset.name), ranks);
        require_stages_agree(with_preset(with_batch(tiny_mlp(), 3, accumulation, ranks), preset.name), ranks);
      }
    }
  }
}

TEST_CASE("Every preset computes the same bits at every number of ranks if sums are fp32") {
  for (const PrecisionPreset& preset : precision_presets()) {
    for (const bool is_gpt : {true, false}) {
      Settings settings = with_preset(with_batch(is_gpt ? tiny_gpt() : tiny_mlp(), 2, 12, 1), preset.name);
      settings.precision.grad_accum_dtype = "fp32";
      settings.model.gpt.resid_pdrop = settings.model.gpt.attn_pdrop = 0.1;
      settings.checkpoint_every = 2;
      const Dataset data = data_for(settings);
      const Curve reference = trace_curve(at(settings, 1, 0), data, 1);
      for (const int ranks : {2, 3, 4}) {
        for (const int stage : {0, 1, 3}) {
          INFO(preset.name << ", " << ranks << " ranks, stage " << stage);
          const Curve curve = trace_curve(at(settings, ranks, stage), data, ranks);
          CHECK(curve.same_bits(reference));
          require_plan_is_kept(curve);
        }
      }
    }
  }
}

TEST_CASE("Every preset computes what fp32 does but for rounding, and only O0 has its very bits") {
  for (const bool is_gpt : {true, false}) {
    Settings settings = with_batch(is_gpt ? tiny_gpt() : tiny_mlp(), 4, 2, 1);
    settings.gradient_clipping = 0.0;
    settings.training.max_steps = 1;
    const Dataset data = data_for(settings);
    const Curve exact = trace_curve(settings, data, 1);
    for (const PrecisionPreset& preset : precision_presets()) {
      INFO(preset.name << (is_gpt ? " gpt" : " mlp"));
      const Curve curve = trace_curve(with_preset(settings, preset.name), data, 1);
      const bool bf16 = preset.precision.compute == DType::bf16 || preset.precision.gradient == DType::bf16;
      CHECK(curve.steps[0].loss == Approx(exact.steps[0].loss).epsilon(bf16 ? 1e-2 : 2e-3));
      CHECK(curve.steps[0].grad_norm == Approx(exact.steps[0].grad_norm).epsilon(bf16 ? 3e-2 : 5e-3));
      CHECK((curve.checksum == exact.checksum) == (preset.name == "fp32" || preset.name == "O0"));
    }
  }
}

TEST_CASE("Per-operation precision rounds operands of products and nothing else") {
  // One linear layer on one row: the prediction is a product of rounded operands, summed and rounded once.
  Settings settings = with_batch(tiny_mlp(), 4, 1, 1);
  settings.model.mlp.layers = {20, 3};
  settings.model.mlp.bias = false;
  settings.training.max_steps = 1;
  const Dataset data = data_for(settings);
  const Curve o1 = trace_curve(with_preset(settings, "O1"), data, 1);
  const Curve fp16 = trace_curve(with_preset(settings, "fp16"), data, 1);
  const Curve fp32 = trace_curve(settings, data, 1);
  // The forward pass of O1 is that of fp16 with fp32 masters, whose copies are the rounded weights.
  CHECK(o1.steps[0].loss == fp16.steps[0].loss);
  CHECK(o1.steps[0].loss != fp32.steps[0].loss);
  CHECK(o1.checksum != fp16.checksum);  // gradients are fp32
}

TEST_CASE("Gradients travel in communication_data_type, at every stage alike") {
  for (const std::string preset : {"fp32", "bf16", "fp16", "O2", "O1"}) {
    for (const std::string wire : {"fp32", "bf16", "fp16"}) {
      for (const int accumulation : {1, 2}) {
        Settings settings = with_preset(with_batch(tiny_gpt(), 2, accumulation, 3), preset);
        settings.precision.communication_dtype = wire;
        require_stages_agree(settings, 3);
      }
    }
  }
  Settings settings = with_batch(tiny_gpt(), 2, 1, 2);
  const Dataset data = data_for(settings);
  const auto sent = [&](const std::string& wire, int stage) {
    Settings here = at(settings, 2, stage);
    here.precision.communication_dtype = wire;
    return trace_curve(here, data, 2);
  };
  // Half the bytes on the way and in the unreduced gradients; other bits, as they are rounded before they are added up.
  const Curve whole = sent("", 2);
  const Curve half = sent("bf16", 2);
  const auto ring = [](const Curve& curve) {
    return curve.held.at(static_cast<std::size_t>(MemoryCategory::communication));
  };
  CHECK(2 * ring(half) == ring(whole));
  CHECK(half.elements_sent == whole.elements_sent);
  CHECK(!half.same_bits(whole));
  CHECK(sent("fp32", 2).same_bits(whole));
}

TEST_CASE("What each preset holds follows from its formats") {
  struct Row {
    std::string preset;
    double stage_0, stage_3_of_4, accumulating;
  };
  // Adam: parameter + gradient (sum) + master + two moments.
  const std::vector<Row> rows = {
      {"fp32", 16, 4, 16},         {"fp16", 16, 4, 18},      {"bf16", 16, 4, 18},   {"fp16_masters", 12, 3, 12},
      {"bf16_masters", 12, 3, 12}, {"bf16_states", 8, 2, 8}, {"O0", 16, 4, 16},     {"O1", 16, 4, 16},
      {"O2", 16, 4, 18},           {"O3", 8, 2, 8},          {"O3_norms", 8, 2, 8}, {"autocast_fp16", 16, 4, 16},
      {"autocast_bf16", 16, 4, 16}};
  CHECK(rows.size() == precision_presets().size());
  for (const Row& row : rows) {
    INFO(row.preset);
    const PrecisionSettings settings{row.preset, "", ""};
    CHECK(formula_bytes_per_parameter(0, 4, make_precision(settings, 1), 1, 2) == row.stage_0);
    CHECK(formula_bytes_per_parameter(3, 4, make_precision(settings, 1), 1, 2) == row.stage_3_of_4);
    CHECK(formula_bytes_per_parameter(0, 4, make_precision(settings, 4), 4, 2) == row.accumulating);

    // The bytes of a model without padding are the formula's, at every stage.
    for (const int accumulation : {1, 4}) {
      for (int stage = 0; stage <= 3; ++stage) {
        Settings run = with_preset(with_batch(tiny_mlp(), 2, accumulation, 2), row.preset);
        run.model.mlp.layers = {256, 256, 512};
        run.model.mlp.bias = true;
        run.optimizer.type = "AdamW";
        run.optimizer.momentum = 0.0;
        run.training.max_steps = 1;
        run.zero.stage = stage;
        const Curve curve = trace_curve(run, data_for(run), 2);
        const auto bytes = [&](MemoryCategory category) {
          return static_cast<double>(curve.held.at(static_cast<std::size_t>(category)));
        };
        CHECK(bytes(MemoryCategory::parameters) + bytes(MemoryCategory::gradients) + bytes(MemoryCategory::optimizer) ==
              curve.plan.formula_bytes * static_cast<double>(curve.plan.parameters));
      }
    }
  }
  // Norms in fp32 weigh in with their own bytes: 4 + 4 + 8 of Adam in place of 2 + 2 + 4 + 8.
  const Precision o2 = make_precision({"O2", "", ""}, 1);
  CHECK(formula_bytes_per_parameter(1, 2, o2, 1, 2, {900, 100}) == Approx(0.9 * (4 + 6) + 0.1 * (8 + 4)));
}

TEST_CASE("An unknown precision is refused with the names that there are") {
  CHECK_THROWS_AS(precision_preset("fp8"), UserError);
  CHECK_THROWS_WITH(precision_preset("fp8"), Catch::Contains("autocast_bf16"));
}

// ---- Frozen parameters

namespace {

using Weights = std::map<std::string, std::vector<float>>;

// All weights of a run on one rank, before and after it.
std::pair<Weights, Weights> weights_around_training(const Settings& settings, const Dataset& data) {
  std::pair<Weights, Weights> result;
  run_ranks_as_threads(1, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, 0, 1, 1, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, data.training.get(), data.validation.get());
    session.initialize();
    const auto read = [&](Weights& weights) {
      visit_weights(session.engine(), session.states(),
                    [&](const TensorPlace& tensor, std::int64_t offset, TensorView values) {
                      REQUIRE(offset == 0);
                      std::vector<float>& out = weights[tensor.name];
                      out.resize(static_cast<std::size_t>(values.count));
                      device.run(Stream::compute, Cast{.in = values, .out = {out.data(), values.count, DType::f32}});
                    });
      device.synchronize(Stream::compute);
    };
    read(result.first);
    for (std::int64_t step = 0; step < settings.training.max_steps; ++step) session.train_step();
    read(result.second);
  });
  return result;
}

Settings frozen(Settings settings, std::vector<std::string> patterns) {
  settings.model.freeze = std::move(patterns);
  return settings;
}

}  // namespace

TEST_CASE("Frozen parameters stay as they are, the others move") {
  struct Case {
    std::vector<std::string> patterns;
    bool tied;
  };
  const std::vector<Case> cases = {{{"wte"}, true},
                                   {{"wte", "wpe"}, true},
                                   {{"wpe.weight"}, true},
                                   {{"h.0", "h.2"}, true},
                                   {{"*.bias"}, true},
                                   {{"*ln_*"}, false},
                                   {{"wte", "wpe", "h.0", "h.1"}, false},
                                   {{"lm_head"}, false},
                                   {{"h.*", "wpe", "wte", "lm_head"}, false},
                                   {{"h", "wpe", "wte"}, true}};
  for (const Case& which : cases) {
    Settings settings = frozen(with_batch(tiny_gpt(), 2, 2, 1), which.patterns);
    settings.model.gpt.tie_word_embeddings = which.tied;
    settings.optimizer.weight_decay = 0.1;
    const auto [before, after] = weights_around_training(settings, data_for(settings));
    for (const auto& [name, values] : before) {
      const bool is_frozen = std::any_of(which.patterns.begin(), which.patterns.end(),
                                         [&](const std::string& pattern) { return names_parameter(pattern, name); });
      INFO(name << " with " << which.patterns.front());
      CHECK((after.at(name) == values) == is_frozen);
    }
  }
}

TEST_CASE("With frozen parameters all stages and numbers of ranks compute the same bits") {
  const std::vector<std::vector<std::string>> pattern_sets = {
      {"wte", "h.0"}, {"h.1.attn", "*.bias"}, {"wte", "wpe", "h.0", "h.1"}, {"*.weight"}};
  for (const std::vector<std::string>& patterns : pattern_sets) {
    for (const std::string preset : {"fp32", "bf16", "O1", "O2"}) {
      Settings settings = with_preset(frozen(with_batch(tiny_gpt(), 2, 12, 1), patterns), preset);
      settings.zero.param_persistence_threshold = 100;
      const Dataset data = data_for(settings);
      const Curve reference = trace_curve(at(settings, 1, 0), data, 1);
      for (const int ranks : {1, 3, 4}) {
        for (int stage = 0; stage <= 3; ++stage) {
          INFO(patterns.front() << " " << preset << ", " << ranks << " ranks, stage " << stage);
          const Curve curve = trace_curve(at(settings, ranks, stage), data, ranks);
          CHECK(curve.same_bits(reference));
          require_plan_is_kept(curve);
        }
      }
    }
  }
}

TEST_CASE("A frozen parameter has no gradient and no state, and sends nothing but itself") {
  Settings base = with_batch(tiny_mlp(), 2, 1, 2);
  base.model.mlp.layers = {256, 256, 256, 512};
  base.model.mlp.bias = false;
  base.optimizer.type = "AdamW";
  base.training.max_steps = 1;
  const Dataset data = data_for(base);
  const double elements[] = {256.0 * 256.0, 256.0 * 256.0, 256.0 * 512.0};
  const double all = elements[0] + elements[1] + elements[2];
  for (const std::string preset : {"fp32", "bf16"}) {
    for (int stage = 0; stage <= 3; ++stage) {
      INFO(preset << ", stage " << stage);
      Settings settings = with_preset(frozen(base, {"layers.1"}), preset);
      settings.zero.stage = stage;
      const Curve curve = trace_curve(settings, data, 2);
      const Curve whole = trace_curve(at(with_preset(base, preset), 2, stage), data, 2);
      const auto bytes = [](const Curve& of, MemoryCategory category) {
        return static_cast<double>(of.held.at(static_cast<std::size_t>(category)));
      };
      const double trained_share = (all - elements[1]) / all;
      CHECK(bytes(curve, MemoryCategory::parameters) == bytes(whole, MemoryCategory::parameters));
      CHECK(bytes(curve, MemoryCategory::gradients) == trained_share * bytes(whole, MemoryCategory::gradients));
      CHECK(bytes(curve, MemoryCategory::optimizer) == trained_share * bytes(whole, MemoryCategory::optimizer));
      const double states = bytes(curve, MemoryCategory::parameters) + bytes(curve, MemoryCategory::gradients) +
                            bytes(curve, MemoryCategory::optimizer);
      CHECK(states == Approx(curve.plan.formula_bytes * all).epsilon(1e-12));
      CHECK(static_cast<double>(curve.plan.trained_parameters()) == all - elements[1]);
      if (stage < 3) CHECK(static_cast<double>(curve.elements_sent) == curve.plan.paper_elements * all);
      if (stage == 3) CHECK(curve.elements_sent < whole.elements_sent);
    }
  }
}

TEST_CASE("Patterns that name nothing, or everything, are refused") {
  const auto assign = [](const std::vector<std::string>& patterns) {
    return model_units(frozen(tiny_gpt(), patterns));
  };
  CHECK_THROWS_WITH(assign({"h.7"}), Catch::Contains("\"h.7\" names no parameter") && Catch::Contains("wte.weight"));
  CHECK_THROWS_WITH(assign({"h.0", "hh", "x*"}), Catch::Contains("\"hh\", \"x*\" names no parameter"));
  CHECK_THROWS_WITH(assign({"hh"}), Catch::Contains("of each block, h.0 to h.2: .attn.c_attn.weight"));
  CHECK_THROWS_WITH(assign({"*"}), Catch::Contains("nothing is left to train"));
  CHECK_NOTHROW(assign({}));
  CHECK(names_parameter("h.1", "h.1.attn.c_attn.weight"));
  CHECK(!names_parameter("h.1", "h.10.attn.c_attn.weight"));
  CHECK(names_parameter("*c_attn*", "h.10.attn.c_attn.weight"));
}
