// model.pretrained: what the weights say of the model, and what the config may say beside it.
#include "catch_compat.h"
#include "config/model_section.h"
#include "config_support.h"
#include "core/errors.h"

using namespace zt;
using namespace zt::testing;

namespace {

GptSettings gpt_there() {
  GptSettings gpt;
  gpt.n_layer = 3;
  gpt.n_head = 2;
  gpt.n_embd = 16;
  gpt.n_positions = 8;
  gpt.vocab_size = 100;
  gpt.activation_function = "gelu";
  gpt.resid_pdrop = 0.25;
  return gpt;
}

ModelSettings model_there() {
  ModelSettings model;
  model.type = "gpt";
  model.gpt = gpt_there();
  return model;
}

ResolvedConfig resolve(const std::string& model) {
  const ConfigDirectory directory;
  ResolveOptions options = directory.options();
  options.pretrained_model = [&](const std::string& path) {
    CHECK(path == (directory.path() / "weights").string());
    return PretrainedModel{model_section(model_there()), "the weights there"};
  };
  directory.write("a.json", R"({"model": )" + model + R"(, "data": {"type": "synthetic", "task": "tokens"},
      "train_batch_size": 8})");
  return resolve_config({"a.json"}, {}, 1, options);
}

std::string message(const std::string& model) {
  try {
    resolve(model);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("what the config does not say of the model is as in the weights, with a notice") {
  const ResolvedConfig config = resolve(R"({"type": "gpt", "pretrained": "weights"})");
  CHECK(model_section(config.settings.model) == model_section(model_there()));
  CHECK(config.settings.model.pretrained.ends_with("/weights"));
  CHECK(config.json["model"]["n_layer"] == 3);
  std::string notices;
  for (const std::string& notice : config.notices) notices += notice + "\n";
  CHECK(has(notices, "model.pretrained: as in the weights there: n_layer 3, n_head 2, n_embd 16"));
  CHECK(has(notices, "resid_pdrop 0.25"));
}

TEST_CASE("what the config does say must fit the weights; how it trains is its own matter") {
  const ResolvedConfig config = resolve(R"({"type": "gpt", "pretrained": "weights", "n_layer": 3, "n_inner": null,
      "vocab_size": "auto", "resid_pdrop": 0.0, "initializer_range": 1, "layer_norm_epsilon": 0.00001})");
  CHECK(config.settings.model.gpt.resid_pdrop == 0.0);
  CHECK(config.settings.model.gpt.vocab_size == 100);
  CHECK(config.settings.model.gpt.n_inner == 64);
  const std::string said = message(R"({"type": "gpt", "pretrained": "weights", "n_layer": 4, "vocab_size": 101,
      "n_inner": 65, "bias": false, "activation_function": "relu", "n_positions": 4})");
  for (const char* words : {"model.n_layer: found 4, but the weights there, which model.pretrained names, has 3",
                            "model.vocab_size: found 101", "model.n_inner: found 65", "model.bias: found false",
                            "model.activation_function: found \"relu\"", "model.n_positions: found 4"}) {
    INFO(words);
    CHECK(has(said, words));
  }
  CHECK(has(message(R"({"type": "mlp", "layers": [2, 1], "pretrained": "weights"})"), "has a model of type \"gpt\""));
}

TEST_CASE("weights that cannot be used are a mistake of the config among the others") {
  const ConfigDirectory directory;
  ResolveOptions options = directory.options();
  options.pretrained_model = [](const std::string&) -> PretrainedModel { throw UserError("they are broken"); };
  directory.write("a.json", R"({"model": {"type": "gpt", "pretrained": "weights", "n_layer": 0}})");
  try {
    resolve_config({"a.json"}, {}, 1, options);
    FAIL("nothing was refused");
  } catch (const ConfigError& error) {
    CHECK(has(error.what(), "model.pretrained: they are broken"));
    CHECK(has(error.what(), "model.n_layer"));
  }
}

TEST_CASE(
    "a run that goes on takes from its checkpoint what the config leaves open, and leaves the rest as it is said") {
  const ConfigDirectory directory;
  ResolveOptions options = directory.options();
  options.pretrained_model = [](const std::string&) {
    return PretrainedModel{model_section(model_there()), "the checkpoint", true};
  };
  directory.write("a.json", R"({"model": {"type": "gpt", "pretrained": "gone", "n_layer": 4},
      "data": {"type": "synthetic", "task": "tokens"}, "train_batch_size": 8})");
  const ResolvedConfig config = resolve_config({"a.json"}, {}, 1, options);
  CHECK(config.settings.model.gpt.n_layer == 4);  // which is compared with the checkpoint later
  CHECK(config.settings.model.gpt.n_embd == 16);
  CHECK(config.settings.model.gpt.vocab_size == 100);
}

TEST_CASE("where nobody looks at the weights, what they may bring is not held against the config") {
  const ConfigDirectory directory;
  const auto problem = [&](const std::string& model) {
    directory.write("a.json", R"({"model": )" + model + R"(, "data": {"type": "synthetic", "task": "tokens"},
        "train_batch_size": 8})");
    try {
      resolve_config({"a.json"}, {}, 1, directory.options());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(problem(R"({"type": "gpt", "pretrained": "weights", "n_head": 5})").empty());
  CHECK(has(problem(R"({"type": "gpt", "pretrained": "weights", "n_head": 5, "n_embd": 16})"), "model.n_head"));
  CHECK(has(problem(R"({"type": "gpt", "n_head": 5})"), "model.n_head"));
}
