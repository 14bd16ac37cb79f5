// A run that goes on from a checkpoint is the run that was never stopped: at any number of ranks, at any stage.
#include <algorithm>
#include <filesystem>

#include "catch_compat.h"
#include "checkpoint/directory.h"
#include "checkpoint/native.h"
#include "core/errors.h"
#include "run_program.h"
#include "tiny_models.h"
#include "train/curve.h"

using namespace zt;
using namespace zt::test;

namespace {

namespace fs = std::filesystem;

// For any number of ranks: those for which nothing is left in the last micro-step have none there.
Settings dealt_to(Settings settings, int ranks, int stage) {
  settings.batch.accumulation = (settings.batch.micro_batches() + ranks - 1) / ranks;
  settings.zero.stage = stage;
  return settings;
}

Settings gpt_with(const std::string& preset, std::int64_t micro_batches) {
  Settings settings = with_batch(tiny_gpt(), 2, micro_batches, 1);
  settings.precision.preset = preset;
  settings.precision.grad_accum_dtype = "fp32";
  settings.loss_scale.initial_scale_power = 20;
  settings.loss_scale.loss_scale_window = 3;
  settings.loss_scale.hysteresis = 1;
  settings.model.gpt.resid_pdrop = settings.model.gpt.attn_pdrop = settings.model.gpt.embd_pdrop = 0.1;
  return settings;
}

// The steps of `whole` from `first` on are those of `part`, and both end alike.
void require_same_end(const Curve& whole, const Curve& part, std::size_t first) {
  REQUIRE(part.steps.size() + first == whole.steps.size());
  Curve end = whole;
  end.steps.erase(end.steps.begin(), end.steps.begin() + static_cast<std::ptrdiff_t>(first));
  CHECK(part.same_bits(end));
  CHECK(part.elements_sent == part.elements_planned);
}

Curve trace(Settings settings, const Dataset& data, int ranks, std::int64_t steps, const CurveOptions& options = {}) {
  settings.training.max_steps = steps;
  return trace_curve(settings, data, ranks, options);
}

std::string at_step(const fs::path& checkpoints, std::int64_t step) {
  return (checkpoints / checkpoint_name(step)).string();
}

CurveOptions resumed_from(const std::string& checkpoint, const std::string& save_to = "") {
  CurveOptions options;
  options.resume_from = checkpoint;
  options.save_to = save_to;
  return options;
}
CurveOptions saving_to(const std::string& checkpoints) { return resumed_from("", checkpoints); }

}  // namespace

TEST_CASE("Ranks without a micro-batch in the last micro-step change no bit") {
  struct Kind {
    std::string name;
    Settings settings;
  };
  std::vector<Kind> kinds;
  for (const std::int64_t micro_batches : {1, 4, 5}) {
    for (const char* preset : {"fp32", "bf16", "fp16"}) kinds.push_back({preset, gpt_with(preset, micro_batches)});
    kinds.push_back({"untied", gpt_with("fp32", micro_batches)});
    kinds.back().settings.model.gpt.tie_word_embeddings = false;
    kinds.push_back({"recomputed", gpt_with("fp32", micro_batches)});
    kinds.back().settings.checkpoint_every = 1;
    kinds.push_back({"frozen embedding and block", gpt_with("fp32", micro_batches)});
    kinds.back().settings.model.freeze = {"wte", "wpe", "h.0"};
    kinds.push_back({"mlp", with_batch(tiny_mlp(), 2, micro_batches, 1)});
    kinds.back().settings.precision.grad_accum_dtype = "fp32";
  }
  for (const Kind& kind : kinds) {
    const Dataset data = data_for(kind.settings);
    const Curve reference = trace(dealt_to(kind.settings, 1, 0), data, 1, 3);
    for (const int ranks : {2, 3, 7}) {
      for (const int stage : {0, 1, 2, 3}) {
        INFO(kind.name << ", " << kind.settings.batch.micro_batches() << " micro-batches on " << ranks
                       << " ranks, stage " << stage);
        const Curve curve = trace(dealt_to(kind.settings, ranks, stage), data, ranks, 3);
        CHECK(curve.same_bits(reference));
        CHECK(curve.held == curve.plan.memory);
        CHECK(curve.elements_sent == curve.elements_planned);
      }
    }
  }
}

