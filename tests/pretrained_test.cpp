// Weights of other programs in training: what the transformers library computes with them, and how it trains on.
#include <map>

#include "checkpoint/load_weights.h"
#include "formats_support.h"
#include "golden_training.h"
#include "zero/finish_step.h"

using namespace zt;
using namespace zt::testing;

namespace {

Settings settings_for(const golden::GoldenFile& file, const WeightSource& source, std::int64_t rows, int ranks,
                      int stage, const std::string& precision = "fp32") {
  Settings settings = golden::settings_of(file, "adamw", rows, ranks, stage);
  settings.model = source.model();
  settings.precision.preset = precision;
  return settings;
}

// Calls body(session, communicator) on every rank once the weights have been loaded.
template <typename Body>
void with_loaded(const Settings& settings, const Source& data, const WeightSource& source, int ranks, Body&& body) {
  run_ranks_as_threads(ranks, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, communicator.rank(), ranks, 0, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, &data, nullptr);
    session.initialize(&source);
    body(session, communicator);
  });
}

}  // namespace

TEST_CASE("logits of a loaded model are those of transformers to 1e-5") {
  for (const char* name : {"gpt2", "gpt2_sharded"}) {
    const golden::GoldenFile file(name);
    const auto source = open_weights(golden_path(name));
    Settings settings = settings_for(file, *source, 4, 1, 0);
    const std::vector<float> expected = file.floats("logits");
    const std::vector<std::int32_t> tokens = file.integers("tokens");
    const auto positions = static_cast<std::size_t>(settings.model.gpt.n_positions);
    const auto vocabulary = static_cast<std::size_t>(settings.model.gpt.vocab_size);
    settings.training.sample_prompt = "x";  // the plan reckons with logits of a last token
    run_ranks_as_threads(1, 0, [&](Communicator& communicator) {
      const Plan plan = make_plan(settings, 0, 1, 0, scratch_of_device(settings.device));
      cpu::CpuDevice device(1);
      const Precision precision = make_precision(settings.precision, 1);
      const auto model = make_model(settings, precision, device, settings.batch.micro);
      for (const Operation& operation : plan.operations) device.prepare(operation);
      device.reserve_workspace();
      const Layout layout(model->units(), 1);
      const auto engine = make_engine({device, communicator, layout, precision, 1, settings.zero});
      const auto optimizer = make_optimizer(settings.optimizer);
      DeviceStateStore states(*engine, *optimizer);
      engine->follow(*model);
      load_weights(*engine, states, *source);
      double largest = 0.0;
      for (std::size_t row = 0; row < 4; ++row) {
        for (std::size_t length = 1; length <= positions; ++length) {
          const float* logits = model->next_token_logits(device, *engine, tokens.data() + row * positions,
                                                         static_cast<std::int64_t>(length));
          for (std::size_t i = 0; i < vocabulary; ++i) {
            const float theirs = expected[(row * positions + length - 1) * vocabulary + i];
            largest = std::max(largest, std::abs(static_cast<double>(logits[i]) - theirs));
          }
        }
      }
      INFO(name << ": largest difference " << largest);
      CHECK(largest < 1e-5);
    });
  }
}

TEST_CASE("a loaded model trains on along PyTorch's own losses, at every stage and on several ranks") {
  for (const char* name : {"gpt2", "gpt2_sharded"}) {
    const golden::GoldenFile file(name);
    const auto source = open_weights(golden_path(name));
    const golden::OneBatch data(file);
    const std::vector<double> theirs = file.doubles("loss/adamw"), exact = file.doubles("loss64/adamw");
    for (const auto& [ranks, stage] : std::vector<std::pair<int, int>>{{1, 0}, {2, 1}, {4, 2}, {4, 3}}) {
      const Settings settings = settings_for(file, *source, data.samples(), ranks, stage);
      with_loaded(settings, data, *source, ranks, [&](Session& session, Communicator& communicator) {
        double first = 0.0, last = 0.0;
        for (std::size_t step = 0; step < theirs.size(); ++step) {
          const StepOutcome outcome = session.train_step();
          if (communicator.rank() != 0) continue;  // assertions are for one thread
          if (step == 0) first = outcome.loss;
          last = outcome.loss;
          INFO(name << " on " << ranks << " ranks, step " << step << ": " << outcome.loss << ", " << theirs[step]);
          CHECK(std::abs(outcome.loss - exact[step]) < 2e-5);
          CHECK(std::abs(outcome.loss - theirs[step]) < 2e-5);
        }
        if (communicator.rank() == 0) CHECK(last < first - 0.3);  // it has learned something
      });
    }
  }
}

