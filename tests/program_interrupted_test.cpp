// The program from the outside: what a verb has begun to write is gone when a signal ends it.
#include "program_support.h"

using namespace zt::test;

namespace {

std::string golden(const std::string& name) {
  return std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/formats/" + name;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

struct Verb {
  std::string name;
  Arguments arguments;  // writes into the directory "checkpoints"
  std::string unfinished;
  int calls;              // at least, that change something there before it is whole
  std::size_t names = 1;  // that it leaves there
};

}  // namespace

TEST_CASE("a signal leaves nothing of what a verb was writing, at whatever call it comes") {
  const Workplace place;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "number " + std::to_string(i * 7919) + "\n";
  place.write("text.txt", text);
  check_completes(place.run({"--set", "training.max_steps=1", "--set", "training.eval_interval=0"}));
  fs::create_directory(place.file("checkpoints"));  // where failing_writes.c looks
  const std::string at = place.file("checkpoints").string();
  const Arguments tokenize = {"tokenize", "--tokenizer", "bytes", "--input", "text.txt", "--output"};
  const std::vector<Verb> verbs = {
      {"tokenize", tokenize + Arguments{at + "/a.bin"}, "a.bin.tmp", 6},
      {"tokenize for Megatron", tokenize + Arguments{at + "/a.bin", "--format", "megatron"}, "a.idx.tmp", 8, 2},
      {"tokenize --ids",
       {"tokenize", "--tokenizer", "bytes", "--input", "text.txt", "--ids", "--output", at + "/a"},
       "a.tmp",
       4},
      {"tokenize --train",
       {"tokenize", "--train", "--vocab-size", "270", "--input", "text.txt", "--output", at + "/a.json"},
       "a.json.tmp",
       4},
      {"export to the library",
       {"export", "--checkpoint", golden("gpt2"), "--format", "huggingface", "--output", at + "/a"},
       "a.partial",
       9},
      {"export to llm.c",
       {"export", "--checkpoint", golden("gpt2"), "--format", "llm.c", "--output", at + "/a"},
       "a.partial",
       4},
      {"import", {"import", "--from", golden("gpt2"), "--output", at + "/a"}, "a.partial", 9},
      {"report", {"report", "run", "--output", at + "/a.html"}, "a.html.tmp", 4}};
  std::size_t turn = 0;
  for (const Verb& verb : verbs) {
    for (int call = 2;; ++call) {
      const int signal = std::vector<int>{SIGINT, SIGTERM, SIGHUP, SIGUSR1}[turn++ % 4];
      CAPTURE(verb.name, call, signal);
      REQUIRE(call < 100);
      ProgramOptions options = place.options();
      options.environment = {
          {"LD_PRELOAD", ZEROTRAIN_FAILING_WRITES}, {"FAILING_CALL", std::to_string(call)}, {"FAILING_WITH", "wait"}};
      Program program(Arguments{ZEROTRAIN_BINARY} + verb.arguments, options);
      if (!program.wait_until([&] { return program.err_so_far().find("waiting") != std::string::npos; })) {
        // So many calls it has not: undisturbed it writes what was asked for, and nothing else.
        check_completes(program.finish());
        CHECK(call > verb.calls);
        CHECK(names_in(place.file("checkpoints")).size() == verb.names);
        break;
      }
      CHECK(fs::exists(place.file("checkpoints") / verb.unfinished));
      program.send(signal);
      const ProgramResult result = program.finish();
      INFO(result.err);
      CHECK(result.code == 128 + signal);
      CHECK(result.err.find("zerotrain: ") == std::string::npos);
      CHECK(names_in(place.file("checkpoints")).empty());
    }
    fs::remove_all(place.file("checkpoints"));
    fs::create_directory(place.file("checkpoints"));
  }
}
