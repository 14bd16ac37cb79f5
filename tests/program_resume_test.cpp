// The program from the outside: what is left of a run that was stopped, cut off or is finished, and what --resume,
// replay and compare make of it.
#include <functional>

#include "checkpoint/checksum.h"
#include "checkpoint/directory.h"
#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

const Arguments every_second = {"--set", "training.checkpoint_interval=2", "--set", "training.checkpoints_to_keep=0"};

Arguments set(const std::string& key_value) { return {"--set", key_value}; }
Arguments steps(int count) { return set("training.max_steps=" + std::to_string(count)); }

fs::path checkpoint(const fs::path& run, std::int64_t step) { return run / "checkpoints" / zt::checkpoint_name(step); }

ProgramResult replay(const Workplace& place, const std::string& run, int step, const Arguments& more = {}) {
  return place.run_with(Arguments{"replay", run, "--step", std::to_string(step)} + more);
}

void check_replays(const Workplace& place, const std::string& run, int step) {
  CAPTURE(run, step);
  const ProgramResult result = replay(place, run, step);
  INFO(result.err);
  INFO(result.out);
  CHECK(result.code == 0);
  CHECK(result.out.find("the same as in metrics.jsonl") != std::string::npos);
}

int records_of(const fs::path& run, const std::string& kind, std::int64_t step) {
  int count = 0;
  for (const Json& record : metrics_of(run)) count += record.at("kind") == kind && record.at("step") == step ? 1 : 0;
  return count;
}

// The part of metrics.jsonl that does not depend on time, of one step.
std::string evaluation_of(const fs::path& run, std::int64_t step) {
  std::string text;
  for (const Json& record : metrics_of(run)) {
    if (record.at("kind") == "eval" && record.at("step") == step) text = record.dump();
  }
  return text;
}

// Changes a manifest and makes it whole again, as if it had been written so.
void change_manifest(const fs::path& directory, const std::function<void(Json&)>& change) {
  const fs::path path = directory / "manifest.json";
  Json json = json_of(path);
  json.erase("checksum");
  change(json);
  std::string text = json.dump(2);
  text.erase(text.size() - 2);  // "\n}"
  std::ofstream(path, std::ios::binary) << text << ",\n  \"checksum\": \"" << zt::checksum_text(zt::checksum_of(text))
                                        << "\"\n}\n";
}

}  // namespace

TEST_CASE("replay starts from pretrained weights where the run did") {
  const Workplace place;
  check_completes(place.run_with(Arguments{"--config", "config.json", "--output", "base"} + every_second + steps(2)));
  check_completes(place.run(set("model.pretrained=base") + steps(3)));
  for (const int step : {1, 3}) check_replays(place, "run", step);
}

TEST_CASE("replay takes the checkpoint and the config that a resumed run went on with") {
  const Workplace place;
  check_completes(place.run(every_second + steps(4)));
  const Arguments slower = set("optimizer.params.lr=0.0007") + every_second + steps(8);
  SECTION("in another directory") {
    check_completes(
        place.run_with(Arguments{"--config", "config.json", "--output", "other", "--resume", "run"} + slower));
    for (const int step : {5, 6, 8}) check_replays(place, "other", step);
    check_fails(replay(place, "other", 3), 2, "begins with step 5, as it goes on from ");
    check_fails(replay(place, "other", 9), 2, "--step 9: the last step of other is 8");
    fs::remove_all(place.file("run"));
    const ProgramResult gone = replay(place, "other", 5);
    check_fails(gone, 2, "step-00000004, from which steps 5 to 8 went on, is not there any more; steps 7 to 8 can be ");
    check_replays(place, "other", 7);
  }
  SECTION("in its own") {
    check_completes(place.run(slower + Arguments{"--resume"}));
    for (const int step : {1, 3, 5, 8}) check_replays(place, "run", step);
    // A run that was moved is the same.
    fs::rename(place.file("run"), place.file("moved"));
    for (const int step : {2, 5}) check_replays(place, "moved", step);
    fs::remove_all(checkpoint(place.file("moved"), 4));
    check_replays(place, "moved", 3);
    check_fails(replay(place, "moved", 5), 2, "went on, is not there any more, and the steps before ran with other");
    fs::remove_all(checkpoint(place.file("moved"), 2));
    for (const int step : {1, 6}) {
      CAPTURE(step);
      const ProgramResult result = replay(place, "moved", step);
      check_fails(result, 2, "no file tells any more by which config it ran");
      CHECK(result.err.find("; steps 7 to 8 can be replayed") != std::string::npos);
    }
  }
  SECTION("without a change of the config nothing is lost with the checkpoints") {
    check_completes(place.run(every_second + steps(8) + Arguments{"--resume"}));
    for (const int step : {2, 4}) fs::remove_all(checkpoint(place.file("run"), step));
    for (const int step : {1, 6}) check_replays(place, "run", step);
  }
}

