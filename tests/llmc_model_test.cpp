// llm.c's model files, both ways.
#include "formats_support.h"

using namespace zt;
using namespace zt::testing;

TEST_CASE("a model file of llm.c holds the same weights as the directory that it was made from") {
  const auto expected = open_weights(golden_path("gpt2"));
  const auto single = open_weights(golden_path("model.bin"));
  CHECK(single->model().gpt.n_layer == 2);
  CHECK(single->model().gpt.vocab_size == 29);
  CHECK(values_of(*single) == values_of(*expected));
  const NamedValues rounded = values_of(*open_weights(golden_path("model_bf16.bin")));
  for (const auto& [name, values] : values_of(*expected)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE(rounded.at(name)[i] == to_float(from_float<bf16_t>(values[i])));
    }
  }
}

TEST_CASE("a model file is written as llm.c has it, to the byte") {
  const TemporaryFolder folder;
  const auto source = open_weights(golden_path("gpt2"));
  CHECK(export_llmc_model(*source, source->model(), folder.path("a")) == "model.bin");
  CHECK(content_of(folder.path("a/model.bin")) == content_of(golden_path("model.bin")));
  export_llmc_model(*source, source->model(), folder.path("b"), DType::bf16);
  CHECK(content_of(folder.path("b/model.bin")) == content_of(golden_path("model_bf16.bin")));
}

TEST_CASE("models that llm.c cannot express are refused with the key") {
  const TemporaryFolder folder;
  const auto source = open_weights(golden_path("gpt2"));
  const auto refused = [&](const auto& change) {
    ModelSettings model = source->model();
    change(model);
    return message_of([&] { export_llmc_model(*source, model, folder.path("out")); });
  };
  CHECK(contains(refused([](ModelSettings& m) { m.gpt.bias = false; }), {"model.bias"}));
  CHECK(contains(refused([](ModelSettings& m) { m.gpt.tie_word_embeddings = false; }), {"tie_word_embeddings"}));
  CHECK(contains(refused([](ModelSettings& m) { m.gpt.activation_function = "relu"; }), {"relu", "gelu_new"}));
  CHECK(contains(refused([](ModelSettings& m) { m.gpt.n_inner = 5; }), {"n_inner"}));
  CHECK(contains(refused([](ModelSettings& m) { m.gpt.layer_norm_epsilon = 1e-6; }), {"layer_norm_epsilon"}));
  CHECK(contains(refused([](ModelSettings& m) { m.type = "mlp"; }), {"mlp"}));
  CHECK(contains(message_of([&] { export_llmc_model(*source, source->model(), folder.path("out"), DType::f16); }),
                 {"fp16"}));
  CHECK_FALSE(std::filesystem::exists(folder.path("out")));
}

TEST_CASE("model files that are cut, too long, or lie in their header are refused") {
  const TemporaryFolder folder;
  const std::string whole = content_of(golden_path("model.bin"));
  const auto message = [&](const std::string& bytes) {
    const std::string path = folder.write("model.bin", bytes);
    return message_of([&] { open_llmc_model(path); });
  };
  const auto with = [&](std::size_t index, std::int32_t value) {
    std::string bytes = whole;
    std::memcpy(bytes.data() + 4 * index, &value, 4);
    return message(bytes);
  };
  CHECK(message(whole).empty());
  CHECK(contains(message(""), {"shorter than the header"}));
  CHECK(contains(message(whole.substr(0, 1023)), {"shorter than the header"}));
  CHECK(contains(message(whole.substr(0, whole.size() - 1)), {"no whole model file"}));
  CHECK(contains(message(whole + '\0'), {"after its header it has 12544 bytes, and there are 12545"}));
  CHECK(contains(with(0, 20240327), {"does not begin with 20240326"}));
  CHECK(contains(with(1, 4), {"version 4", "3 (fp32) and 5 (bf16)"}));
  CHECK(contains(with(1, 5), {"no whole model file"}));
  CHECK(contains(with(2, 0), {"longest sequence", "is 0"}));
  CHECK(contains(with(3, -1), {"vocabulary", "is -1"}));
  CHECK(contains(with(4, 2000000000), {"layers", "2000000000"}));
  CHECK(contains(with(4, 10000), {"no whole model file"}));
  CHECK(contains(with(5, 3), {"3 heads"}));
  CHECK(contains(with(6, 1 << 20), {"no whole model file"}));
  CHECK(contains(with(7, 28), {"padded vocabulary is smaller"}));
  CHECK(contains(with(7, 129), {"no whole model file"}));
}