TEST_CASE("A resumed run has the bits of one that was never stopped, in every precision and at every stage") {
  for (const char* preset : {"fp32", "bf16", "fp16", "O2", "O3", "fp16_masters", "bf16_masters", "bf16_states"}) {
    for (const int stage : {0, 1, 2, 3}) {
      const int ranks = stage == 1 ? 3 : 2;
      INFO(preset << ", stage " << stage);
      Settings settings = gpt_with(preset, 2 * ranks);
      settings.precision.grad_accum_dtype = "";
      settings.training.spike_guard = {SpikeAction::skip, 6.0, 3};
      settings = dealt_to(settings, ranks, stage);
      const Dataset data = data_for(settings);
      const TemporaryDirectory place;
      const Curve whole = trace(settings, data, ranks, 10);
      for (const std::int64_t stop : {1, 4}) {
        trace(settings, data, ranks, stop, saving_to(place.path().string()));
        const Curve rest = trace(settings, data, ranks, 10, resumed_from(at_step(place.path(), stop)));
        require_same_end(whole, rest, static_cast<std::size_t>(stop));
      }
    }
  }
}

TEST_CASE("A run goes on at other numbers of ranks and other stages on the same curve") {
  for (const char* preset : {"fp32", "bf16", "fp16"}) {
    for (const bool is_gpt : {true, false}) {
      Settings settings = gpt_with(preset, 6);
      if (!is_gpt) {
        const Settings mlp = tiny_mlp();
        settings.model = mlp.model;
        settings.data = mlp.data;
        settings.optimizer = mlp.optimizer;
      }
      const Dataset data = data_for(settings);
      const TemporaryDirectory place;
      const Curve whole = trace(dealt_to(settings, 1, 0), data, 1, 10);
      struct Part {
        int ranks, stage;
      };
      std::int64_t step = 0;
      std::string from;
      for (const Part part : {Part{1, 0}, {4, 3}, {3, 1}, {7, 2}, {1, 0}}) {
        INFO(preset << ", " << part.ranks << " ranks at stage " << part.stage << " after step " << step);
        const Curve curve = trace(dealt_to(settings, part.ranks, part.stage), data, part.ranks, step + 2,
                                  resumed_from(from, place.path().string()));
        REQUIRE(curve.steps.size() == 2);
        for (std::size_t i = 0; i < 2; ++i) {
          const CurveStep& expected = whole.steps.at(static_cast<std::size_t>(step) + i);
          CHECK(curve.steps[i].loss == expected.loss);
          CHECK(curve.steps[i].scale == expected.scale);
          CHECK(curve.steps[i].skipped == expected.skipped);
        }
        step += 2;
        from = at_step(place.path(), step);
        if (step == 10) CHECK(curve.checksum == whole.checksum);
      }
    }
  }
}