TEST_CASE("replay says that the data are others now, and refuses what is beyond the run and its tensors") {
  const Workplace place;
  check_completes(place.run(every_second + steps(4)));
  check_fails(replay(place, "run", 3, set("data.samples=50")), 2, "the training data have 45 samples, and had 90 when");
  check_fails(replay(place, "run", 5), 2, "--step 5: the last step of run is 4");
  check_fails(replay(place, "run", 0), 2, "not a whole number from 1 on");
  const Arguments tensor = {"--tensor", "wte.weight", "--first"};
  check_fails(replay(place, "run", 4, tensor + Arguments{"99999"}), 2, "wte.weight has the elements 0 to 495");
  for (const std::string wrong : {"-1", "nan", "99999999999999999999"})
    check_fails(replay(place, "run", 4, tensor + Arguments{wrong}), 2, "not a whole number from 0 on");
}

TEST_CASE("a finished run goes on where a higher limit of epochs or more patience lets it") {
  SECTION("epochs") {
    const Workplace place;
    const Arguments limit = every_second + steps(100) + set("training.eval_interval=0");
    check_completes(place.run(limit + set("training.max_epochs=1")));
    CHECK(json_of(place.file("run/summary.json")).at("steps").at("attempted") == 15);
    const ProgramResult again = place.run(limit + set("training.max_epochs=1") + Arguments{"--resume"});
    check_completes(again);
    CHECK(again.err.find("is finished: nothing to resume") != std::string::npos);
    check_completes(place.run(limit + set("training.max_epochs=2") + Arguments{"--resume"}));
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("steps").at("attempted") == 30);
    CHECK(summary.at("stop_reason") == "max_epochs");
    const Workplace whole;
    check_completes(whole.run(limit + set("training.max_epochs=2")));
    CHECK(json_of(whole.file("run/summary.json")).at("weights_checksum") == summary.at("weights_checksum"));
  }
  SECTION("patience") {
    const Workplace place;
    const Arguments limit =
        every_second + steps(40) + set("training.eval_interval=1") + set("training.early_stopping.min_delta=100");
    const auto patience = [](int count) { return set("training.early_stopping.patience=" + std::to_string(count)); };
    check_completes(place.run(limit + patience(2)));
    CHECK(json_of(place.file("run/summary.json")).at("steps").at("attempted") == 3);
    const ProgramResult again = place.run(limit + patience(2) + Arguments{"--resume"});
    check_completes(again);
    CHECK(again.err.find("is finished: nothing to resume") != std::string::npos);
    check_completes(place.run(limit + patience(5) + Arguments{"--resume"}));
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("steps").at("attempted") == 6);
    CHECK(summary.at("stop_reason") == "early_stopping");
    fs::remove_all(place.file("run/checkpoints"));
    check_fails(place.run(limit + patience(7) + Arguments{"--resume"}), 2,
                "no checkpoint to go on from (those that it wrote are not there any more)");
  }
}

