// The program from the outside: the files of a run, stdout, and disks that are full.
#include <map>

#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

TEST_CASE("summary.json and metrics.jsonl of a GPT hold what is promised") {
  const Workplace place;
  check_completes(place.run(ranks(2) + stage(3)));
  const fs::path run = place.file("run");
  const Json summary = json_of(run / "summary.json");
  CHECK(differences(summary_shape("tokens_per_second", true), summary) == none);
  CHECK(summary.at("run").at("world_size") == 2);
  CHECK(summary.at("run").at("stage") == 3);
  CHECK(summary.at("run").at("precision") == "fp32");
  CHECK(summary.at("run").at("threads_per_rank") == 1);
  CHECK(summary.at("run").at("micro_batch") == 1);
  CHECK(summary.at("run").at("accumulation") == 3);
  CHECK(summary.at("steps") == Json({{"attempted", 4}, {"applied", 4}, {"skipped", 0}}));
  CHECK(std::regex_match(summary.at("weights_checksum").get<std::string>(), std::regex("[0-9a-f]{16}")));
  CHECK(too_precise(contents_of(run / "summary.json")) == none);
  CHECK(too_precise(contents_of(run / "metrics.jsonl")) == none);

  std::int64_t step = 0;
  std::vector<std::int64_t> evaluated;
  const std::vector<Json> records = metrics_of(run);
  for (const Json& record : records) {
    if (record.at("kind") == "eval") {
      CHECK(differences(R"({"kind": "eval", "step": "whole", "loss": "float", "perplexity": "float"})", record) ==
            none);
      CHECK(record.at("perplexity").get<double>() == Approx(std::exp(record.at("loss").get<double>())).epsilon(1e-8));
      evaluated.push_back(record.at("step").get<std::int64_t>());
      continue;
    }
    CHECK(differences(R"({"kind": "train", "step": "whole", "loss": "float", "grad_norm": "float",
                          "learning_rate": "float", "loss_scale": "float", "skipped": "flag", "samples": "whole",
                          "tokens": "whole", "step_seconds": "float", "tokens_per_second": "float"})",
                      record) == none);
    CHECK(record.at("step") == ++step);
    CHECK(record.at("samples") == 6 * step);
    CHECK(record.at("tokens") == 6 * 8 * step);
    CHECK(record.at("learning_rate") == 2e-3);
    CHECK(record.at("loss_scale") == 1.0);
    CHECK(record.at("skipped") == false);
    CHECK(record.at("tokens_per_second").get<double>() * record.at("step_seconds").get<double>() ==
          Approx(48.0).epsilon(1e-6));
    if (step == 4) CHECK(summary.at("final").at("loss") == record.at("loss"));
  }
  CHECK(step == 4);
  CHECK(evaluated == std::vector<std::int64_t>{2, 4});
  CHECK(summary.at("final").at("validation_loss") == records.back().at("loss"));
  CHECK(summary.at("stop_reason") == "max_steps");
  CHECK(summary.at("retries") == 0);
  const Json& best = summary.at("best");
  CHECK(std::any_of(records.begin(), records.end(), [&](const Json& record) {
    return record.at("kind") == "eval" && record.at("step") == best.at("step") &&
           record.at("loss") == best.at("validation_loss");
  }));
  CHECK(best.at("validation_loss").get<double>() <= summary.at("final").at("validation_loss").get<double>());
  CHECK(fs::exists(run / "train.log"));
}

TEST_CASE("summary.json and metrics.jsonl of an MLP hold what is promised") {
  const Workplace place(tiny_mlp);
  const fs::path run = place.file("run");
  check_completes(place.run({}));
  const Json without = json_of(run / "summary.json");
  CHECK(differences(summary_shape("samples_per_second", false), without) == none);
  CHECK(without.at("final").at("validation_loss").is_null());
  CHECK(metrics_of(run).size() == 3);

  check_completes(place.run({"--overwrite", "--set", "training.eval_interval=2", "--set", "training.eval_steps=1"}));
  const std::vector<Json> records = metrics_of(run);
  REQUIRE(records.size() == 5);  // train, train, eval, train, eval
  CHECK(differences(R"({"kind": "train", "step": "whole", "loss": "float", "grad_norm": "float",
                        "learning_rate": "float", "loss_scale": "float", "skipped": "flag", "samples": "whole",
                        "step_seconds": "float", "samples_per_second": "float"})",
                    records.at(3)) == none);
  CHECK(differences(R"({"kind": "eval", "step": "whole", "loss": "float", "accuracy": "float"})", records.back()) ==
        none);
  CHECK(records.back().at("step") == 3);
  CHECK(json_of(run / "summary.json").at("final").at("validation_loss") == records.back().at("loss"));
  // Evaluating changes nothing.
  CHECK(json_of(run / "summary.json").at("weights_checksum") == without.at("weights_checksum"));
}

