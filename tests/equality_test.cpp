// One curve: the same bits at every stage, every number of ranks, threads, alignments; memory and traffic as planned.

#include <iostream>
#include <set>

#include "catch_compat.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/curve.h"
#include "zero/engine.h"

using namespace zt;
using namespace zt::test;

namespace {

void require_plan_is_kept(const Curve& curve) {
  CHECK(curve.held == curve.plan.memory);
  CHECK(curve.padding == curve.plan.padding);
  CHECK(curve.elements_sent == curve.elements_planned);
}

// All stages at one number of ranks.
void require_stages_agree(const Settings& base, int ranks, const CurveOptions& options = {}) {
  const Dataset data = data_for(base);
  const Curve reference = trace_curve(at(base, ranks, 0), data, ranks, options);
  require_plan_is_kept(reference);
  for (int stage = 1; stage <= 3; ++stage) {
    INFO("stage " << stage << ", " << ranks << " ranks, A = " << base.batch.accumulation << ", "
                  << base.precision.preset);
    const Curve curve = trace_curve(at(base, ranks, stage), data, ranks, options);
    CHECK(curve.same_bits(reference));
    require_plan_is_kept(curve);
  }
}

struct Variant {
  std::string name;
  OptimizerSettings optimizer;
  SchedulerSettings schedule;
};

std::vector<Variant> variants_of_optimizers() {
  std::vector<Variant> variants;
  const auto add = [&](const char* name, const char* type) -> Variant& {
    Variant& variant = variants.emplace_back();
    variant.name = name;
    variant.optimizer.type = type;
    variant.optimizer.decoupled_decay = variant.optimizer.type == "AdamW";
    variant.optimizer.learning_rate = 0.05;
    variant.optimizer.weight_decay = 0.1;
    return variant;
  };
  const auto cycle = [](SchedulerSettings& schedule) {
    schedule.type = "OneCycle";
    schedule.cycle_min_lr = 1e-3;
    schedule.cycle_max_lr = 1e-2;
    schedule.cycle_first_step_size = 2;
    schedule.cycle_second_step_size = 1;
  };
  add("AdamW, AMSGrad", "AdamW").optimizer.amsgrad = true;
  add("Adam, AMSGrad", "Adam").optimizer.amsgrad = true;
  add("Adam, uncorrected", "Adam").optimizer.bias_correction = false;
  add("AdamW, biases not decayed", "AdamW").optimizer.decay_biases = false;
  add("AdamW, norms not decayed", "AdamW").optimizer.decay_norms = false;
  cycle(add("AdamW, cycled", "AdamW").schedule);
  add("SGD", "SGD");
  OptimizerSettings& dampened = add("SGD, dampened", "SGD").optimizer;
  dampened.momentum = 0.9;
  dampened.dampening = 0.3;
  OptimizerSettings& nesterov = add("SGD, Nesterov", "SGD").optimizer;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  Variant& cycled = add("SGD, cycled", "SGD");
  cycled.optimizer.momentum = 0.9;
  cycle(cycled.schedule);
  add("Adagrad", "Adagrad");
  OptimizerSettings& slowing = add("Adagrad, slowing", "Adagrad").optimizer;
  slowing.lr_decay = 0.5;
  slowing.initial_accumulator_value = 0.25;
  cycle(add("Lion, cycled", "Lion").schedule);
  add("Lamb", "Lamb");
  OptimizerSettings& bounded = add("Lamb, bounded, uncorrected, epsilon inside, biases not decayed", "Lamb").optimizer;
  bounded.max_coeff = 0.7;
  bounded.min_coeff = 0.2;
  bounded.epsilon = 1e-4;
  bounded.epsilon_inside_root = true;
  bounded.bias_correction = false;
  bounded.decay_biases = false;
  add("Muon", "Muon").optimizer.momentum = 0.95;
  OptimizerSettings& muon = add("Muon, Nesterov, rates apart", "Muon").optimizer;
  muon.momentum = 0.8;
  muon.nesterov = true;
  muon.decoupled_decay = true;
  muon.matrix_rate = 0.5;
  muon.other_rate = 0.1;
  cycle(add("Muon, cycled", "Muon").schedule);
  return variants;
}

const std::vector<DType> all_dtypes = {DType::f32, DType::bf16, DType::f16};

}  // namespace

