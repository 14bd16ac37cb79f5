// The program from the outside: init, whose configs must pass --dry-run, and train.
#include <set>

#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

std::string some_text(int sentences) {
  std::string text;
  for (int i = 0; i < sentences; ++i) text += "This is sentence number " + std::to_string(i) + " of a text.\n";
  return text;
}

// nanoGPT's: 16 bits a token and nothing else.
std::string token_file(int tokens) {
  std::string bytes;
  for (int i = 0; i < tokens; ++i) bytes += {static_cast<char>(i * 7 % 50), '\0'};
  return bytes;
}

std::string idx_file(const std::vector<int>& dimensions) {
  std::string bytes = {'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  int count = 1;
  for (const int size : dimensions) {
    bytes += {'\0', '\0', static_cast<char>(size / 256), static_cast<char>(size % 256)};
    count *= size;
  }
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(i % 3);
  return bytes;
}

std::string table(bool with_header, const char* between, bool classes) {
  std::string text = with_header ? std::string("a") + between + "b" + between + "kind\n" : "";
  for (int row = 0; row < 60; ++row) {
    text += std::to_string(row) + between + std::to_string(0.5 * row) + between +
            (classes ? std::to_string(row % 3) : std::to_string(0.25 * row)) + "\n";
  }
  return text;
}

// A place with data of every kind.
class Place : public Workplace {
 public:
  Place() {
    write("book.txt", some_text(800));
    write("short.txt", some_text(8));
    write("lines.jsonl", lines());
    fs::create_directories(file("tokens"));
    write("tokens/x_train_000.bin", token_file(9000));
    write("tokens/x_val_000.bin", token_file(3000));
    write("one.bin", token_file(9000));
    write("table.csv", table(true, ",", false));
    write("classes.csv", table(true, ",", true));
    write("bare.csv", table(false, ";", false));
    fs::create_directories(file("images"));
    for (const auto& [part, count] : {std::pair{"train", 200}, std::pair{"t10k", 40}}) {
      write(std::string("images/") + part + "-images-idx3-ubyte", idx_file({count, 4, 5}));
      write(std::string("images/") + part + "-labels-idx1-ubyte", idx_file({count}));
    }
  }
  ProgramResult init(const Arguments& more) const { return run_with(Arguments{"init", "--output", "c.json"} + more); }
  ProgramResult dry_run() const { return run_with({"--config", "c.json", "--dry-run", "--world-size", "2"}); }
  Json config() const { return Json::parse(contents_of(file("c.json")), nullptr, false, true); }

 private:
  static std::string lines() {
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += R"({"prompt": "What is )" + std::to_string(i) + R"(?", "completion": " A number."})" + "\n";
    return text;
  }
};

void check_made(const ProgramResult& result) {
  INFO(result.out << result.err);
  CHECK(result.code == 0);
  CHECK(result.out.find("zerotrain --config c.json --dry-run") != std::string::npos);
}

void check_plans(const Place& place) {
  const ProgramResult plan = place.dry_run();
  INFO(plan.out << plan.err);
  CHECK(plan.code == 0);
  CHECK(plan.out.find("memory") != std::string::npos);
}

void check_refuses(const ProgramResult& result, const std::string& part) {
  INFO(result.err);
  CHECK(result.code == 2);
  CHECK(result.err.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("init's configs pass --dry-run: every kind of data, every size of a model") {
  const Place place;
  struct Case {
    Arguments arguments;
    const char* model;
    const char* data;
  };
  const std::vector<Case> cases = {
      {{"--path", "book.txt"}, "gpt", "text"},
      {{"--path", "lines.jsonl", "--size", "tiny"}, "gpt", "text"},
      {{"--path", "short.txt"}, "gpt", "text"},
      {{"--path", "tokens"}, "gpt", "tokens"},
      {{"--path", "one.bin"}, "gpt", "tokens"},
      {{"--path", "tokens/x_train_000.bin", "--size", "tiny"}, "gpt", "tokens"},
      {{"--data", "synthetic"}, "gpt", "synthetic"},
      {{"--path", "table.csv"}, "mlp", "csv"},
      {{"--path", "classes.csv"}, "mlp", "csv"},
      {{"--path", "classes.csv", "--target", "a"}, "mlp", "csv"},
      {{"--path", "bare.csv", "--target", "2"}, "mlp", "csv"},
      {{"--path", "images"}, "mlp", "idx"},
      {{"--path", "images/train-images-idx3-ubyte", "--size", "tiny"}, "mlp", "idx"},
      {{"--model", "mlp"}, "mlp", "synthetic"},
  };
  for (const Case& one : cases) {
    INFO(one.arguments.front() << " " << one.arguments.back());
    check_made(place.init(one.arguments + Arguments{"--force"}));
    const Json config = place.config();
    REQUIRE_FALSE(config.is_discarded());
    CHECK(config.at("model").at("type") == one.model);
    CHECK(config.at("data").at("type") == one.data);
    check_plans(place);
  }
  for (const char* size : {"medium", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"}) {
    INFO(size);
    check_made(place.init({"--model", "gpt", "--data", "synthetic", "--size", size, "--force"}));
    check_plans(place);
  }
  for (const char* size : {"tiny", "medium", "large"}) {
    INFO(size);
    check_made(place.init({"--model", "mlp", "--size", size, "--force"}));
    check_plans(place);
  }
}

TEST_CASE("init fits the config to the data that it finds") {
  const Place place;
  check_made(place.init({"--path", "classes.csv"}));
  CHECK(place.config().at("model").at("layers") == Json::parse("[2, 256, 128, 3]"));
  CHECK(place.config().at("model").at("loss") == "cross_entropy");
  CHECK(place.config().at("data").at("target") == Json::parse(R"(["kind"])"));
  check_made(place.init({"--path", "bare.csv", "--force"}));
  CHECK(place.config().at("data").at("header") == false);
  CHECK(place.config().at("data").at("delimiter") == ";");
  CHECK(place.config().at("data").at("target") == Json::parse("[3]"));
  CHECK(place.config().at("model").at("loss") == "mse");
  check_made(place.init({"--path", "images", "--force"}));
  CHECK(place.config().at("model").at("layers") == Json::parse("[20, 256, 128, 3]"));
  CHECK(place.config().at("data").contains("validation_images"));
  check_made(place.init({"--path", "short.txt", "--force"}));
  CHECK(place.config().at("model").at("n_positions") < 128);
  check_made(place.init({"--path", "tokens", "--force"}));
  CHECK(place.config().at("data").at("validation") == "tokens/*val*.bin");
}

TEST_CASE("a folder with token files for training alone has a config that runs, and says that nothing is evaluated") {
  const Place place;
  fs::create_directories(place.file("alone"));
  place.write("alone/x_train_000.bin", token_file(9000));
  fs::create_directories(place.file("unnamed"));
  place.write("unnamed/corpus.bin", token_file(9000));
  for (const auto& [folder, pattern] : {std::pair{"alone", "*train*.bin"}, std::pair{"unnamed", "*.bin"}}) {
    CAPTURE(folder);
    const ProgramResult made = place.init({"--path", folder, "--size", "tiny", "--force"});
    check_made(made);
    CHECK(made.out.find("none for validation") != std::string::npos);
    const Json config = place.config();
    CHECK(config.at("data").at("train") == std::string(folder) + "/" + pattern);
    CHECK(config.at("data").at("validation").is_null());
    CHECK(config.at("training").at("eval_interval") == 0);
    const std::string text = std::regex_replace(contents_of(place.file("c.json")), std::regex("\\n *// "), " ");
    CHECK(text.find("There are none beside those for training") != std::string::npos);
    check_plans(place);
    const ProgramResult trained = place.run_with(
        {"--config", "c.json", "--output", std::string("run-") + folder, "--set", "training.max_steps=2"});
    check_completes(trained);
    CHECK(trained.err.find("warning") == std::string::npos);
  }
}

TEST_CASE("init explains every key by the table of keys, and paths count from the config's folder") {
  const Place place;
  fs::create_directories(place.file("configs"));
  const ProgramResult made = place.run_with({"init", "--path", "book.txt", "--output", "configs/mine.json"});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const std::string text = contents_of(place.file("configs/mine.json"));
  CHECK(text.find("\"path\": \"../book.txt\"") != std::string::npos);
  bool has_comment = false;
  for (const std::string& line : lines_of(text)) {
    const std::size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos) continue;
    INFO(line);
    CHECK(line.size() <= 140);
    if (line[at] == '"') CHECK(has_comment);
    has_comment = line.compare(at, 2, "//") == 0;
  }
  CHECK(text.find("// optimizer steps attempted, skipped ones included (an integer from 1)") != std::string::npos);
  check_completes(place.run_with({"--config", "configs/mine.json", "--output", "run", "--set", "training.max_steps=2",
                                  "--set", "training.eval_steps=1", "--set", "training.sample_prompt="}));
}

TEST_CASE("init says where data are to be put that are not there yet") {
  const Place place;
  for (const auto& [arguments, path] : {std::pair{Arguments{"--model", "gpt"}, "data/text.txt"},
                                        std::pair{Arguments{"--data", "tokens"}, "data/train.bin"},
                                        std::pair{Arguments{"--data", "csv"}, "data/table.csv"},
                                        std::pair{Arguments{"--data", "idx"}, "data/train-images-idx3-ubyte"}}) {
    const ProgramResult made = place.init(arguments + Arguments{"--force"});
    INFO(made.out << made.err);
    CHECK(made.code == 0);
    CHECK(made.out.find("not there yet") != std::string::npos);
    CHECK(contents_of(place.file("c.json")).find(path) != std::string::npos);
    const ProgramResult plan = place.dry_run();
    CHECK(plan.code == 2);
    CHECK(plan.err.find(fs::path(path).filename().string()) != std::string::npos);
  }
}

TEST_CASE("init refuses what does not go together, and overwrites nothing unasked") {
  const Place place;
  check_refuses(place.init({"--model", "mlp", "--data", "text"}), "--data text is for --model gpt");
  check_refuses(place.init({"--model", "gpt", "--path", "table.csv"}), "--data csv is for --model mlp");
  check_refuses(place.init({"--model", "mlp", "--size", "gpt2"}),
                "of the model mlp there are tiny, small, medium, large");
  check_refuses(place.init({"--size", "huge"}), "--size");
  check_refuses(place.init({"--path", "none.txt"}), "there is no such file");
  check_refuses(place.init({"--path", "strange"}), "say it with --data");
  check_refuses(place.init({"--path", "table.csv", "--target", "c"}), "it has a, b, kind");
  check_refuses(place.init({"--data", "synthetic", "--path", "book.txt"}), "needs no file");
  check_refuses(place.init({"--target", "y"}), "--target goes with --data csv");
  check_refuses(place.init({"--path", "images/train-labels-idx1-ubyte"}), "images");
  place.write("broken.csv", "a,b\n1,x\n");
  check_refuses(place.init({"--path", "broken.csv"}), "broken.csv");
  CHECK_FALSE(fs::exists(place.file("c.json")));
  place.write("c.json", "mine");
  check_refuses(place.init({"--path", "book.txt"}), "--force");
  CHECK(contents_of(place.file("c.json")) == "mine");
  const std::string book = contents_of(place.file("book.txt"));
  check_refuses(place.run_with({"init", "--path", "book.txt", "--output", "book.txt", "--force"}), "is no config");
  check_refuses(place.init({"--path", "book.txt", "--force"}), "is no config");
  CHECK(contents_of(place.file("book.txt")) == book);
  place.write("my 'c'.json", "// a config\n{}");
  const ProgramResult replaced = place.run_with({"init", "--path", "book.txt", "--output", "my 'c'.json", "--force"});
  CHECK(replaced.code == 0);
  CHECK(replaced.out.find("zerotrain --config 'my '\\''c'\\''.json' --dry-run") != std::string::npos);
  check_refuses(place.run_with({"init", "--output", "nowhere/c.json"}), "there is no directory nowhere");
  check_refuses(place.run_with({"init", "--output", "images", "--force"}), "is a directory");
}
