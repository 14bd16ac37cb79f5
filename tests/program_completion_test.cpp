// The program from the outside: completion in shells that are there, and the manual page.
#include "config/keys.h"
#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

bool is_installed(const std::string& program) {
  return run_program({"sh", "-c", "command -v " + program}, {}).code == 0;
}

// A place with the scripts of completion, and files to complete.
class Shells : public Workplace {
 public:
  Shells() {
    for (const char* shell : {"bash", "zsh", "fish"}) {
      const ProgramResult script = run_with({"completion", shell});
      INFO(script.err);
      REQUIRE(script.code == 0);
      write(std::string("completion.") + shell, script.out);
    }
    fs::create_directories(file("folder"));
  }

  // What bash offers for a line, in its order; `options` go before.
  std::vector<std::string> bash(const std::string& line, const std::string& options = "") const {
    const std::string program = "source ./completion.bash\n" + options +
                                "\nCOMP_LINE=$1 COMP_POINT=${#1}\n_zerotrain\n"
                                "for word in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$word\"; done\n";
    const ProgramResult result = run_program({"bash", "--norc", "-uc", program, "bash", line}, this->options());
    INFO(line << ": " << result.err);
    CHECK(result.code == 0);
    CHECK(result.err.empty());
    return lines_of(result.out);
  }
  std::vector<std::string> fish(const std::string& line) const {
    const ProgramResult result = run_program(
        {"fish", "--no-config", "-c", "source completion.fish; complete -C \"$argv[1]\"", line}, this->options());
    INFO(line << ": " << result.err);
    CHECK(result.code == 0);
    CHECK(result.err.empty());
    std::vector<std::string> words;
    for (const std::string& text : lines_of(result.out)) words.push_back(text.substr(0, text.find('\t')));
    return words;
  }
};

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("bash completes verbs, options, files, keys and their values") {
  const Shells place;
  const Words first = place.bash("zerotrain ");
  for (const char* verb : {"train", "prove", "generate", "init", "doctor", "completion"}) {
    INFO(verb);
    CHECK(has(first, verb));
  }
  CHECK(place.bash("zerotrain gen") == Words{"generate"});
  CHECK(place.bash("zerotrain --conf") == Words{"--config"});
  CHECK(has(place.bash("zerotrain -"), "--dry-run"));
  CHECK(place.bash("zerotrain generate --max") == Words{"--max-tokens"});
  CHECK(place.bash("zerotrain generate --dry").empty());
  CHECK(place.bash("zerotrain --config conf") == Words{"config.json"});
  CHECK(place.bash("zerotrain --ranks 2 -c fol") == Words{"folder"});
  CHECK(place.bash("zerotrain --output ") == Words{"folder"});
  CHECK(place.bash("zerotrain report fol") == Words{"folder"});
  CHECK(place.bash("zerotrain export --format ") == Words{"huggingface", "llm.c"});
  CHECK(place.bash("zerotrain completion z") == Words{"zsh"});
  CHECK(place.bash("zerotrain init --model mlp --data s") == Words{"synthetic"});
  // Keys come section by section.
  CHECK(has(place.bash("zerotrain --set "), "model."));
  CHECK(has(place.bash("zerotrain --set "), "train_batch_size="));
  CHECK(place.bash("zerotrain --set model.n_he") == Words{"model.n_head="});
  CHECK(place.bash("zerotrain --set optimizer.params.l") ==
        Words{"optimizer.params.lr=", "optimizer.params.lr_decay="});
  CHECK(place.bash("zerotrain --set optimizer.") == Words{"optimizer.params.", "optimizer.type="});
  // Of a value readline replaces what is behind the last =.
  CHECK(place.bash("zerotrain --set model.type=") == Words{"gpt", "mlp"});
  CHECK(place.bash("zerotrain -s model.type=m") == Words{"mlp"});
  CHECK(place.bash("zerotrain evaluate --set device.type=c") == Words{"cpu", "cuda"});
  CHECK(place.bash("zerotrain --set zero_optimization.stage=") == Words{"0", "1", "2", "3", "auto"});
  CHECK(place.bash("zerotrain prove --set zero_optimization.stage=2") == Words{"2"});
  CHECK(place.bash("zerotrain --set bf16.enabled=") == Words{"true", "false", "auto"});
  CHECK(place.bash("zerotrain --set data.path=conf") == Words{"config.json"});
  CHECK(has(place.bash("zerotrain --set data.tokenizer="), "bytes"));
  CHECK(place.bash("zerotrain --set=model.type=g") == Words{"gpt"});
  CHECK(place.bash("zerotrain --config=conf") == Words{"config.json"});
  CHECK(place.bash("zerotrain --set model.n_layer=").empty());
  // Some take = out of what ends a word.
  const std::string no_equals = "COMP_WORDBREAKS=${COMP_WORDBREAKS//=}";
  CHECK(place.bash("zerotrain --set model.type=m", no_equals) == Words{"model.type=mlp"});
  CHECK(place.bash("zerotrain --config=conf", no_equals) == Words{"--config=config.json"});
  // Names with blanks stay whole.
  place.write("two words.json", "{}");
  CHECK(place.bash("zerotrain --config two") == Words{"two words.json"});
}

