// The program with weights of other programs: export, and training from model.pretrained.
#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

std::string golden(const std::string& name) {
  return std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/formats/" + name;
}

const char* const from_weights = R"({
  "train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
  "optimizer": { "type": "AdamW", "params": { "lr": 1e-3 } }, "data_types": { "grad_accum_dtype": "fp32" },
  "model": { "type": "gpt", "pretrained": "weights" },
  "data": { "type": "synthetic", "task": "tokens", "samples": 100 },
  "training": { "max_steps": 3, "eval_interval": 0 }, "device": { "threads": 1 }
})";

Json summary(const Workplace& place) { return Json::parse(contents_of(place.file("run/summary.json"))); }

}  // namespace

TEST_CASE("weights go from Hugging Face to llm.c and back without a bit lost, by the verb export") {
  const Workplace place;
  ProgramResult done = place.run_with({"export", "--checkpoint", golden("gpt2"), "--format", "llm.c", "--output", "c"});
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  CHECK(contents_of(place.file("c/model.bin")) == contents_of(golden("model.bin")));
  done = place.run_with(
      {"export", "--checkpoint", "c/model.bin", "--format", "huggingface", "--output", "h", "--largest-file", "6000"});
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  CHECK(done.err.find("wrote h: config.json, generation_config.json, model-00001-of-00002.safetensors") !=
        std::string::npos);
  done = place.run_with({"export", "--checkpoint", "h", "--format", "llm.c", "--output", "again"});
  CHECK(contents_of(place.file("again/model.bin")) == contents_of(golden("model.bin")));
}

TEST_CASE("export says what it is not given, and refuses a directory in use") {
  const Workplace place;
  CHECK(place.run_with({"export", "--help"}).code == 0);
  CHECK(place.run_with({"export", "--help"}).out.find("--checkpoint PATH") != std::string::npos);
  for (const auto& [arguments, words] : std::vector<std::pair<Arguments, std::string>>{
           {{"export"}, "--checkpoint"},
           {{"export", "--checkpoint", golden("gpt2"), "--format", "gguf", "--output", "x"}, "gguf"},
           {{"export", "--checkpoint", "nowhere", "--format", "llm.c", "--output", "x"}, "nowhere"},
           {{"export", "--checkpoint", golden("gpt2_sharded"), "--format", "llm.c", "--output", "x"},
            "tie_word_embeddings"},
           {{"export", "--checkpoint", golden("gpt2"), "--format", "llm.c", "--output", "."}, "holds files already"}}) {
    const ProgramResult result = place.run_with(arguments);
    INFO(words << ": " << result.err);
    CHECK(result.code == 2);
    CHECK(result.err.find(words) != std::string::npos);
  }
  CHECK_FALSE(fs::exists(place.file("x")));
}

TEST_CASE("a run starts from the weights that model.pretrained names, on one rank and on several") {
  const Workplace place(from_weights);
  fs::copy(golden("gpt2"), place.file("weights"));
  ProgramResult result = place.run({});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(result.err.find("model.pretrained: as in the Hugging Face GPT-2 in") != std::string::npos);
  const Json one = summary(place);
  // The same bits from llm.c's file, on three ranks that hold slices.
  result = place.run({"--overwrite", "--ranks", "4", "--set", "zero_optimization.stage=3", "--set",
                      "model.pretrained=" + golden("model.bin"), "--set", "model.embd_pdrop=0", "--set",
                      "model.resid_pdrop=0", "--set", "model.attn_pdrop=0"});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(summary(place).at("weights_checksum") == one.at("weights_checksum"));
  // The resolved config, which has every key, is a config for the same run.
  fs::copy_file(place.file("run/config.resolved.json"), place.file("resolved.json"));
  result = place.run_with({"--config", "resolved.json", "--output", "run", "--overwrite"});
  CHECK(summary(place).at("weights_checksum") == one.at("weights_checksum"));
}

TEST_CASE("a run goes on when the weights that it began with are gone, on the same curve") {
  Json config = Json::parse(from_weights);
  config["training"]["max_steps"] = 4;
  config["training"]["checkpoint_interval"] = 2;
  for (const char* weights : {"gpt2", "model.bin"}) {
    const Workplace whole(config.dump()), place(config.dump());
    fs::copy(golden(weights), whole.file("weights"));
    fs::copy(golden(weights), place.file("weights"));
    check_completes(whole.run({}));
    check_completes(place.run({"--set", "training.max_steps=2"}));
    fs::remove_all(place.file("weights"));
    ProgramResult result = place.run({"--resume", "--ranks", "2", "--set", "zero_optimization.stage=3"});
    check_completes(result);
    INFO(result.err);
    CHECK(result.err.find("model.pretrained: as in the checkpoint ") != std::string::npos);
    CHECK(summary(place).at("weights_checksum") == summary(whole).at("weights_checksum"));
    CHECK(summary(place).at("final") == summary(whole).at("final"));
    // From another directory, too; and what is said otherwise is found.
    result = place.run_with({"--config", "config.json", "--output", "other", "--resume", "run", "--set",
                             "training.max_steps=6", "--set", "model.n_layer=3"});
    check_fails(result, 2, "model.n_layer: 3, before 2");
    result = place.run_with(
        {"--config", "config.json", "--output", "other", "--resume", "run", "--set", "training.max_steps=6"});
    check_completes(result);
    // Without a checkpoint the run begins with the weights, which are missed.
    result = place.run_with({"--config", "config.json", "--output", "fresh", "--resume"});
    check_fails(result, 2, "model.pretrained: there is no");
  }
}