TEST_CASE("a full disk ends the run with a message that names the file") {
  for (const int number : {1, 2}) {
    // A file that is there already is appended to with --resume; the others are written beside and renamed.
    for (const auto& [name, code] : std::map<std::string, int>{
             {"metrics.jsonl", 2}, {"config.resolved.json.tmp", 2}, {"summary.json.tmp", 1}, {"train.log", 1}}) {
      CAPTURE(number, name);
      const Workplace place;
      fs::create_directory(place.file("run"));
      fs::create_symlink("/dev/full", place.file("run") / name);
      const ProgramResult result = place.run(ranks(number) + Arguments{"--resume"});
      check_fails(result, code, place.file("run").string() + "/" + name.substr(0, name.find(".tmp")));
      CHECK(result.err.find("No space left on device") != std::string::npos);
    }
  }
}

TEST_CASE("a disk that fills up while training ends the run with code 1 and whole lines") {
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    fs::create_directory(place.file("run"));
    const fs::path metrics = place.file("run/metrics.jsonl");
    constexpr std::int64_t limit = 64 << 20;
    constexpr std::int64_t before = limit - 700;  // room for two steps
    place.write("run/metrics.jsonl", "");
    fs::resize_file(metrics, before - 1);
    std::ofstream(metrics, std::ios::app) << "\n";
    ProgramOptions options = place.options();
    options.largest_file = limit;
    const ProgramResult result =
        run_program(Workplace::command(ranks(number) + endless + Arguments{"--resume"}), options);
    check_fails(result, 1, "cannot write " + metrics.string());
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("status") == "failed");
    CHECK(summary.at("error").get<std::string>().find(metrics.string()) != std::string::npos);
    const std::vector<std::string> lines = lines_of(contents_of(metrics).substr(before));
    REQUIRE(lines.size() >= 2);
    CHECK(lines.front() ==
          R"({"kind": "resume", "step": 0, "world_size": )" + std::to_string(number) + R"(, "stage": 0})");
    CHECK(Json::parse(lines.back()).at("step") == lines.size() - 1);
  }
}

TEST_CASE("stdout holds results only") {
  const Workplace place;
  for (const Arguments& how : {Arguments{}, ranks(2)}) {
    const ProgramResult loud = place.run(how + Arguments{"--overwrite"});
    check_completes(loud);
    CHECK(loud.out.empty());
    CHECK(loud.err.find("completed: 4 steps attempted, 4 applied, 0 skipped") != std::string::npos);
    const ProgramResult quiet = place.run(how + Arguments{"--overwrite", "--quiet"});
    check_completes(quiet);
    CHECK(quiet.out.empty());
    CHECK(quiet.err.empty());
  }
  const ProgramResult printed = place.run({"--print-config"});
  check_completes(printed);
  CHECK(printed.err.empty());
  const Json config = Json::parse(printed.out, nullptr, false);
  REQUIRE(config.is_object());
  CHECK(config.at("training").at("max_steps") == 4);
  CHECK(config.at("training").at("output_dir") == place.file("run").string());
}

TEST_CASE("results that cannot be written to stdout are an error") {
  const Workplace place;
  place.write("text.txt", std::string(500, 'a') + std::string(500, 'b'));
  const Arguments sample = {"--set",  R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                            "--set",  "model.vocab_size=auto",
                            "--set",  "training.sample_prompt=ab",
                            "--quiet"};
  const Arguments to_full_disk = {"sh", "-c", R"(exec "$@" >/dev/full)", "sh"};
  for (const Arguments& what : {Arguments{"--print-config"}, Arguments{"--dry-run"}, sample, ranks(2) + sample}) {
    CAPTURE(what);
    check_fails(place.run(what + Arguments{"--overwrite"}, to_full_disk), 1, "stdout");
  }
  CHECK(json_of(place.file("run/summary.json")).at("status") == "failed");
}

TEST_CASE("the generated text goes to stdout, the same at every stage and number of ranks") {
  const Workplace place;
  std::string text;
  for (int line = 0; line < 40; ++line) text += "In the beginning was the word, and so on.\n";
  place.write("text.txt", text);
  const Arguments sample = {"--set", R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                            "--set", "model.vocab_size=auto",
                            "--set", "training.sample_prompt=In the"};
  const ProgramResult alone = place.run(sample);
  check_completes(alone);
  CHECK(alone.out.starts_with("In the"));
  CHECK(alone.out.back() == '\n');
  CHECK(alone.out.size() == 6 + 300 + 1);
  for (const int level : {0, 3}) {
    const ProgramResult result = place.run(ranks(2) + stage(level) + sample + Arguments{"--overwrite", "--quiet"});
    check_completes(result);
    CHECK(result.out == alone.out);
    CHECK(result.err.empty());
  }
}