TEST_CASE(
    "All stages compute the same bits, at every number of ranks, in every precision, with and without accumulation") {
  for (const DType dtype : all_dtypes) {
    for (const int ranks : {1, 2, 3, 4, 5, 7}) {
      for (const int accumulation : {1, 4}) {
        Settings gpt = with_batch(tiny_gpt(), 2, accumulation, ranks);
        gpt.precision.preset = name_of(dtype);
        gpt.loss_scale.initial_scale_power = 8;
        require_stages_agree(gpt, ranks);
        Settings mlp = with_batch(tiny_mlp(), 3, accumulation, ranks);
        mlp.precision.preset = name_of(dtype);
        mlp.loss_scale.initial_scale_power = 8;
        require_stages_agree(mlp, ranks);
      }
    }
  }
}

TEST_CASE("All stages agree on which fp16 steps overflow, and go on alike afterwards") {
  for (const int ranks : {1, 3}) {
    Settings settings = with_batch(tiny_gpt(), 2, 2, ranks);
    settings.precision.preset = "fp16";
    settings.loss_scale.initial_scale_power = 32;
    settings.training.max_steps = 26;
    require_stages_agree(settings, ranks);
    const Curve curve = trace_curve(at(settings, ranks, 2), data_for(settings), ranks);
    CHECK(curve.steps.front().skipped);
    CHECK(!curve.steps.back().skipped);
  }
}

TEST_CASE(
    "All stages agree without clipping, untied, without biases, with dropout, with recomputed blocks, with logits in "
    "parts") {
  for (const int ranks : {1, 2, 3}) {
    for (const DType dtype : all_dtypes) {
      Settings settings = with_batch(tiny_gpt(), 2, 2, ranks);
      settings.precision.preset = name_of(dtype);
      settings.loss_scale.initial_scale_power = 4;
      settings.gradient_clipping = 0.0;
      settings.model.gpt.tie_word_embeddings = false;
      settings.model.gpt.bias = false;
      settings.model.gpt.n_inner = 40;
      settings.model.gpt.activation_function = "silu";
      require_stages_agree(settings, ranks);
      settings.model.gpt.embd_pdrop = settings.model.gpt.resid_pdrop = settings.model.gpt.attn_pdrop = 0.1;
      require_stages_agree(settings, ranks);
      settings.checkpoint_every = 2;
      require_stages_agree(settings, ranks);
      settings.model.gpt.head_rows = 5;
      require_stages_agree(settings, ranks);
    }
  }
}

TEST_CASE("The number of ranks does not change a bit, with the same micro-batch and global batch") {
  struct World {
    std::int64_t micro_batches;
    std::vector<int> ranks;
  };
  for (const World& world : {World{12, {1, 2, 3, 4}}, World{20, {1, 4, 5}}, World{14, {1, 2, 7}}}) {
    for (const DType dtype : all_dtypes) {
      for (const bool is_gpt : {true, false}) {
        Settings settings = is_gpt ? tiny_gpt() : tiny_mlp();
        settings.precision.preset = name_of(dtype);
        settings.precision.grad_accum_dtype = "fp32";
        settings.loss_scale.initial_scale_power = 4;
        settings.model.gpt.resid_pdrop = settings.model.gpt.attn_pdrop = 0.1;
        settings = with_batch(settings, 2, world.micro_batches, 1);
        const Dataset data = data_for(settings);
        const Curve reference = trace_curve(at(settings, 1, 0), data, 1);
        for (const int ranks : world.ranks) {
          for (const int stage : {0, 2, 3}) {
            INFO(ranks << " ranks, stage " << stage << ", " << name_of(dtype) << ", J = " << world.micro_batches);
            const Curve curve = trace_curve(at(settings, ranks, stage), data, ranks);
            CHECK(curve.same_bits(reference));
            require_plan_is_kept(curve);
          }
        }
      }
    }
  }
}