TEST_CASE("a run that was cut off after its last checkpoint is brought to its end without a step") {
  const Workplace place;
  const fs::path run = place.file("run");
  const Arguments all = every_second + steps(4);
  check_completes(place.run(all));
  const Json summary = json_of(run / "summary.json");
  for (const bool is_there : {false, true}) {
    CAPTURE(is_there);
    fs::remove(run / "summary.json");
    if (is_there) std::ofstream(run / "summary.json") << R"({"status": "failed", "error": "lost"})";
    check_completes(place.run(all + Arguments{"--resume"}));
    const Json again = json_of(run / "summary.json");
    for (const char* key : {"status", "stop_reason", "steps", "final", "best", "weights_checksum"}) {
      CAPTURE(key);
      CHECK(again.at(key) == summary.at(key));
    }
    CHECK(records_of(run, "train", 4) == 1);
    CHECK(records_of(run, "eval", 4) == 1);
  }
  const ProgramResult finished = place.run(all + Arguments{"--resume"});
  check_completes(finished);
  CHECK(finished.err.find("is finished: nothing to resume") != std::string::npos);
}

TEST_CASE("the evaluation at the end is made up for where the run was cut off before it") {
  const Workplace place;
  const fs::path run = place.file("run");
  const Arguments all = every_second + steps(4) + set("training.eval_interval=3");
  check_completes(place.run(all));
  const Json summary = json_of(run / "summary.json");
  fs::remove(run / "summary.json");
  check_completes(place.run(all + Arguments{"--resume"}));
  CHECK(json_of(run / "summary.json").at("final") == summary.at("final"));
  CHECK(records_of(run, "eval", 4) == 2);
}

TEST_CASE("the step at which a signal stops a run has its fingerprint, and its evaluation when the run goes on") {
  const Workplace place;
  const fs::path run = place.file("run");
  const Arguments every_step = set("training.digest_interval=1") + set("training.eval_interval=1");
  Program program(Workplace::command(every_step + steps(100000000)), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(run) >= 3; }));
  program.send(SIGTERM);
  const ProgramResult stopped = program.finish();
  INFO(stopped.err);
  CHECK(stopped.code == 128 + SIGTERM);
  const auto step = json_of(run / "summary.json").at("steps").at("attempted").get<std::int64_t>();
  CHECK(records_of(run, "digest", step) == 1);
  const Arguments two_more = every_step + steps(static_cast<int>(step) + 2);
  check_completes(place.run(two_more + Arguments{"--resume"}));
  const Workplace quiet;
  check_completes(quiet.run(two_more));
  for (std::int64_t at = 1; at <= step + 2; ++at) {
    CAPTURE(at);
    CHECK(records_of(run, "eval", at) == 1);
    CHECK(evaluation_of(run, at) == evaluation_of(quiet.file("run"), at));
  }
}

TEST_CASE("a last line that was cut off is left out by readers, and is mended when the run goes on") {
  const Workplace place;
  const fs::path run = place.file("run");
  check_completes(place.run(every_second + steps(4)));
  check_completes(place.run_with(Arguments{"--config", "config.json", "--output", "same"} + every_second + steps(4)));
  const std::string whole = contents_of(run / "metrics.jsonl");
  const std::string cut = whole + R"({"kind": "train", "step": 5, "lo)";
  std::ofstream(run / "metrics.jsonl", std::ios::binary) << cut;
  const ProgramResult compared = place.run_with({"compare", "run", "same"});
  INFO(compared.err);
  CHECK(compared.code == 0);
  CHECK(compared.err.find("metrics.jsonl:" + std::to_string(count_of(whole, "\n") + 1) +
                          ", the last line, was never finished") != std::string::npos);
  CHECK(replay(place, "run", 4).code == 0);
  // Cut in its middle, zeros as a crash may leave them, and with nothing but its end missing.
  for (const std::string& text : {cut, whole + std::string(5000, '\0'), whole.substr(0, whole.size() - 1)}) {
    std::ofstream(run / "metrics.jsonl", std::ios::binary) << text;
    fs::remove(run / "summary.json");
    check_completes(place.run(every_second + steps(4) + Arguments{"--resume"}));
    const std::string mended = contents_of(run / "metrics.jsonl");
    CHECK(mended.starts_with(whole));
    CHECK(metrics_of(run).size() == static_cast<std::size_t>(count_of(mended, "\n")));
  }
  std::ofstream(run / "metrics.jsonl", std::ios::binary) << "{\"kind\": \"tr\n" + whole;
  check_fails(place.run_with({"compare", "run", "same"}), 1, "metrics.jsonl:1 is not a JSON object");
  check_fails(replay(place, "run", 4), 1, "metrics.jsonl:1 is not a JSON object");
}

