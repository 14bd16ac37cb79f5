// The program from the outside: the help of its verbs, what it says of words that are no verb, and ranges of options.
#include <set>

#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

std::string help_of(const Workplace& place, const Arguments& arguments) {
  const ProgramResult result = place.run_with(arguments);
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  return result.out;
}

// Those of "  zerotrain VERB --help: what it does".
std::vector<std::string> verbs_in(const std::string& help) {
  std::vector<std::string> verbs;
  const std::regex line_of_verb("  zerotrain ([a-z]+) --help: .+");
  for (const std::string& line : lines_of(help)) {
    if (std::smatch match; std::regex_match(line, match, line_of_verb)) verbs.push_back(match[1]);
  }
  return verbs;
}

// The lines that begin with "  zerotrain VERB ", each without what explains it.
std::vector<std::string> examples_in(const std::string& help, const std::string& verb) {
  std::vector<std::string> examples;
  for (const std::string& line : lines_of(help)) {
    if ((line + " ").starts_with("  zerotrain " + verb + " "))
      examples.push_back(line.substr(2, line.find("   ", 2) - 2));
  }
  return examples;
}

// What stands in the list of options behind one of them, up to the next one.
std::string text_of(const std::string& help, const std::string& option) {
  const std::size_t at = help.find(option);
  REQUIRE(at != std::string::npos);
  const std::size_t next = help.find("\n  -", at);
  return help.substr(at, next - at);
}

}  // namespace

TEST_CASE("every verb has a help of its own, with examples") {
  const Workplace place;
  const std::string help = help_of(place, {"--help"});
  CHECK(help_of(place, {"train", "--help"}) == help);
  const std::vector<std::string> verbs = verbs_in(help);
  CHECK(verbs.size() >= 14);
  for (const std::string& verb : verbs) {
    CAPTURE(verb);
    const std::string own = help_of(place, {verb, "--help"});
    CHECK(own.find("Usage: zerotrain " + verb + " ") != std::string::npos);
    CHECK(own.find("Examples:\n") != std::string::npos);
    CHECK_FALSE(examples_in(own, verb).empty());
  }
}

TEST_CASE("prove's help has the options of prove, and train's those of train, wherever the verb stands") {
  const Workplace place;
  const std::string of_prove = help_of(place, {"prove", "--help"});
  for (const char* shown :
       {"--ranks LIST=1,2,4", "--stages LIST=0,1,2,3", "--steps N=4", "--as-is", "--json", "--set"}) {
    CAPTURE(shown);
    CHECK(of_prove.find(shown) != std::string::npos);
  }
  for (const char* of_train : {"--dry-run", "--resume", "--output", "[verb]"}) {
    CAPTURE(of_train);
    CHECK(of_prove.find(of_train) == std::string::npos);
  }
  CHECK(help_of(place, {"--config", "config.json", "prove", "--help"}) == of_prove);
  const std::string help = help_of(place, {"--help"});
  for (const char* only_of_prove : {"--stages", "--steps", "--as-is"})
    CHECK(help.find(only_of_prove) == std::string::npos);
  CHECK(help.find("--dry-run") != std::string::npos);
  // They are known all the same, to say with what they go.
  check_fails(place.run({"--stages", "1"}), 2, "go with prove");
  check_fails(place.run_with({"prove", "--config", "config.json", "--dry-run"}), 2, "does not go with prove");
}

TEST_CASE("a word that is no verb is refused, also with --help, and the nearest verb is named") {
  const Workplace place;
  for (const Arguments& rest : {Arguments{"--help"}, Arguments{}, Arguments{"--config", "config.json"}}) {
    check_fails(place.run_with(Arguments{"inspekt"} + rest), 2, "there is no verb \"inspekt\"; did you mean inspect?");
    check_fails(place.run_with(Arguments{"prov"} + rest), 2, "did you mean prove?");
    const ProgramResult far = place.run_with(Arguments{"juggle"} + rest);
    check_fails(far, 2, "there is no verb \"juggle\". zerotrain has train, prove, init");
    CHECK(far.err.find("did you mean") == std::string::npos);
  }
  check_fails(place.run_with({"--config", "config.json", "inspekt", "--help"}), 2, "did you mean inspect?");
  check_fails(place.run_with({"--config", "config.json", "inspect", "run"}), 2,
              "the verb stands first: zerotrain inspect");
  check_fails(place.run_with({"--quiet", "inspect", "--help"}), 2, "the verb stands first: zerotrain inspect");
  check_fails(place.run_with({"config.json"}), 2, "each config file needs its own --config");
}