TEST_CASE("Every variant of every optimizer gives the same bits at every stage and number of ranks, and plan is held") {
  const std::vector<Variant> variants = variants_of_optimizers();
  std::set<std::uint64_t> checksums;
  for (const Variant& variant : variants) {
    for (const DType dtype : all_dtypes) {
      Settings settings = with_batch(tiny_gpt(), 2, 12, 1);
      settings.training.max_steps = 5;
      settings.optimizer = variant.optimizer;
      settings.scheduler = variant.schedule;
      settings.precision.preset = name_of(dtype);
      settings.precision.grad_accum_dtype = "fp32";
      settings.loss_scale.initial_scale_power = 4;
      const Dataset data = data_for(settings);
      const Curve reference = trace_curve(at(settings, 1, 0), data, 1);
      require_plan_is_kept(reference);
      CHECK(checksums.insert(reference.checksum).second);  // no two variants are the same
      for (const int ranks : {1, 2, 4}) {
        for (int stage = ranks == 1 ? 1 : 0; stage <= 3; ++stage) {
          INFO(variant.name << ", " << name_of(dtype) << ", " << ranks << " ranks, stage " << stage);
          const Curve curve = trace_curve(at(settings, ranks, stage), data, ranks);
          CHECK(curve.same_bits(reference));
          require_plan_is_kept(curve);
        }
      }
    }
  }
}

TEST_CASE(
    "Threads, alignment of buffers, recomputation, pretended nodes, queued streams and repetition change no bit") {
  for (const DType dtype : all_dtypes) {
    Settings settings = with_batch(tiny_gpt(), 3, 2, 2);
    settings.precision.preset = name_of(dtype);
    settings.loss_scale.initial_scale_power = 6;
    settings.model.gpt.attn_pdrop = 0.2;
    const Dataset data = data_for(settings);
    for (int stage = 0; stage <= 3; ++stage) {
      INFO("stage " << stage << ", " << name_of(dtype));
      const Settings base = at(settings, 2, stage);
      const Curve reference = trace_curve(base, data, 2);
      CHECK(trace_curve(base, data, 2).same_bits(reference));
      for (const int threads : {2, 4}) {
        Settings threaded = base;
        threaded.device.threads = threads;
        CHECK(trace_curve(threaded, data, 2).same_bits(reference));
      }
      for (const std::int64_t bytes : {4, 20}) {
        CHECK(trace_curve(base, data, 2, {.misalignment = bytes}).same_bits(reference));
      }
      for (const std::int64_t every : {1, 2}) {
        Settings recomputing = base;
        recomputing.checkpoint_every = every;
        CHECK(trace_curve(recomputing, data, 2).same_bits(reference));
      }
      const Curve nodes = trace_curve(base, data, 2, {.ranks_per_node = 1});
      CHECK(nodes.same_bits(reference));
      require_plan_is_kept(nodes);
      CHECK(trace_curve(base, data, 2, {.lazy = true}).same_bits(reference));
      CHECK(trace_curve(base, data, 2, {.compute_late = true}).same_bits(reference));
    }
  }
}

TEST_CASE("Depth of the gather ring and persistent parameters change memory and traffic, never a bit") {
  Settings settings = with_batch(tiny_gpt(), 2, 2, 3);
  const Dataset data = data_for(settings);
  const Curve reference = trace_curve(at(settings, 3, 3), data, 3);
  settings.zero.max_live_parameters = 1 << 30;
  const Curve deep = trace_curve(at(settings, 3, 3), data, 3);
  CHECK(deep.same_bits(reference));
  require_plan_is_kept(deep);
  CHECK(deep.elements_sent < reference.elements_sent);
  settings.zero.max_live_parameters = 0;
  for (const std::int64_t threshold : {300, 3000, 1 << 30}) {
    settings.zero.param_persistence_threshold = threshold;
    const Curve persistent = trace_curve(at(settings, 3, 3), data, 3);
    CHECK(persistent.same_bits(reference));
    require_plan_is_kept(persistent);
  }
}

