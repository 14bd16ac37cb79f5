// What is written to a terminal: no control characters of a model's, which elsewhere come through as they are.
#include <termios.h>

#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

// Every byte is a token, and the weights are the initial ones: all bytes are about as likely.
const char* const wild_gpt = R"({
  "train_batch_size": 2, "optimizer": { "type": "SGD", "params": { "lr": 0.0 } },
  "model": { "type": "gpt", "n_layer": 1, "n_head": 1, "n_embd": 8, "n_positions": 16 },
  "data": { "type": "text", "path": "text.txt", "tokenizer": "bytes", "validation_fraction": 0.0 },
  "training": { "max_steps": 1, "eval_interval": 0, "checkpoint_interval": 1 },
  "device": { "threads": 1 }
})";

class Wild : public Workplace {
 public:
  Wild() : Workplace(wild_gpt) { write("text.txt", std::string(200, 'a')); }
};

// stdout of a program that has a terminal for it.
std::string shown_on_terminal(const Arguments& command, const fs::path& directory) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const std::string other_end = ptsname(terminal);
  const int end = open(other_end.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(end >= 0);
  termios settings{};
  REQUIRE(tcgetattr(end, &settings) == 0);
  cfmakeraw(&settings);  // bytes come through as they were written
  REQUIRE(tcsetattr(end, TCSANOW, &settings) == 0);
  const std::string path = directory.string();
  const pid_t process = fork();
  if (process == 0) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const int nothing = open("/dev/null", O_WRONLY);
    if (nothing >= 0 && dup2(end, 1) == 1 && dup2(nothing, 2) == 2 && chdir(path.c_str()) == 0)
      execv(words.front(), words.data());
    _exit(127);
  }
  REQUIRE(process > 0);
  close(end);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = read(terminal, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  close(terminal);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return text;
}

// ASCII's control characters but newline and tab.
int control_characters(const std::string& text) {
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; }));
}

}  // namespace

TEST_CASE("generate shows control characters escaped on a terminal, and writes them as they are elsewhere") {
  const Wild place;
  check_completes(place.run({}));
  const Arguments generate = {"generate",     "--checkpoint", "run",    "--prompt", "a\x1b[31mb",
                              "--max-tokens", "400",          "--seed", "3"};
  const ProgramResult plain = place.run_with(generate);
  INFO(plain.err);
  REQUIRE(plain.code == 0);
  CHECK(control_characters(plain.out) > 10);
  CHECK(plain.out.find('\0') != std::string::npos);
  // Elsewhere nothing is lost or changed.
  const Json json = Json::parse(place.run_with(generate + Arguments{"--json"}).out);
  CHECK(plain.out == "a\x1b[31mb" + json.at("text").get<std::string>() + "\n");

  const std::string shown = shown_on_terminal(Arguments{ZEROTRAIN_BINARY} + generate, place.path());
  CHECK(control_characters(shown) == 0);
  CHECK(shown.starts_with("a\\x1b[31mb"));
  CHECK(shown.ends_with("\n"));
  // Every one of them is there, as four characters.
  CHECK(count_of(shown, "\\x") + count_of(shown, "\\r") >= control_characters(plain.out));
}

TEST_CASE("the sample at the end of a run shows control characters escaped on a terminal, and as they are elsewhere") {
  const Wild place;
  const Arguments sample = {"--overwrite", "--quiet", "--set", "training.sample_prompt=a"};
  const ProgramResult plain = place.run(sample);
  check_completes(plain);
  CHECK(plain.out.size() == 302);  // the prompt, 300 tokens of a byte each, a newline
  CHECK(control_characters(plain.out) > 5);
  const std::string shown = shown_on_terminal(Workplace::command(sample), place.path());
  CHECK(control_characters(shown) == 0);
  CHECK(shown.starts_with("a"));
  CHECK(count_of(shown, "\\x") > control_characters(plain.out));  // bytes that are no UTF-8, too
}
