// The program on files of each kind, from the outside.
#include <fstream>
#include <sstream>

#include "catch_compat.h"
#include "core/json.h"
#include "run_program.h"

using Json = nlohmann::json;
using namespace zt::test;

namespace {

struct Place {
  TemporaryDirectory directory;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory.path() / name, std::ios::binary) << text;
  }
  ProgramResult run(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {ZEROTRAIN_BINARY, "--config", "config.json", "--output", "run", "--overwrite"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return start(command);
  }
  ProgramResult start(const std::vector<std::string>& command) const {
    ProgramOptions options;
    options.directory = directory.path();
    return run_program(command, options);
  }
  Json summary() const { return Json::parse(contents_of(directory.path() / "run/summary.json")); }
  std::vector<Json> metrics() const {
    std::vector<Json> lines;
    std::istringstream text(contents_of(directory.path() / "run/metrics.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
};

}  // namespace

TEST_CASE("prompts and completions train one curve on one rank and on two, and tokens are positions") {
  const Place place;
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    const std::string prompt = std::to_string(i * i * i) + " + 1 = ";
    lines +=
        Json{{"prompt", prompt}, {"completion", std::string(static_cast<std::size_t>(1 + i % 9), 'y') + "\n"}}.dump() +
        "\n";
  }
  place.write("sums.jsonl", lines);
  place.write("config.json", R"({
    "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "data_types": { "grad_accum_dtype": "fp32" },
    "model": { "type": "gpt", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 16 },
    "data": { "type": "text", "path": "sums.jsonl", "tokenizer": "characters" },
    "training": { "max_steps": 30, "eval_interval": 10, "eval_steps": 1 }, "device": { "threads": 1 } })");
  const ProgramResult one = place.run({});
  CAPTURE(one.err);
  REQUIRE(one.code == 0);
  CHECK(one.err.find("lines of prompt and completion (characters, ") != std::string::npos);
  CHECK(one.err.find("lines cut at 17 tokens") != std::string::npos);
  const Json summary = place.summary();
  const std::vector<Json> metrics = place.metrics();
  std::vector<double> losses;
  for (const Json& line : metrics) {
    if (line["kind"] != "train") continue;
    CHECK(line["tokens"].get<int>() == line["step"].get<int>() * 8 * 16);
    losses.push_back(line["loss"]);
  }
  REQUIRE(losses.size() == 30);
  CHECK(losses.back() < losses.front());
  CHECK(summary["final"]["validation_loss"].is_number());

  for (const std::string stage : {"0", "3"}) {
    const ProgramResult two = place.run({"--ranks", "2", "--set", "zero_optimization.stage=" + stage});
    CAPTURE(two.err);
    REQUIRE(two.code == 0);
    CHECK(place.summary()["weights_checksum"] == summary["weights_checksum"]);
    CHECK(place.summary()["final"]["loss"] == summary["final"]["loss"]);
    CHECK(place.summary()["final"]["validation_loss"] == summary["final"]["validation_loss"]);
  }
}

TEST_CASE("a table that cannot be trained on ends the program with 2 and one message, on two ranks, too") {
  const Place place;
  place.write("table.csv", "a,b,y\n1,2,3\n4,,6\n");
  place.write("config.json", R"({
    "train_batch_size": 2, "model": { "type": "mlp", "layers": [2, 1] },
    "data": { "type": "csv", "path": "table.csv", "target": ["y"] } })");
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--ranks", "2"}}) {
    const ProgramResult result = place.run(how);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    const std::size_t first = result.err.find("line 3, column 2 (b) is empty: a value is missing");
    CHECK(first != std::string::npos);
    CHECK(result.err.find("line 3", first + 1) == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(place.directory.path() / "run"));
  }
}

TEST_CASE("a column that is a target twice is told once, by two names or by name and number") {
  const Place place;
  place.write("table.csv", "a,b,y\n1,2,3\n4,5,6\n");
  place.write("config.json", R"({
    "train_batch_size": 1, "model": { "type": "mlp", "layers": [2, 1] },
    "data": { "type": "csv", "path": "table.csv", "target": ["y"], "validation_fraction": 0 } })");
  const ProgramResult names = place.run({"--set", R"(data.target=["y","y"])"});
  CHECK(names.code == 2);
  CHECK(names.err.find(R"(data.target: names "y" twice: remove one)") != std::string::npos);
  CHECK(names.err.find("model.layers") == std::string::npos);
  const ProgramResult number = place.run({"--set", R"(data.target=["y",3])"});
  CHECK(number.code == 2);
  CHECK(number.err.find("data.target names column 3 (y)") != std::string::npos);
  CHECK(number.err.find("model.layers") == std::string::npos);
}

TEST_CASE("a running text that begins with a prompt and its completion trains with one notice") {
  const Place place;
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += R"({"prompt": "2 + 2 = ", "completion": "4"})"
             "\n";
  place.write("sums.txt", lines);
  place.write("config.json", R"({
    "train_batch_size": 2, "model": { "type": "gpt", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 16 },
    "data": { "type": "text", "path": "sums.txt" }, "training": { "max_steps": 2 }, "device": { "threads": 1 } })");
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--ranks", "2"}}) {
    const ProgramResult result = place.run(how);
    CAPTURE(result.err);
    CHECK(result.code == 0);
    const std::size_t first = result.err.find("sums.txt is read as one running text");
    CHECK(first != std::string::npos);
    CHECK(result.err.find("read as one running text", first + 60) == std::string::npos);
  }
}

TEST_CASE("a regression on a table learns, and prove shows one curve for it") {
  const Place place;
  std::string table = "a;b;y\n";
  for (int i = 0; i < 200; ++i) {
    const int a = i * 37 % 101;
    const int b = i * 53 % 89;
    table += std::to_string(a) + ";" + std::to_string(1000 * b) + ";" + std::to_string(0.02 * a - 0.03 * b) + "\n";
  }
  place.write("table.csv", table);
  place.write("config.json", R"({
    "train_batch_size": 8, "optimizer": { "type": "AdamW", "params": { "lr": 1e-2 } },
    "model": { "type": "mlp", "layers": [2, 8, 1], "activation": "tanh" },
    "data": { "type": "csv", "path": "table.csv", "target": ["y"], "delimiter": ";", "validation_fraction": 0.2 },
    "training": { "max_steps": 300, "eval_interval": 100, "eval_steps": 5 }, "device": { "threads": 1 } })");
  const ProgramResult trained = place.run({});
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  CHECK(place.summary()["final"]["validation_loss"].get<double>() < 0.02);  // the targets' variance is about 0.9

  const ProgramResult proved = place.start({ZEROTRAIN_BINARY, "prove", "--config", "config.json", "--steps", "2"});
  CAPTURE(proved.err);
  CHECK(proved.code == 0);
  CHECK(proved.out.find("one curve") != std::string::npos);
}