TEST_CASE("Gradients divided before they are added up give the same bits at every stage and number of ranks") {
  struct Division {
    double factor;
    bool prescale;
  };
  for (const DType dtype : all_dtypes) {
    Settings settings = with_batch(tiny_gpt(), 2, 12, 1);
    settings.precision.preset = name_of(dtype);
    settings.precision.grad_accum_dtype = "fp32";
    settings.loss_scale.initial_scale_power = 8;
    const Dataset data = data_for(settings);
    const Curve plain = trace_curve(at(settings, 1, 0), data, 1);
    for (const Division& division : {Division{8.0, false}, Division{3.0, false}, Division{1.0, true}}) {
      settings.gradient_predivide_factor = division.factor;
      settings.prescale_gradients = division.prescale;
      const Curve reference = trace_curve(at(settings, 1, 0), data, 1);
      // By a power of two nothing is rounded but what fp16 cannot hold; by others it is.
      if (dtype != DType::f16) CHECK(reference.same_bits(plain) == (division.factor == 8.0));
      CHECK(reference.steps.back().loss == Approx(plain.steps.back().loss).epsilon(1e-2));
      CHECK(reference.steps.front().grad_norm == Approx(plain.steps.front().grad_norm).epsilon(1e-2));
      for (const auto& [ranks, stage] : {std::pair{1, 3}, {3, 1}, {3, 2}, {4, 0}, {4, 3}}) {
        INFO(division.factor << ", " << name_of(dtype) << ", " << ranks << " ranks, stage " << stage);
        CHECK(trace_curve(at(settings, ranks, stage), data, ranks).same_bits(reference));
      }
    }
  }
}

TEST_CASE("Another seed, another learning rate or another clip gives other bits: the comparison can fail") {
  Settings settings = with_batch(tiny_gpt(), 2, 1, 2);
  const Dataset data = data_for(settings);
  const Curve reference = trace_curve(at(settings, 2, 1), data, 2);
  Settings other = settings;
  other.training.seed = 4321;
  CHECK(!trace_curve(at(other, 2, 1), data, 2).same_bits(reference));
  other = settings;
  other.optimizer.learning_rate *= 1.0001;
  CHECK(!trace_curve(at(other, 2, 1), data, 2).same_bits(reference));
}

TEST_CASE("Muon's bits are those of one rank in every precision, on ranks that own nothing and with frozen blocks") {
  for (const char* preset : {"fp32", "bf16", "fp16", "O2", "O3", "bf16_masters", "autocast_bf16"}) {
    for (const bool freezes : {false, true}) {
      Settings settings = with_batch(tiny_gpt(), 2, 5, 1);  // three blocks
      settings.optimizer.type = "Muon";
      settings.optimizer.momentum = 0.9;
      settings.optimizer.nesterov = true;
      settings.optimizer.learning_rate = 0.02;
      settings.precision.preset = preset;
      settings.precision.grad_accum_dtype = "fp32";
      settings.loss_scale.initial_scale_power = 4;
      if (freezes) settings.model.freeze = {"h.1", "h.0.attn"};
      const Dataset data = data_for(settings);
      const Curve reference = trace_curve(at(settings, 1, 0), data, 1);
      require_plan_is_kept(reference);
      for (const int ranks : {1, 5}) {
        for (int stage = ranks == 1 ? 1 : 0; stage <= 3; ++stage) {
          INFO(preset << (freezes ? ", frozen, " : ", ") << ranks << " ranks, stage " << stage);
          const Curve curve = trace_curve(at(settings, ranks, stage), data, ranks);
          CHECK(curve.same_bits(reference));
          require_plan_is_kept(curve);
          CHECK(trace_curve(at(settings, ranks, stage), data, ranks, {.lazy = true}).same_bits(reference));
        }
      }
    }
  }
}

TEST_CASE("Lamb's norms over ranks cost two sums of 69 integers a tensor and step, and no training traffic") {
  Settings settings = with_batch(tiny_gpt(), 2, 4, 1);
  settings.training.max_steps = 3;
  const Dataset data = data_for(settings);
  for (const int ranks : {1, 2}) {
    for (int stage = 0; stage <= 3; ++stage) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      settings.optimizer.type = "AdamW";
      const Curve adam = trace_curve(at(settings, ranks, stage), data, ranks);
      settings.optimizer.type = "Lamb";
      const Curve lamb = trace_curve(at(settings, ranks, stage), data, ranks);
      const auto control = [](const Curve& curve) {
        return curve.counts.control.at(static_cast<std::size_t>(CollectiveKind::all_reduce));
      };
      const std::int64_t tensors = 2 + settings.model.gpt.n_layer * 12 + 2;
      const std::int64_t sent = ranks > 1 && stage > 0 ? 3 * tensors * 2 * (exact_sum_limbs + 1) : 0;
      CHECK(control(lamb).elements - control(adam).elements == sent);
      CHECK(lamb.elements_sent == adam.elements_sent);
    }
  }
}