TEST_CASE("loaded weights are the same at every stage, on every number of ranks, from every format") {
  const golden::GoldenFile file("gpt2");
  const golden::OneBatch data(file);
  std::map<std::string, std::uint64_t> checksums;
  for (const char* path : {"gpt2", "model.bin"}) {
    const auto source = open_weights(golden_path(path));
    for (const std::string precision : {"fp32", "bf16", "fp16"}) {
      for (const auto& [ranks, stage] :
           std::vector<std::pair<int, int>>{{1, 0}, {4, 0}, {4, 1}, {2, 2}, {4, 3}, {1, 3}}) {
        const Settings settings = settings_for(file, *source, data.samples(), ranks, stage, precision);
        with_loaded(settings, data, *source, ranks, [&](Session& session, Communicator& communicator) {
          const std::uint64_t checksum = session.weights_checksum();
          if (communicator.rank() == 0) CHECK(checksums.emplace("fp32 masters", checksum).first->second == checksum);
        });
      }
    }
  }
  CHECK(checksums.size() == 1);
}

TEST_CASE("frozen weights are loaded as they are held") {
  const golden::GoldenFile file("gpt2");
  const golden::OneBatch data(file);
  const auto source = open_weights(golden_path("gpt2"));
  const NamedValues expected = values_of(*source);
  Settings settings = settings_for(file, *source, data.samples(), 1, 3, "bf16");
  settings.model.freeze = {"h.0"};
  with_loaded(settings, data, *source, 1, [&](Session& session, Communicator&) {
    visit_weights(session.engine(), session.states(), [&](const TensorPlace& tensor, std::int64_t, TensorView values) {
      const bool is_frozen = tensor.name.starts_with("h.0.");
      CHECK((values.dtype == DType::bf16) == is_frozen);  // trained ones have masters in fp32
      if (values.dtype != DType::bf16) return;
      for (std::int64_t i = 0; i < values.count; ++i) {
        const float from = expected.at(tensor.name)[static_cast<std::size_t>(i)];
        REQUIRE(to_float(values.as<bf16_t>()[i]) == to_float(from_float<bf16_t>(from)));
      }
    });
  });
}

TEST_CASE("weights that do not fit the model, or are not finite, end the start with what differs") {
  const golden::GoldenFile file("gpt2");
  const golden::OneBatch data(file);
  const auto source = open_weights(golden_path("gpt2"));
  const auto message = [&](const WeightSource& weights, const auto& change) {
    Settings settings = settings_for(file, *source, data.samples(), 1, 0);
    change(settings.model.gpt);
    return message_of([&] { with_loaded(settings, data, weights, 1, [](Session&, Communicator&) {}); });
  };
  CHECK(contains(message(*source, [](GptSettings& gpt) { gpt.vocab_size = 64; }),
                 {"the model's vocabulary has 64 entries, that of the weights 29", "tokenizer"}));
  CHECK(contains(message(*source, [](GptSettings& gpt) { gpt.tie_word_embeddings = false; }),
                 {"it has not: lm_head.weight"}));
  CHECK(contains(message(*source, [](GptSettings& gpt) { gpt.n_inner = 16; }),
                 {"h.0.mlp.c_fc.weight ([16, 8] in the model, [32, 8] there)"}));
  LooseModel broken;
  const std::uint32_t nan = 0x7fc00000U;
  std::memcpy(broken.tensors.at("transformer.ln_f.weight").data.data() + 12, &nan, 4);
  CHECK(contains(message(*broken.open(), [](GptSettings&) {}), {"element 3 of ln_f.weight is not a number"}));
}