TEST_CASE("evaluate measures the weights that model.pretrained names, the same on any number of ranks") {
  Json config = Json::parse(from_weights);
  config["training"] = {{"max_steps", 1}, {"eval_interval", 1}, {"eval_steps", 1000}};
  config["optimizer"]["params"]["lr"] = 0.0;
  config["train_micro_batch_size_per_gpu"] = 2;
  for (const char* weights : {"gpt2", "model.bin"}) {
    const Workplace place(config.dump());
    fs::copy(golden(weights), place.file("weights"));
    check_completes(place.run({}));  // without learning
    const Arguments measure = {"evaluate", "--config", "config.json", "--json", "--set", "device.threads=1"};
    const ProgramResult one = place.run_with(measure);
    INFO(one.err);
    REQUIRE(one.code == 0);
    const Json json = Json::parse(one.out);
    CHECK(json.at("loss").dump() == summary(place).at("final").at("validation_loss").dump());
    CHECK(json.at("pretrained") == place.file("weights").string());
    CHECK_FALSE(json.contains("step"));
    for (const char* number : {"2", "3"}) CHECK(place.run_with(measure + ranks(std::atoi(number))).out == one.out);
    CHECK(place.run_with(measure + Arguments{"--set", "train_batch_size=12"}).out == one.out);
    const ProgramResult words = place.run_with({"evaluate", "--config", "config.json"});
    CHECK(words.out.find(weights == std::string("gpt2") ? "the Hugging Face GPT-2 in " : "weights, fp32") !=
          std::string::npos);
    fs::remove_all(place.file("weights"));
    check_fails(place.run_with(measure), 2, "model.pretrained: there is no");
  }
  const Workplace place;
  check_fails(place.run_with({"evaluate"}), 2, "evaluate needs weights: name a checkpoint");
  check_fails(place.run_with({"evaluate", "--config", "config.json"}), 2,
              "in config.json there is no model.pretrained");
}