TEST_CASE("a checksum of the weights in the manifest that is another than theirs is found") {
  const Workplace place;
  check_completes(place.run(every_second + steps(2)));
  change_manifest(checkpoint(place.file("run"), 2), [](Json& json) { json["weights_checksum"] = "0123456789abcdef"; });
  const std::string told = "the weights have another checksum than the manifest says";
  check_fails(place.run_with({"inspect", "run"}), 1, told);
  check_fails(place.run_with({"evaluate", "--checkpoint", "run"}), 1, told);
  check_fails(place.run(every_second + steps(4) + Arguments{"--resume"}), 1, told);
  change_manifest(checkpoint(place.file("run"), 2), [](Json& json) { json["progress"] = nullptr; });
  check_fails(place.run_with({"inspect", "run"}), 1, "manifest.json: progress is not a JSON object");
}

TEST_CASE("numbers on the command line are checked, and a path that is not there is a wrong command line") {
  const Workplace place;
  check_completes(place.run(every_second + steps(2)));
  const auto generate = [&](const Arguments& more) {
    return place.run_with(Arguments{"generate", "--checkpoint", "run", "--ids", "1", "--max-tokens", "2"} + more);
  };
  for (const std::string option : {"--temperature", "--top-p", "--seed", "--top-k"}) {
    for (const std::string number : {"nan", "inf", "-1", "", "1x", "99999999999999999999"}) {
      CAPTURE(option, number);
      const ProgramResult result = generate({option, number});
      check_fails(result, 2, option);
      CHECK(result.err.size() < 300);
    }
  }
  CHECK(generate({"--seed", "18446744073709551615", "--top-p", "0.5", "--temperature", "1e-3"}).code == 0);
  check_fails(generate({"--prompt", "x"}), 2, "--prompt and --ids exclude each other");
  for (const std::string number : {"0", "-3", "nan"}) {
    const ProgramResult result = place.run_with({"evaluate", "--checkpoint", "run", "--stride", number});
    check_fails(result, 2, "--stride");
    CHECK(result.err.size() < 300);
  }
  for (const Arguments& line :
       std::vector<Arguments>{{"inspect", "missing"},
                              {"generate", "--checkpoint", "missing", "--ids", "1"},
                              {"evaluate", "--checkpoint", "missing"},
                              {"compare", "run", "missing"},
                              {"export", "--checkpoint", "missing", "--format", "llm.c", "--output", "out"}})
    check_fails(place.run_with(line), 2, "missing");
  place.write("text", "some text\n");
  check_fails(place.run_with({"tokenize", "--tokenizer", "characters", "--input", "text", "--ids"}), 2,
              "become a vocabulary in a run alone");
}

TEST_CASE("what export writes for llm.c is imported by its directory, too") {
  const Workplace place;
  check_completes(place.run(every_second + steps(2)));
  REQUIRE(place.run_with({"export", "--checkpoint", "run", "--format", "llm.c", "--output", "out"}).code == 0);
  const ProgramResult result = place.run_with({"import", "--from", "out", "--output", "back"});
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(place.run_with({"inspect", "back"}).code == 0);
}

TEST_CASE("another vocabulary on --resume is told as that") {
  Json config = Json::parse(tiny_gpt);
  config["model"]["vocab_size"] = "auto";
  config["data"] = {{"type", "text"}, {"path", "text"}, {"tokenizer", "characters"}};
  const Workplace place(config.dump());
  const auto write = [&](const std::string& line) {
    std::string all;
    for (int i = 0; i < 60; ++i) all += line;
    place.write("text", all);
  };
  write("abcdefg hij\n");
  check_completes(place.run(every_second + steps(2)));
  write("abcdefg hijk\n");
  check_fails(place.run(every_second + steps(4) + Arguments{"--resume"}), 2,
              "the vocabulary of these data is another one than that of the checkpoint");
}