TEST_CASE("Muon sends each slice of a hidden matrix to a rank and back, and nothing where ranks hold everything") {
  for (const bool is_gpt : {true, false}) {
    // At 2 and 4 ranks no tensor is padded.
    Settings settings = with_batch(is_gpt ? tiny_gpt() : tiny_mlp(), 2, 4, 1);
    settings.model.gpt.n_embd = 32;
    settings.model.gpt.n_head = 2;
    settings.model.gpt.vocab_size = 64;
    settings.model.mlp.layers = {32, 64, 64, 16};
    settings.training.max_steps = 3;
    const Dataset data = data_for(settings);
    const std::int64_t hidden = is_gpt ? 3 * 12 * 32 * 32 : 32 * 64 + 64 * 64 + 64 * 16;
    for (const int ranks : {1, 2, 4}) {
      for (int stage = 0; stage <= 3; ++stage) {
        INFO((is_gpt ? "gpt" : "mlp") << ", stage " << stage << ", " << ranks << " ranks");
        settings.optimizer.type = "AdamW";
        const Curve adam = trace_curve(at(settings, ranks, stage), data, ranks);
        settings.optimizer.type = "Muon";
        const Curve muon = trace_curve(at(settings, ranks, stage), data, ranks);
        require_plan_is_kept(muon);
        const auto kind = [](const Curve& curve, CollectiveKind which) {
          return curve.counts.training.at(static_cast<std::size_t>(which));
        };
        for (const CollectiveKind which : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
          CHECK(kind(muon, which).elements == kind(adam, which).elements);
        CHECK(kind(adam, CollectiveKind::all_to_all).calls == 0);
        const CollectiveCount& matrices = kind(muon, CollectiveKind::all_to_all);
        CHECK(matrices.bytes == 4 * matrices.elements);
        if (ranks == 1 || stage == 0) {
          CHECK(matrices.calls == 0);
          continue;
        }
        // Rank 0's own share depends on what it owns; that of all ranks does not.
        CHECK(matrices.calls > 0);
        const double mean = muon.plan.matrix_elements * static_cast<double>(muon.plan.parameters);
        CHECK(mean * ranks == Approx(2.0 * static_cast<double>(hidden) * (ranks - 1) / ranks));
        std::int64_t of_all = 0;
        const Settings planned = at(settings, ranks, stage);
        for (int rank = 0; rank < ranks; ++rank) {
          const Plan plan = make_plan(planned, rank, ranks, 0, scratch_of_device(planned.device));
          of_all += plan.sent.at(static_cast<std::size_t>(CollectiveKind::all_to_all)).elements;
          if (rank == 0) {
            CHECK(3 * plan.sent.at(static_cast<std::size_t>(CollectiveKind::all_to_all)).elements == matrices.elements);
          }
        }
        CHECK(static_cast<double>(of_all) == Approx(mean * ranks));
      }
    }
  }
}

TEST_CASE("Muon keeps one moment of a hidden matrix and two of all else") {
  Settings settings = with_batch(tiny_gpt(), 2, 1, 2);
  settings.model.gpt.n_embd = 32;  // no tensor is padded
  settings.model.gpt.n_head = 2;
  const Dataset data = data_for(settings);
  for (const char* preset : {"fp32", "bf16", "O2", "O3"}) {
    settings.precision.preset = preset;
    settings.loss_scale.initial_scale_power = 4;
    for (int stage = 0; stage <= 3; ++stage) {
      INFO(preset << ", stage " << stage);
      settings.optimizer.type = "AdamW";
      const Curve adam = trace_curve(at(settings, 2, stage), data, 2);
      settings.optimizer.type = "Muon";
      const Curve muon = trace_curve(at(settings, 2, stage), data, 2);
      require_plan_is_kept(muon);
      const auto states = [](const Curve& curve) {
        return curve.held.at(static_cast<std::size_t>(MemoryCategory::optimizer));
      };
      // Where biases lie with the matrices (norms of another format) they keep both moments, and so does their segment.
      const bool biases_apart = std::string(preset) != "O2";
      const std::int64_t width = std::string(preset) == "O3" ? 2 : 4;
      const std::int64_t slices = stage == 0 ? 1 : 2;
      const std::int64_t hidden = 3 * 12 * 32 * 32;
      CHECK(states(adam) - states(muon) == (biases_apart ? hidden * width / slices : 0));
    }
  }
}

TEST_CASE("Model states are the formula's bytes exactly where tensors need no padding") {
  Settings base = tiny_mlp();
  base.model.mlp.layers = {256, 256, 256,
                           512};  // every tensor and slice a multiple of 128 elements at 1, 2 and 4 ranks
  base.model.mlp.bias = false;
  base.training.max_steps = 1;
  const Dataset data = data_for(base);
  std::vector<std::pair<OptimizerSettings, int>> optimizers(7);  // and how many moments each has
  optimizers[0] = {{}, 2};
  optimizers[1].first.amsgrad = true;
  optimizers[1].second = 3;
  optimizers[2].first.type = optimizers[3].first.type = "SGD";
  optimizers[3].first.momentum = 0.9;
  optimizers[3].second = 1;
  optimizers[4].first.type = "Adagrad";
  optimizers[4].first.initial_accumulator_value = 1.0;
  optimizers[4].second = 1;
  optimizers[5].first.type = "Lion";
  optimizers[5].second = 1;
  optimizers[6].first.type = "Muon";  // there are hidden matrices alone
  optimizers[6].second = 1;
  for (const auto& [optimizer, moments] : optimizers) {
    for (const DType dtype : all_dtypes) {
      for (const int ranks : {1, 2, 4}) {
        for (const int accumulation : {1, 4}) {
          for (int stage = 0; stage <= 3; ++stage) {
            INFO("stage " << stage << ", " << ranks << " ranks, A = " << accumulation << ", " << name_of(dtype));
            Settings settings = with_batch(base, 2, accumulation, ranks);
            settings.optimizer = optimizer;
            settings.precision.preset = name_of(dtype);
            settings.loss_scale.initial_scale_power = 4;
            settings.zero.stage = stage;
            const Curve curve = trace_curve(settings, data, ranks);
            const auto bytes = [&](MemoryCategory category) {
              return curve.held.at(static_cast<std::size_t>(category));
            };
            const std::int64_t states =
                bytes(MemoryCategory::parameters) + bytes(MemoryCategory::gradients) + bytes(MemoryCategory::optimizer);
            CHECK(static_cast<double>(states) == curve.plan.formula_bytes * static_cast<double>(curve.plan.parameters));
            CHECK(curve.padding == 0);
            const Precision precision = make_precision({std::string(name_of(dtype)), "", ""}, accumulation);
            CHECK(curve.plan.formula_bytes ==
                  formula_bytes_per_parameter(stage, ranks, precision, accumulation, moments));
          }
        }
      }
    }
  }
}

TEST_CASE("The formula's bytes per parameter are the table's") {
  const Precision bf16 = make_precision({"bf16", "", ""}, 1);
  const Precision bf16_accumulating = make_precision({"bf16", "", ""}, 4);
  const Precision fp32 = make_precision({"fp32", "", ""}, 1);
  for (const double n : {1.0, 2.0, 64.0}) {
    const int ranks = static_cast<int>(n);
    const auto adam = [&](int stage, const Precision& precision, int accumulation) {
      return formula_bytes_per_parameter(stage, ranks, precision, accumulation, 2);
    };
    CHECK(adam(0, bf16, 1) == 16.0);
    CHECK(adam(1, bf16, 1) == 4.0 + 12.0 / n);
    CHECK(adam(2, bf16, 1) == 2.0 + 14.0 / n);
    CHECK(adam(3, bf16, 1) == 16.0 / n);
    CHECK(adam(0, bf16_accumulating, 4) == 18.0);
    CHECK(adam(1, bf16_accumulating, 4) == 4.0 + 16.0 / n);
    CHECK(adam(2, bf16_accumulating, 4) == 2.0 + 16.0 / n);
    CHECK(adam(3, bf16_accumulating, 4) == 18.0 / n);
    CHECK(adam(0, fp32, 1) == 16.0);
    CHECK(adam(1, fp32, 1) == 8.0 + 8.0 / n);
    CHECK(adam(1, fp32, 4) == 8.0 + 12.0 / n);
    CHECK(adam(2, fp32, 1) == 4.0 + 12.0 / n);
    CHECK(adam(3, fp32, 4) == 16.0 / n);
  }
}