TEST_CASE(
    "evaluate reads a text in the tokens of the weights' own tokenizer, or of data.tokenizer where they have none") {
  const std::string vocabulary = std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/byte_pairs/";
  Json config = Json::parse(tiny_gpt);
  config["model"] = {{"type", "gpt"}, {"n_layer", 1}, {"n_head", 2}, {"n_embd", 16}, {"n_positions", 8}};
  config["data"] = {{"type", "text"},
                    {"path", vocabulary + "corpus.txt"},
                    {"tokenizer", vocabulary + "tokenizer.json"},
                    {"validation_fraction", 0.2}};
  config["training"] = {{"max_steps", 1}, {"eval_interval", 1}, {"eval_steps", 100000}, {"checkpoint_interval", 1}};
  const Workplace place(config.dump());
  check_completes(place.run({}));
  check_completes(place.run_with({"export", "--checkpoint", "run", "--format", "llm.c", "--output", "c"}));
  const Json expected = Json::parse(place.run_with({"evaluate", "--checkpoint", "run", "--json"}).out);
  config["model"] = {{"type", "gpt"}};
  for (const auto& [pretrained, tokenizer] : std::vector<std::pair<std::string, std::string>>{
           {"run", "bytes"}, {"c/model.bin", vocabulary + "tokenizer.json"}}) {
    CAPTURE(pretrained);
    config["model"]["pretrained"] = pretrained;
    config["data"]["tokenizer"] = tokenizer;
    place.write("evaluate.json", config.dump());
    const ProgramResult result = place.run_with({"evaluate", "--config", "evaluate.json", "--json"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    const Json json = Json::parse(result.out);
    for (const char* key : {"loss", "bits_per_byte", "bytes", "tokens", "windows"})
      CHECK(json.at(key) == expected.at(key));
  }
}

TEST_CASE("weights that do not fit are found before the run begins") {
  const Workplace place(from_weights);
  CHECK(place.run({}).code == 2);
  CHECK(place.run({}).err.find("model.pretrained: there is no") != std::string::npos);
  fs::copy(golden("gpt2"), place.file("weights"));
  const ProgramResult result = place.run({"--set", "model.n_layer=3", "--set", "model.vocab_size=50"});
  CHECK(result.code == 2);
  CHECK(result.err.find("model.n_layer: found 3") != std::string::npos);
  CHECK(result.err.find("model.vocab_size: found 50") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("run/summary.json")));
}

TEST_CASE("a run's checkpoint is exported, imported again, and started from, without a bit lost") {
  const Workplace place(from_weights);
  fs::copy(golden("gpt2"), place.file("weights"));
  ProgramResult result = place.run({"--ranks", "3", "--set", "train_batch_size=6", "--set", "zero_optimization.stage=3",
                                    "--set", "training.checkpoint_interval=3"});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const Json trained = summary(place);
  const auto checksum = [&](const std::string& checkpoint) {
    const ProgramResult inspected = place.run_with({"inspect", "--checkpoint", checkpoint, "--json"});
    CAPTURE(inspected.err);
    REQUIRE(inspected.code == 0);
    return Json::parse(inspected.out).at("weights_checksum");
  };
  CHECK(checksum("run") == trained.at("weights_checksum"));
  for (const char* format : {"huggingface", "llm.c"}) {
    const std::string out = std::string("out-") + format;
    result = place.run_with({"export", "--checkpoint", "run", "--format", format, "--output", out});
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    const std::string from = format == std::string("llm.c") ? out + "/model.bin" : out;
    result = place.run_with({"import", "--from", from, "--output", "imported-" + out});
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    CHECK(checksum("imported-" + out) == trained.at("weights_checksum"));
  }
  // No data and no batch come with it, and none are needed to write.
  CHECK(place.run_with({"generate", "--checkpoint", "imported-out-huggingface", "--ids", "1,2", "--max-tokens", "2"})
            .code == 0);
  // No step: what it ends with is what it began with.
  std::vector<Json> checksums;
  for (const char* weights : {"run", "run/checkpoints/step-00000003", "imported-out-llm.c", "out-huggingface"}) {
    result = place.run_with({"--config", "config.json", "--output", "again", "--overwrite", "--set",
                             std::string("model.pretrained=") + weights, "--set", "optimizer.params.lr=0"});
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    CHECK(Json::parse(contents_of(place.file("again/summary.json"))).at("weights_checksum") ==
          trained.at("weights_checksum"));
  }
}

TEST_CASE("a byte-pair tokenizer goes with the weights into the library's files and back") {
  const std::string vocabulary = std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/byte_pairs/";
  Json config = Json::parse(tiny_gpt);
  config["model"]["vocab_size"] = "auto";
  config["data"] = {
      {"type", "text"}, {"path", vocabulary + "corpus.txt"}, {"tokenizer", vocabulary + "tokenizer.json"}};
  config["training"]["max_steps"] = 1;
  config["training"]["checkpoint_interval"] = 1;
  const Workplace place(config.dump());
  ProgramResult result = place.run({});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  for (const Arguments& arguments :
       std::vector<Arguments>{{"export", "--checkpoint", "run", "--format", "huggingface", "--output", "out"},
                              {"import", "--from", "out", "--output", "imported"},
                              {"export", "--checkpoint", "imported", "--format", "huggingface", "--output", "again"}}) {
    result = place.run_with(arguments);
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    CHECK(result.err.find("notice") == std::string::npos);
  }
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"}) {
    CHECK(contents_of(place.file(std::string("again/") + file)) == contents_of(place.file(std::string("out/") + file)));
  }
  CHECK(Json::parse(contents_of(place.file("out/tokenizer.json"))).at("model").at("vocab") ==
        Json::parse(contents_of(vocabulary + "tokenizer.json")).at("model").at("vocab"));
  CHECK(contents_of(place.file("imported/tokenizer")) ==
        contents_of(place.file("run/checkpoints/step-00000001/tokenizer")));
}

TEST_CASE("a damaged checkpoint is neither exported nor started from") {
  const Workplace place(from_weights);
  CHECK(place.run_with({"import", "--from", golden("gpt2"), "--output", "weights"}).code == 0);
  CHECK(place.run({}).code == 0);
  const fs::path file = place.file("weights/rank-00000.weights.safetensors");
  std::string bytes = contents_of(file);
  bytes[bytes.size() - 5] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  ProgramResult result = place.run({"--overwrite"});
  CHECK(result.code == 1);
  CHECK(result.err.find("model.pretrained: ") != std::string::npos);
  CHECK(result.err.find("rank-00000.weights.safetensors: its checksum is not that of the manifest") !=
        std::string::npos);
  result = place.run_with({"export", "--checkpoint", "weights", "--format", "llm.c", "--output", "x"});
  CHECK(result.code == 1);
  CHECK(result.err.find("it is damaged") != std::string::npos);
  fs::resize_file(file, bytes.size() - 1);
  result = place.run({"--overwrite"});
  CHECK(result.code == 1);
  CHECK(result.err.find("model.pretrained: ") != std::string::npos);
}