TEST_CASE("the examples in the verbs' help run as they stand") {
  const Workplace place;
  fs::create_directories(place.file("configs"));
  std::string text;
  for (int i = 0; i < 200; ++i) text += "And number " + std::to_string(i * 7919) + " came to pass. Q: who? A: he.\n";
  place.write("book.txt", text);
  place.write("a.txt", text.substr(0, 3000));
  place.write("b.jsonl", "{\"text\": \"And it came to pass\"}\n");
  place.write("configs/gpt.json", R"({
    "train_batch_size": 8, "optimizer": { "type": "AdamW", "params": { "lr": 1e-2 } },
    "model": { "type": "gpt", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 32 },
    "data": { "type": "text", "path": "../book.txt", "tokenizer": "bytes", "validation_fraction": 0.1 },
    "training": { "max_steps": 20, "eval_interval": 10, "eval_steps": 1, "checkpoint_interval": 10 },
    "zero_optimization": { "stage": 2 }, "device": { "threads": 1 } })");
  for (const char* run : {"gpt", "a", "b"}) {
    check_completes(
        place.run_with({"--config", "configs/gpt.json", "--output", std::string("runs/") + run, "--ranks", "2"}));
  }
  const std::string folder = fs::path(ZEROTRAIN_BINARY).parent_path().string();
  // Later ones take what earlier ones write.
  for (const char* verb : {"tokenize", "compare", "estimate", "prove", "export", "import", "generate", "evaluate",
                           "inspect", "replay", "report"}) {
    const std::vector<std::string> examples = examples_in(help_of(place, {verb, "--help"}), verb);
    CHECK_FALSE(examples.empty());
    for (const std::string& example : examples) {
      const ProgramResult result =
          run_program({"sh", "-c", "PATH=\"$1:$PATH\"; export PATH; " + example, "sh", folder}, place.options());
      INFO(example << "\n" << result.out << result.err);
      CHECK(result.code == 0);
    }
  }
}

TEST_CASE("each option says what it does, its unit and its default") {
  const Workplace place;
  struct Line {
    Arguments command;
    const char* option;
    const char* says;
  };
  for (const auto& [command, option, says] : std::vector<Line>{
           {{"generate"}, "--top-p P=1", "0: from the likeliest one alone"},
           {{"generate"}, "--top-k K=0", "0: from all"},
           {{"generate"}, "--temperature X=1", "0: always the likeliest token"},
           {{"tokenize"}, "--min-frequency N=0", "at least N times"},
           {{"tokenize"}, "--format NAME=llm.c", "nanogpt"},
           {{"tokenize"}, "--text-key KEY=text", "JSON lines"},
           {{"tokenize"}, "--threads N", "one for each core"},
           {{"estimate"}, "--updates N", "a second"},
           {{"estimate"}, "--latency SECONDS=0", "seconds that a collective takes"},
           {{"replay"}, "--count N=16", "how many elements"},
           {{"replay"}, "--first N=0", "counted from 0"},
           {{"export"}, "--largest-file BYTES=5000000000", "in one file at most"},
       }) {
    CAPTURE(option);
    std::string text = text_of(help_of(place, command + Arguments{"--help"}), option);
    text = std::regex_replace(text, std::regex("\\s+"), " ");
    CHECK(text.find(says) != std::string::npos);
  }
}

TEST_CASE("numbers of ranks out of range are refused in the same words, with the same range, by all that start ranks") {
  const Workplace place;
  check_completes(place.run({"--set", "training.checkpoint_interval=4"}));
  std::set<std::string> ranges;
  for (const Arguments& command : {Arguments{"--config", "config.json"}, Arguments{"prove", "--config", "config.json"},
                                   Arguments{"evaluate", "--checkpoint", "run"}}) {
    CAPTURE(command);
    for (const char* wrong : {"0", "-1", "two", "2.5", "1000000", "99999999999999999999"}) {
      const ProgramResult result = place.run_with(command + Arguments{std::string("--ranks=") + wrong});
      CAPTURE(wrong);
      check_fails(result, 2, std::string("--ranks: \"") + wrong + "\" is not a whole number from 1 to ");
      std::smatch match;
      REQUIRE(std::regex_search(result.err, match, std::regex("from 1 to ([0-9]+)")));
      ranges.insert(match[1]);
    }
    check_fails(place.run_with(command + Arguments{"--ranks", "1000000"}), 2, "the most that are started on ");
  }
  CHECK(ranges.size() == 1);
  check_fails(place.run({"--dry-run", "--world-size", "0"}), 2,
              "--world-size: \"0\" is not a whole number from 1 to 1048576");
  check_fails(place.run_with({"estimate", "--parameters", "1e9", "--world-size", "0"}), 2,
              "--world-size: \"0\" is not a whole number from 1 to 1048576");
  check_fails(place.run_with({"estimate", "--parameters", "1e9", "--stages", "4"}), 2,
              "--stages: \"4\" is not a whole number from 0 to 3");
  check_fails(place.run_with({"prove", "--config", "config.json", "--stages", "0,4"}), 2,
              "--stages: \"4\" is not a whole number from 0 to 3");
  // A plan has as many ranks as one likes.
  const ProgramResult plan =
      place.run({"--dry-run", "--ranks", "5000", "--set", "train_batch_size=5000", "--set", "data.samples=20000"});
  INFO(plan.err);
  CHECK(plan.code == 0);
}
