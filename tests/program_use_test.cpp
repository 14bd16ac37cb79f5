// The program from the outside: generate and evaluate.
#include <set>

#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

const char* const text_gpt = R"({
  "train_batch_size": 4, "train_micro_batch_size_per_gpu": 2,
  "optimizer": { "type": "AdamW", "params": { "lr": 5e-3 } },
  "data_types": { "grad_accum_dtype": "fp32" },
  "model": { "type": "gpt", "n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 8, "initializer_range": 0.2 },
  "data": { "type": "text", "path": "text.txt", "tokenizer": "characters", "validation_fraction": 0.2 },
  "training": { "max_steps": 4, "eval_interval": 4, "eval_steps": 1000, "checkpoint_interval": 4 },
  "device": { "threads": 1 }
})";

std::string some_text() {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += i % 3 == 0 ? "caf\xc3\xa9 au lait. " : i % 3 == 1 ? "5 \xe2\x82\xac, please! " : "The end?\n";
  return text;
}

// A run on text with its checkpoint.
class Written : public Workplace {
 public:
  explicit Written(const Arguments& more = {}) : Workplace(text_gpt) {
    write("text.txt", some_text());
    check_completes(run(more));
  }
  ProgramResult generate(const Arguments& more) const {
    return run_with(Arguments{"generate", "--checkpoint", "run", "--set", "device.threads=1"} + more);
  }
  ProgramResult evaluate(const Arguments& more = {}) const {
    return run_with(Arguments{"evaluate", "--checkpoint", "run", "--json", "--set", "device.threads=1"} + more);
  }
};

void check_refuses(const ProgramResult& result, int code, const std::string& part) {
  INFO(result.err);
  CHECK(result.code == code);
  CHECK(result.err.find(part) != std::string::npos);
  CHECK(result.out.empty());
}

}  // namespace