TEST_CASE("every key that is true or false, or one of few numbers or words, has its values completed") {
  const Shells place;
  int checked = 0;
  for (const zt::Key& key : zt::key_table()) {
    const bool has_type = key.type == zt::KeyType::boolean || key.type == zt::KeyType::choice ||
                          (key.type == zt::KeyType::integer && key.maximum - key.minimum < 10);
    if (key.kind != zt::KeyKind::used || !has_type) continue;
    Words values = key.choices;
    if (key.type == zt::KeyType::boolean) values.insert(values.end(), {"true", "false"});
    if (key.type == zt::KeyType::integer) {
      for (double number = key.minimum; number <= key.maximum; ++number) values.push_back(zt::number_text(number));
    }
    if (key.may_be_auto) values.emplace_back("auto");
    const Words offered = place.bash("zerotrain --set " + key.path + "=");
    CAPTURE(key.path);
    for (const std::string& word : values) {
      CAPTURE(word);
      const bool has_signs = word.find_first_of(",;\t") != std::string::npos;  // of data.delimiter: not for shells
      CHECK(has(offered, word) != has_signs);
    }
    ++checked;
  }
  CHECK(checked > 30);
}

TEST_CASE("fish and zsh take their scripts, where they are installed") {
  const Shells place;
  if (is_installed("zsh")) {
    const ProgramResult result = run_program({"zsh", "-n", "completion.zsh"}, place.options());
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK(result.err.empty());
  } else {
    WARN("skipped: zsh is not installed");
  }
  if (!is_installed("fish")) {
    WARN("skipped: fish is not installed");
    return;
  }
  CHECK(has(place.fish("zerotrain "), "doctor"));
  CHECK(place.fish("zerotrain gen") == Words{"generate"});
  CHECK(place.fish("zerotrain generate --max") == Words{"--max-tokens"});
  CHECK(has(place.fish("zerotrain --dry"), "--dry-run"));
  CHECK(has(place.fish("zerotrain --config conf"), "config.json"));
  CHECK(place.fish("zerotrain export --format h") == Words{"huggingface"});
  CHECK(place.fish("zerotrain --set model.n_he") == Words{"model.n_head="});
  CHECK(place.fish("zerotrain --set model.type=") == Words{"model.type=gpt", "model.type=mlp"});
  CHECK(has(place.fish("zerotrain --set data.path=conf"), "data.path=config.json"));
}

TEST_CASE("completion wants the name of a shell") {
  const Workplace place;
  CHECK(place.run_with({"completion"}).code == 2);
  const ProgramResult other = place.run_with({"completion", "tcsh"});
  CHECK(other.code == 2);
  CHECK(other.err.find("bash") != std::string::npos);
}

TEST_CASE("the manual page has every verb, option and key, and no fault that a checker finds") {
  const Workplace place;
  const ProgramResult page = place.run_with({"--print-manual"});
  INFO(page.err);
  REQUIRE(page.code == 0);
  place.write("zerotrain.1", page.out);
  for (const char* part :
       {".Dt ZEROTRAIN 1", ".Sh SYNOPSIS", ".Ss generate", ".Ss doctor", ".It Fl c , Fl \\-config Ar \"FILE\"",
        ".It Fl \\-max\\-tokens", ".It Ic zero_optimization.stage", ".Sh EXIT STATUS"}) {
    INFO(part);
    CHECK(page.out.find(part) != std::string::npos);
  }
  if (is_installed("mandoc")) {
    const ProgramResult lint = run_program({"mandoc", "-Tlint", "-Wstyle", "zerotrain.1"}, place.options());
    INFO(lint.out << lint.err);
    CHECK(lint.code == 0);
    CHECK(lint.out.empty());
  } else {
    WARN("skipped: mandoc is not installed");
  }
  if (is_installed("man") && is_installed("groff")) {
    const ProgramResult read =
        run_program({"man", "--warnings", "-l", "zerotrain.1"},
                    {.directory = place.path(), .environment = {{"MANWIDTH", "80"}, {"LC_ALL", "C"}}});
    INFO(read.err);
    CHECK(read.code == 0);
    CHECK(read.err.empty());
    CHECK(read.out.find("--config") != std::string::npos);
  } else {
    WARN("skipped: man is not installed");
  }
}
