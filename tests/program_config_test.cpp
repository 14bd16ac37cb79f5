// The program from the outside: configs and command lines, and what is found before the first step.
#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

TEST_CASE("config.resolved.json is what --print-config prints, and trains the same weights") {
  const Workplace place;
  place.write("text.txt", std::string(500, 'a') + std::string(500, 'b'));
  const Arguments text = {"--set", R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                          "--set", "model.vocab_size=auto",
                          "--set", R"(optimizer={"type": "SGD"})",
                          "--set", R"(scheduler={"type": "WarmupLR", "params": {"warmup_num_steps": 3}})",
                          "--set", "bf16.enabled=true"};
  int number = 0;
  for (const Arguments& kind : {ranks(2) + stage(2) + fp16, ranks(1) + text}) {
    CAPTURE(kind);
    const Arguments more = kind + Arguments{"--set", "device.threads=auto"};
    const ProgramResult printed = place.run(more + Arguments{"--print-config", "--overwrite"});
    check_completes(printed);
    if (number == 0) CHECK_FALSE(fs::exists(place.file("run")));
    CHECK(printed.out.find("\"auto\"") == std::string::npos);
    CHECK(printed.err.empty());
    check_completes(place.run(more + Arguments{"--overwrite"}));
    CHECK(contents_of(place.file("run/config.resolved.json")) == printed.out);

    const Arguments again = {"--ranks", kind.at(1), "--config", "run/config.resolved.json"};
    const std::string second = "again" + std::to_string(number++);
    check_completes(place.run_with(again + Arguments{"--output", second}));
    CHECK(curve_of(place.file(second)) == curve_of(place.file("run")));
    CHECK(place.run_with(again + Arguments{"--print-config"}).out == printed.out);
  }
}

TEST_CASE("what is wrong before the first step ends with code 2, one message and no files") {
  const Workplace place;
  const auto check_refused = [&](const Arguments& arguments, const std::string& part) {
    CAPTURE(arguments);
    check_fails(place.run(arguments), 2, part);
    CHECK(std::distance(fs::directory_iterator(place.path()), fs::directory_iterator()) == 1);
  };
  for (const Arguments& how : {Arguments{}, ranks(2)}) {
    check_refused(how + Arguments{"--set", "optimiser.type=AdamW", "--set", "training.max_steps=many"},
                  "2 mistakes in the config");
    check_refused(how + Arguments{"--set", R"(data={"type": "text", "path": "none.txt"})"}, "none.txt: no such file");
  }
  check_refused({"--ranks", "0"}, "--ranks: \"0\" is not a whole number from 1 to ");
  check_refused({"--ranks", "4"}, "train_batch_size");
  check_refused({"--ranks", "2", "--set", "device.communicator=mpi"}, "mpirun");
  check_refused({"--world-size", "2"}, "--dry-run");
  check_refused({"--resume", "--overwrite"}, "exclude each other");
  check_refused({"--no-such-option"}, "--no-such-option");
  check_refused({"train", "extra"}, "extra");
  check_fails(place.run_with({"juggle", "--config", "config.json"}), 2, "\"juggle\"");
  check_fails(place.run_with({"--config", "none.json"}), 2, "none.json");
  check_fails(place.run_with({}), 2, "no config");
}

TEST_CASE("what is wrong is said once under mpirun") {
  if (!can_use_mpi()) return;
  const Workplace place;
  for (const Arguments& wrong :
       {Arguments{"--set", "optimiser.type=AdamW"}, Arguments{"--set", R"(data={"type": "text", "path": "none.txt"})"},
        Arguments{"--ranks", "2"}}) {
    CAPTURE(wrong);
    check_fails(place.run(wrong, mpirun(2)), 2, "zerotrain: ");
    CHECK_FALSE(fs::exists(place.file("run")));
  }
}

TEST_CASE("an output directory that holds a run is used again only when asked") {
  const Workplace place;
  check_completes(place.run({"--set", "training.seed=1"}));
  place.write("run/notes.txt", "of the user");
  const std::string before = contents_of(place.file("run/summary.json"));
  for (const Arguments& how : {Arguments{}, ranks(2)}) {
    check_fails(place.run(how), 2, "holds a run already");
    CHECK(contents_of(place.file("run/summary.json")) == before);
  }
  check_completes(place.run({"--overwrite"}));
  CHECK(contents_of(place.file("run/summary.json")) != before);
  CHECK(metrics_of(place.file("run")).size() == 6);
  CHECK(contents_of(place.file("run/notes.txt")) == "of the user");

  place.write("file", "");
  for (const std::string path : {"file", "file/below"}) {
    check_fails(place.run_with({"--config", "config.json", "--output", path}), 2, path);
  }
  CHECK(fs::is_regular_file(place.file("file")));
}

TEST_CASE("a finished run is left alone, and not taken for one of more steps") {
  const Workplace place;
  check_completes(place.run({}));
  const std::string before = contents_of(place.file("run/summary.json"));
  const ProgramResult again = place.run({"--resume"});
  CHECK(again.code == 0);
  CHECK(again.err.find("is finished: nothing to resume") != std::string::npos);
  check_fails(place.run({"--resume", "--set", "training.max_steps=9"}), 2,
              "finished after 4 steps, and training.max_steps asks for 9");
  CHECK(contents_of(place.file("run/summary.json")) == before);
}

TEST_CASE("arguments that are not expected say how they are given") {
  const Workplace place;
  check_fails(place.run({"other.json"}), 2, "each config file needs its own --config, as --config other.json");
  check_fails(place.run({"train", "other.json"}), 2, "each config file needs its own --config, as --config other.json");
  check_fails(place.run({"--training.max_steps=3"}), 2, "given as --set training.max_steps=3");
}

TEST_CASE("help and version go to stdout") {
  const Workplace place;
  for (const std::string option : {"--help", "--version"}) {
    const ProgramResult result = place.run_with({option});
    check_completes(result);
    CHECK(result.out.find("zerotrain") != std::string::npos);
    CHECK(result.err.empty());
  }
}

TEST_CASE("a prompt that the vocabulary lacks is found before a run is overwritten") {
  const Workplace place;
  place.write("text.txt", std::string(500, 'a') + std::string(500, 'b'));
  const Arguments sample = {"--set",   R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                            "--set",   "model.vocab_size=auto",
                            "--quiet", "--overwrite"};
  check_completes(place.run(sample));
  const std::string before = contents_of(place.file("run/summary.json"));
  CHECK(before.size() > 100);
  for (const int number : {1, 2}) {
    check_fails(place.run(ranks(number) + sample + Arguments{"--set", "training.sample_prompt=abc"}), 2, "c");
    CHECK(contents_of(place.file("run/summary.json")) == before);
  }
}