TEST_CASE("generate writes on from a prompt, the same text for the same seed") {
  const Written place;
  const Arguments caf = {"--prompt", "caf\xc3\xa9", "--max-tokens", "40"};
  const ProgramResult first = place.generate(caf + Arguments{"--seed", "3"});
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK(first.out.starts_with("caf\xc3\xa9"));
  CHECK(first.out.ends_with("\n"));
  CHECK(first.err.find("8 positions") != std::string::npos);
  CHECK(place.generate(caf + Arguments{"--seed", "3"}).out == first.out);
  CHECK(place.generate(caf + Arguments{"--seed", "3", "--set", "device.threads=3"}).out == first.out);
  CHECK(place.generate(caf + Arguments{"--seed", "4"}).out != first.out);
  const std::string greedy = place.generate(caf + Arguments{"--temperature", "0"}).out;
  CHECK(place.generate(caf + Arguments{"--top-k", "1", "--seed", "9"}).out == greedy);
  CHECK(place.generate(caf + Arguments{"--top-p", "0", "--seed", "9"}).out == greedy);
  CHECK(greedy == place.generate(caf + Arguments{"--temperature", "0", "--no-cache"}).out);
  CHECK(
      place.run_with(Arguments{"generate", "--checkpoint", "run/checkpoints/step-00000004", "--temperature", "0"} + caf)
          .out == greedy);

  const ProgramResult object = place.generate(caf + Arguments{"--seed", "3", "--json"});
  const Json json = Json::parse(object.out, nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  CHECK("caf\xc3\xa9" + json.at("text").get<std::string>() + "\n" == first.out);
  CHECK(json.at("tokens").size() == 40);
  CHECK(json.at("prompt_tokens") == 4);
  CHECK(json.at("finished") == "max_tokens");
  CHECK(place.generate(caf + Arguments{"--seed", "3", "--no-prompt"}).out == first.out.substr(5));

  // A text that comes ends it.
  const std::string text = json.at("text");
  std::size_t middle = text.size() / 2;
  while ((static_cast<unsigned char>(text[middle]) & 0xc0U) == 0x80U) ++middle;
  const std::string stop = text.substr(middle);
  const std::size_t at = text.find(stop);
  const ProgramResult stopped = place.generate(caf + Arguments{"--seed", "3", "--no-prompt", "--stop", stop});
  CHECK(stopped.out == text.substr(0, at) + "\n");
}

TEST_CASE("what a checkpoint's model writes does not depend on how many ranks and which stage wrote it") {
  const Written one;
  const Arguments prompt = {"--prompt", "The ", "--max-tokens", "30", "--seed", "1"};
  const std::string expected = one.generate(prompt).out;
  CHECK(expected.size() > 20);
  for (const int number : {0, 2, 3}) {
    const Written many(ranks(2) + stage(number));
    CHECK(many.generate(prompt).out == expected);
  }
}

TEST_CASE("a model of tokens without text takes and writes numbers") {
  const Workplace place;
  check_completes(place.run({"--set", "training.checkpoint_interval=4"}));
  const Arguments base = {"generate", "--checkpoint", "run", "--max-tokens", "12"};
  const ProgramResult ids = place.run_with(base + Arguments{"--ids", "1,2,3"});
  INFO(ids.err);
  REQUIRE(ids.code == 0);
  CHECK(std::regex_match(ids.out, std::regex("1,2,3(,[0-9]+){12}\n")));
  check_refuses(place.run_with(base + Arguments{"--prompt", "x"}), 2, "--ids");
  check_refuses(place.run_with(base + Arguments{"--ids", "1,31"}), 2, "from 0 to 30");
  check_refuses(place.run_with(base + Arguments{"--ids", "1,x"}), 2, "from 0 to 30");
  check_refuses(place.run_with(base), 2, "needs a prompt");
}

TEST_CASE("generate refuses what it cannot do, before it writes anything") {
  const Written place;
  check_refuses(place.generate({"--prompt", "\xf0\x9f\x98\x80"}), 2, "U+1F600");
  check_refuses(place.generate({"--prompt", ""}), 2, "empty");
  check_refuses(place.generate({"--prompt", "a", "--temperature", "-1"}), 2, "--temperature");
  check_refuses(place.generate({"--prompt", "a", "--set", "model.n_layer=3"}), 2, "another model");
  check_refuses(place.run_with({"generate", "--checkpoint", "nowhere", "--prompt", "a"}), 2, "nowhere");
  fs::resize_file(place.file("run") / "checkpoints/step-00000004/manifest.json", 100);
  check_refuses(place.generate({"--prompt", "a"}), 1, "manifest.json");
}

TEST_CASE("generate ends cleanly at a signal") {
  const Written place;
  Program program(Arguments{ZEROTRAIN_BINARY, "generate", "--checkpoint", "run", "--prompt", "The", "--max-tokens",
                            "1000000000", "--no-prompt"},
                  place.options());
  REQUIRE(program.wait_until([&] { return program.out_so_far().size() > 30; }));
  program.send(SIGINT);
  const ProgramResult result = program.finish();
  INFO(result.err);
  CHECK(result.code == 128 + SIGINT);
  CHECK(result.out.ends_with("\n"));
}

TEST_CASE("evaluate measures all validation data as training did, the same on any number of ranks") {
  const Written place;
  const ProgramResult one = place.evaluate();
  INFO(one.err);
  REQUIRE(one.code == 0);
  const Json json = Json::parse(one.out, nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  CHECK(json.at("loss").dump() == json_of(place.file("run") / "summary.json").at("final").at("validation_loss").dump());
  CHECK(std::abs(json.at("perplexity").get<double>() - std::exp(json.at("loss").get<double>())) < 1e-6);
  const double bits =
      json.at("loss").get<double>() * json.at("tokens").get<double>() / std::log(2.0) / json.at("bytes").get<double>();
  CHECK(std::abs(json.at("bits_per_byte").get<double>() - bits) < 1e-6);
  CHECK(json.at("bytes").get<int>() > json.at("tokens").get<int>());
  for (const char* number : {"2", "3"}) CHECK(place.evaluate({"--ranks", number}).out == one.out);

  const Json sliding = Json::parse(place.evaluate({"--stride", "1"}).out);
  CHECK(sliding.at("tokens") == json.at("tokens"));
  CHECK(sliding.at("loss") != json.at("loss"));
  CHECK(place.evaluate({"--stride", "1", "--ranks", "3"}).out == place.evaluate({"--stride", "1"}).out);
  CHECK(Json::parse(place.evaluate({"--stride", "8"}).out).at("loss") == json.at("loss"));
  check_refuses(place.evaluate({"--stride", "9"}), 2, "at most model.n_positions");
}

TEST_CASE("evaluate slides windows over token files, within documents where these stay apart") {
  static constexpr std::uint16_t sign = 30;
  const auto file_of = [](const std::vector<std::vector<std::uint16_t>>& documents) {
    std::vector<std::uint16_t> ids;
    for (const auto& document : documents) {
      ids.push_back(sign);
      ids.insert(ids.end(), document.begin(), document.end());
    }
    ids.push_back(sign);
    return std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(ids[0]));
  };
  // Of 3, 7 (with its sign a whole window), 20 and 31 tokens.
  std::vector<std::vector<std::uint16_t>> documents;
  for (const int size : {3, 7, 20, 31}) {
    documents.emplace_back();
    for (int i = 0; i < size; ++i) documents.back().push_back(static_cast<std::uint16_t>((i * i + size) % 30));
  }
  Json config = Json::parse(tiny_gpt);
  config["data"] = {{"type", "tokens"}, {"train", "train.bin"}, {"validation", "first.bin"}, {"end_of_text", sign}};
  config["training"] = {{"max_steps", 2}, {"eval_interval", 0}, {"checkpoint_interval", 2}};
  config["train_batch_size"] = 2;
  const Workplace place(config.dump());
  place.write("train.bin", file_of({documents[3], documents[2]}));
  place.write("first.bin", file_of(documents));
  std::swap(documents[0], documents[3]);
  place.write("second.bin", file_of(documents));
  check_completes(place.run({}));
  const auto evaluate = [&](const Arguments& more) {
    const ProgramResult result =
        place.run_with(Arguments{"evaluate", "--checkpoint", "run", "--json", "--set", "device.threads=1"} + more);
    INFO(result.err);
    REQUIRE(result.code == 0);
    return Json::parse(result.out);
  };
  const Arguments second = {"--set", "data.validation=second.bin"}, apart = {"--set", "data.documents=apart"};
  for (const Arguments& documents_are : {Arguments{}, apart}) {
    const bool are_apart = !documents_are.empty();
    CAPTURE(are_apart);
    const Json plain = evaluate(documents_are);
    CHECK(evaluate(documents_are + Arguments{"--stride", "8"}).at("loss") == plain.at("loss"));
    // 65 targets, of which joined windows of 8 hold 64.
    CHECK(plain.at("tokens") == (are_apart ? 65 : 64));
    for (const char* stride : {"1", "3"}) {
      const Arguments slides = documents_are + Arguments{"--stride", stride};
      const Json sliding = evaluate(slides);
      CHECK(sliding.at("tokens") == plain.at("tokens"));
      CHECK(sliding.at("loss") != plain.at("loss"));
      CHECK(sliding.at("windows") > plain.at("windows"));
      for (const int number : {2, 3}) CHECK(evaluate(slides + ranks(number)) == sliding);
      // In another order the documents are the same ones, as long as no window sees two of them.
      CHECK((evaluate(slides + second).at("loss") == sliding.at("loss")) == are_apart);
    }
  }
  const Arguments base = {"evaluate", "--checkpoint", "run"};
  check_refuses(place.run_with(base + Arguments{"--stride", "9"}), 2, "at most model.n_positions");
}

TEST_CASE("a stride is refused where samples stand alone, with what they are") {
  const Workplace sequences;
  check_completes(sequences.run({"--set", "training.checkpoint_interval=4"}));
  check_refuses(sequences.run_with({"evaluate", "--checkpoint", "run", "--stride", "2"}), 2,
                "data.type is \"synthetic\", and its sequences are separate samples");
  const Written text;
  text.write("prompts.jsonl", "{\"prompt\": \"The\", \"completion\": \" end?\"}\n");
  check_refuses(
      text.evaluate({"--stride", "2", "--set", "data.path=prompts.jsonl", "--set", "data.format=prompt_completion"}), 2,
      "its prompts with their completions are separate samples");
  for (const char* type : {"idx", "csv"}) {
    CAPTURE(type);
    const Workplace rows(tiny_mlp);
    check_completes(rows.run({"--set", "training.checkpoint_interval=3"}));
    const std::string data = type == std::string("idx")
                                 ? R"(data={"type": "idx", "images": "images", "labels": "labels"})"
                                 : R"(data={"type": "csv", "path": "rows.csv", "target": "y"})";
    check_refuses(rows.run_with({"evaluate", "--checkpoint", "run", "--stride", "2", "--set", data}), 2,
                  "data.type is \"" + std::string(type) + "\", and its rows are separate samples");
  }
}

TEST_CASE("evaluate takes other data, in the tokens that the model knows") {
  const Written place;
  place.write("other.txt", "please, The end? caf\xc3\xa9! caf\xc3\xa9! 5 5 5 5 5 5 5 5");
  const Arguments other = {"--set", "data.path=other.txt", "--part", "all"};
  const ProgramResult result = place.evaluate(other);
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(Json::parse(result.out).at("tokens") == 40);
  place.write("data.json", R"({"data": {"path": "other.txt"}})");
  CHECK(place.evaluate({"--config", "data.json", "--part", "all"}).out == result.out);
  place.write("other.txt", "The end? Q The end? The end?");
  check_refuses(place.evaluate(other), 2, "U+0051");
  place.write("other.txt", "The end? The end?");
  check_refuses(place.evaluate({"--set", "data.path=other.txt"}), 2,
                "use --part all, a larger data.validation_fraction (it is 0.2), or a longer text");
  // Where the whole text has no window either, only more of it helps.
  place.write("other.txt", "The end?");
  for (const char* part : {"all", "validation", "training"}) {
    const ProgramResult short_text = place.evaluate({"--set", "data.path=other.txt", "--part", part});
    check_refuses(short_text, 2, "one window needs 9 (model.n_positions 8): give a longer text");
    CHECK(short_text.err.find("--part all") == std::string::npos);
  }

  const Workplace rows(tiny_mlp);
  check_completes(rows.run({"--set", "training.checkpoint_interval=3"}));
  const ProgramResult classes = rows.run_with({"evaluate", "--checkpoint", "run", "--json"});
  INFO(classes.err);
  REQUIRE(classes.code == 0);
  const Json json = Json::parse(classes.out);
  CHECK(json.at("accuracy").is_number());
  CHECK(json.at("rows") == 10);
  CHECK_FALSE(json.contains("perplexity"));
  check_refuses(rows.run_with({"evaluate", "--checkpoint", "run", "--stride", "2"}), 2, "its rows");
  check_refuses(rows.run_with({"generate", "--checkpoint", "run", "--ids", "1"}), 2, "mlp");
}

TEST_CASE("weights that came without a tokenizer are used with the one that is named") {
  Json config = Json::parse(text_gpt);
  config["data"]["tokenizer"] = "bytes";
  const Workplace place(config.dump());
  place.write("text.txt", some_text());
  check_completes(place.run({}));
  check_completes(place.run_with({"export", "--checkpoint", "run", "--format", "llm.c", "--output", "exported"}));
  check_completes(place.run_with({"import", "--from", "exported/model.bin", "--output", "imported"}));
  const auto loss = [&](const Arguments& more) {
    const ProgramResult result = place.run_with(Arguments{"evaluate", "--json"} + more);
    INFO(result.err);
    REQUIRE(result.code == 0);
    return Json::parse(result.out).at("loss").get<double>();
  };
  // Batches of other sizes round otherwise.
  const auto expected = Approx(loss({"--checkpoint", "run"})).epsilon(1e-7);
  place.write("data.json", Json({{"data", config.at("data")}}).dump());
  const Arguments imported = {"--checkpoint", "imported", "--config", "data.json"};
  CHECK(loss(imported) == expected);  // by data.tokenizer
  CHECK(loss(imported + Arguments{"--tokenizer", "bytes", "--set", "data.tokenizer=characters"}) == expected);
  place.write("pretrained.json", R"({"model": {"type": "gpt", "pretrained": "exported/model.bin"},
    "data": {"type": "text", "path": "text.txt", "tokenizer": "characters", "validation_fraction": 0.2}})");
  CHECK(loss({"--config", "pretrained.json", "--set", "train_batch_size=4", "--tokenizer", "bytes"}) == expected);
  const ProgramResult told = place.run_with(Arguments{"evaluate"} + imported);
  CHECK(told.err.find("came without a tokenizer: the text is read in the tokens of data.tokenizer, \"bytes\"") !=
        std::string::npos);

  const Arguments prompt = {"--prompt", "caf\xc3\xa9", "--max-tokens", "20", "--seed", "5"};
  const ProgramResult written =
      place.run_with(Arguments{"generate", "--checkpoint", "imported", "--tokenizer", "bytes"} + prompt);
  INFO(written.err);
  REQUIRE(written.code == 0);
  CHECK(written.out == place.run_with(Arguments{"generate", "--checkpoint", "run"} + prompt).out);
  check_refuses(place.run_with(Arguments{"generate", "--checkpoint", "imported"} + prompt), 2, "--tokenizer PATH");

  // Not in place of the weights' own, and none that the model does not know.
  check_refuses(place.run_with(Arguments{"generate", "--checkpoint", "run", "--tokenizer", "bytes"} + prompt), 2,
                "has its own (bytes): leave it out");
  check_refuses(place.run_with({"evaluate", "--checkpoint", "run", "--tokenizer", "bytes"}), 2,
                "has its own (bytes): leave it out");
  check_refuses(place.run_with({"evaluate", "--checkpoint", "imported", "--config", "data.json", "--tokenizer", "no"}),
                2, "--tokenizer: no");
  const Workplace tokens;
  check_completes(tokens.run({"--set", "training.checkpoint_interval=4"}));
  check_refuses(tokens.run_with(Arguments{"generate", "--checkpoint", "run", "--tokenizer", "bytes"} + prompt), 2,
                "--tokenizer bytes has 256 tokens, and the model knows 31");
}

TEST_CASE("a model of tokens without text is measured on a text with the tokenizer that is named") {
  Json config = Json::parse(tiny_gpt);
  config["model"]["vocab_size"] = 256;
  config["training"]["checkpoint_interval"] = 4;
  const Workplace place(config.dump());
  place.write("text.txt", some_text());
  check_completes(place.run({}));
  const Arguments on_text = {"evaluate", "--checkpoint", "run", "--set",
                             R"(data={"type": "text", "path": "text.txt", "tokenizer": "bytes"})"};
  check_refuses(place.run_with(on_text), 2, "name it with --tokenizer PATH");
  const ProgramResult measured = place.run_with(on_text + Arguments{"--tokenizer", "bytes"});
  INFO(measured.err);
  CHECK(measured.code == 0);
  CHECK(measured.out.find("bits_per_byte") != std::string::npos);
}