TEST_CASE("Muon's fewer moments go on at other numbers of ranks, stages and precisions, and start anew from Adam's") {
  Settings settings = gpt_with("fp32", 6);
  settings.optimizer.type = "Muon";
  settings.optimizer.learning_rate = 0.02;
  settings.optimizer.momentum = 0.9;
  settings.model.freeze = {"h.1"};
  const Dataset data = data_for(settings);
  const TemporaryDirectory place;
  const Curve whole = trace(dealt_to(settings, 1, 0), data, 1, 8);
  std::int64_t step = 0;
  std::string from;
  for (const auto& [ranks, stage] : {std::pair{1, 2}, {4, 3}, {3, 1}, {7, 2}}) {
    INFO(ranks << " ranks at stage " << stage << " after step " << step);
    const Curve curve =
        trace(dealt_to(settings, ranks, stage), data, ranks, step + 2, resumed_from(from, place.path().string()));
    REQUIRE(curve.steps.size() == 2);
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(curve.steps[i].loss == whole.steps.at(static_cast<std::size_t>(step) + i).loss);
    step += 2;
    from = at_step(place.path(), step);
    if (step == 8) CHECK(curve.checksum == whole.checksum);
  }
  const NativeCheckpoint written(from);
  written.verify();
  const Manifest& manifest = written.manifest();
  CHECK(manifest.moments == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
  for (std::size_t index = 0; index < manifest.tensors.size(); ++index) {
    const CheckpointTensor& tensor = manifest.tensors[index];
    INFO(tensor.name);
    const bool frozen = tensor.name.starts_with("h.1.");
    const bool matrix = tensor.shape.size() == 2 && tensor.name.starts_with("h.");
    CHECK(written.has("exp_avg", static_cast<int>(index)) == !frozen);
    CHECK(written.has("exp_avg_sq", static_cast<int>(index)) == (!frozen && !matrix));
  }

  // Muon's matrices have no squares for Adam, which starts their mean anew, too: after one step m = (1 - beta1) g and
  // v = (1 - beta2) g^2.
  Settings adam = dealt_to(settings, 2, 3);
  adam.optimizer.type = "AdamW";
  adam.optimizer.learning_rate = 0.0;
  const TemporaryDirectory anew;
  trace(adam, data, 2, step + 1, resumed_from(from, anew.path().string()));
  const NativeCheckpoint after(at_step(anew.path(), step + 1));
  const int matrix = after.manifest().tensor_index("h.0.attn.c_attn.weight");
  REQUIRE(matrix >= 0);
  std::vector<float> mean(512), squares(512);
  after.read("exp_avg", matrix, 0, 512, mean.data());
  after.read("exp_avg_sq", matrix, 0, 512, squares.data());
  float largest = 0.0F;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    largest = std::max(largest, squares[i]);
    CHECK(mean[i] * mean[i] == Approx(10.0F * squares[i]).epsilon(1e-3).margin(1e-20));
  }
  CHECK(largest > 0.0F);

  // The mean of Adam's gradients becomes the momentum.
  for (const char* other : {"AdamW", "SGD"}) {
    Settings changed = dealt_to(settings, 2, 3);
    changed.optimizer.type = other;
    CHECK(trace(changed, data, 2, step + 2, resumed_from(from)).steps.size() == 2);
    const TemporaryDirectory theirs;
    trace(changed, data, 2, 2, saving_to(theirs.path().string()));
    CHECK(trace(dealt_to(settings, 3, 1), data, 3, 4, resumed_from(at_step(theirs.path(), 2))).steps.size() == 2);
  }
}

TEST_CASE("What is written in the background is what is written at once, to the byte") {
  Settings settings = dealt_to(gpt_with("bf16", 4), 2, 3);
  const Dataset data = data_for(settings);
  const TemporaryDirectory at_once, behind;
  trace(settings, data, 2, 2, saving_to(at_once.path().string()));
  settings.training.checkpoint_interval = 1;
  settings.training.checkpoint_in_background = true;
  const Curve curve = trace(settings, data, 2, 2, saving_to(behind.path().string()));
  CHECK(curve.held == curve.plan.memory);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(at_step(at_once.path(), 2))) {
    ++files;
    CAPTURE(entry.path());
    CHECK(contents_of(entry.path()) == contents_of(fs::path(at_step(behind.path(), 2)) / entry.path().filename()));
  }
  CHECK(files == 2 * 3 + 1);
  for (const TemporaryDirectory* place : {&at_once, &behind})
    CHECK(std::distance(fs::directory_iterator(place->path()), fs::directory_iterator()) == 2);  // and latest
}

TEST_CASE("A checkpoint holds every element once, whoever wrote it") {
  Settings settings = gpt_with("fp32", 6);
  const Dataset data = data_for(settings);
  const TemporaryDirectory one, many;
  trace(dealt_to(settings, 1, 0), data, 1, 2, saving_to(one.path().string()));
  trace(dealt_to(settings, 5, 3), data, 5, 2, saving_to(many.path().string()));
  const NativeCheckpoint a(at_step(one.path(), 2)), b(at_step(many.path(), 2));
  a.verify();
  b.verify();
  REQUIRE(a.manifest().tensors.size() == b.manifest().tensors.size());
  CHECK(b.manifest().files.size() == 5 * 3);
  for (const std::string& kind : a.manifest().kinds()) {
    for (std::size_t tensor = 0; tensor < a.manifest().tensors.size(); ++tensor) {
      const std::int64_t count = a.manifest().tensors[tensor].count();
      std::vector<float> of_one(static_cast<std::size_t>(count)), of_many(of_one.size());
      a.read(kind, static_cast<int>(tensor), 0, count, of_one.data());
      b.read(kind, static_cast<int>(tensor), 0, count, of_many.data());
      CHECK(of_one == of_many);
      float last = 0.0F;
      b.read(kind, static_cast<int>(tensor), count - 1, 1, &last);
      CHECK(last == of_one.back());
    }
  }
}
