// tokenize from the outside: vocabularies, token files, ids, and training on what it wrote.
#include <sys/stat.h>

#include <cstring>

#include "program_support.h"

using namespace zt::test;

namespace {

std::string text_of_many_words() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "the lord said unto number " + std::to_string(i * 37 % 101) + ", go thou and see\n";
  return text;
}

std::vector<std::int32_t> integers_of(const std::string& line) {
  std::vector<std::int32_t> values;
  std::istringstream stream(line);
  for (std::int32_t value = 0; stream >> value;) values.push_back(value);
  return values;
}

}  // namespace

TEST_CASE("a vocabulary is trained, and what it tokenizes can be trained on") {
  const Workplace place(R"({
    "train_batch_size": 4, "model": { "type": "gpt", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 8 },
    "data": { "type": "tokens", "train": "part-*.bin", "validation": "part-1.bin", "tokenizer": "words.json" },
    "training": { "max_steps": 3, "eval_interval": 3, "eval_steps": 1, "checkpoint_interval": 3 }, "device": { "threads": 1 } })");
  place.write("words.txt", text_of_many_words());
  const ProgramResult trained =
      place.run_with({"tokenize", "--train", "--vocab-size", "300", "--input", "words.txt", "--output", "words.json"});
  check_completes(trained);
  const Json vocabulary = json_of(place.file("words.json"));
  CHECK(vocabulary.at("model").at("vocab").size() >= 290);

  // The same twice, whatever the number of threads does.
  check_completes(
      place.run_with({"tokenize", "--train", "--vocab-size", "300", "--input", "words.txt", "--output", "again.json"}));
  CHECK(contents_of(place.file("again.json")) == contents_of(place.file("words.json")));

  const ProgramResult ids = place.run_with({"tokenize", "--tokenizer", "words.json", "--input", "words.txt", "--ids"});
  check_completes(ids);
  const std::vector<std::string> lines = lines_of(ids.out);
  REQUIRE(lines.size() == 400);
  std::size_t count = 0;
  for (const std::string& line : lines) count += integers_of(line).size();
  CHECK(count < text_of_many_words().size() / 3);

  for (const char* name : {"part-1.bin", "part-2.bin"})
    check_completes(
        place.run_with({"tokenize", "--tokenizer", "words.json", "--input", "words.txt", "--output", name}));
  const std::string file = contents_of(place.file("part-1.bin"));
  std::int32_t head[3] = {};
  REQUIRE(file.size() > 1024);
  std::memcpy(head, file.data(), sizeof head);
  CHECK(head[0] == 20240520);
  CHECK(head[1] == 1);
  CHECK(file.size() == 1024 + 2 * static_cast<std::size_t>(head[2]));

  check_completes(place.run({}));
  const ProgramResult generated = place.run_with(
      {"generate", "--checkpoint", "run", "--prompt", "the lord", "--max-tokens", "5", "--temperature", "0"});
  CHECK(generated.code == 0);
  CHECK(generated.out.starts_with("the lord"));
}

TEST_CASE("every format of token files is written, and JSON lines are read") {
  const Workplace place;
  place.write("words.txt", text_of_many_words());
  place.write("lines.jsonl", "{\"text\": \"the lord said\"}\n{\"text\": \"go thou\", \"other\": 1}\n");
  check_completes(
      place.run_with({"tokenize", "--train", "--vocab-size", "280", "--input", "words.txt", "--output", "t.json"}));
  for (const std::string format : {"llm.c", "nanogpt", "megatron"}) {
    CAPTURE(format);
    check_completes(place.run_with({"tokenize", "--tokenizer", "t.json", "--format", format, "--input", "lines.jsonl",
                                    "--output", format + ".bin"}));
    CHECK(fs::file_size(place.file(format + ".bin")) > 10);
    CHECK(fs::exists(place.file(format + ".idx")) == (format == "megatron"));
  }
}

TEST_CASE("what tokenize cannot use is told") {
  const Workplace place;
  place.write("words.txt", "some words");
  place.write("bad.json", "{\"model\": {\"type\": \"WordPiece\"}}");
  place.write("bad.jsonl", "{\"text\": 3}\n");
  check_fails(place.run_with({"tokenize", "--tokenizer", "missing.json", "--input", "words.txt", "--output", "x.bin"}),
              2, "missing.json");
  check_fails(place.run_with({"tokenize", "--tokenizer", "bad.json", "--input", "words.txt", "--output", "x.bin"}), 2,
              "WordPiece");
  check_fails(
      place.run_with({"tokenize", "--train", "--vocab-size", "300", "--input", "missing.txt", "--output", "x.json"}), 2,
      "missing.txt");
  check_completes(
      place.run_with({"tokenize", "--train", "--vocab-size", "260", "--input", "words.txt", "--output", "t.json"}));
  check_fails(place.run_with({"tokenize", "--tokenizer", "t.json", "--input", "bad.jsonl", "--output", "x.bin"}), 2,
              "bad.jsonl");
  for (const char* left : {"x.bin", "x.json", "x.bin.tmp", "x.json.tmp"}) CHECK_FALSE(fs::exists(place.file(left)));
}

TEST_CASE("tokenize does not write over what it reads") {
  const Workplace place;
  place.write("words.txt", "some words");
  check_completes(
      place.run_with({"tokenize", "--train", "--vocab-size", "260", "--input", "words.txt", "--output", "t.json"}));
  fs::create_directory_symlink(".", place.file("link"));
  for (const char* output : {"words.txt", "link/words.txt", "t.json"}) {
    CAPTURE(output);
    check_fails(place.run_with({"tokenize", "--tokenizer", "t.json", "--input", "words.txt", "--output", output}), 2,
                "would write over");
  }
  check_fails(
      place.run_with({"tokenize", "--train", "--vocab-size", "260", "--input", "words.txt", "--output", "words.txt"}),
      2, "would write over");
  CHECK(contents_of(place.file("words.txt")) == "some words");
}

TEST_CASE("tokenize writes over a file that is there only where that is asked for, and over no other thing") {
  const Workplace place;
  place.write("words.txt", "some words");
  const Arguments ids = {"tokenize", "--tokenizer", "bytes", "--input", "words.txt", "--ids", "--output", "out.txt"};
  const Arguments tokens = {"tokenize", "--tokenizer", "bytes", "--input", "words.txt", "--output", "out.bin"};
  const Arguments training = {"tokenize", "--train",   "--vocab-size", "260",
                              "--input",  "words.txt", "--output",     "out.json"};
  for (const Arguments& arguments : {ids, tokens, training}) {
    const std::string output = arguments.back();
    CAPTURE(output);
    place.write(output, "of the user");
    check_fails(place.run_with(arguments), 2,
                output +
                    " is there already: name another file, or replace it with "
                    "--overwrite");
    CHECK(contents_of(place.file(output)) == "of the user");
    check_completes(place.run_with(arguments + Arguments{"--overwrite"}));
    CHECK(contents_of(place.file(output)) != "of the user");
    const std::string written = contents_of(place.file(output));
    check_fails(place.run_with(arguments), 2, "--overwrite");
    CHECK(contents_of(place.file(output)) == written);
  }
  // Of Megatron's pair either may be there; the .bin is named with its ending or without.
  place.write("pair.idx", "of the user");
  for (const char* name : {"pair", "pair.bin"}) {
    const Arguments pair = {"tokenize", "--tokenizer", "bytes",    "--input", "words.txt",
                            "--output", name,          "--format", "megatron"};
    check_fails(place.run_with(pair), 2, "pair.idx is there already");
    CHECK(contents_of(place.file("pair.idx")) == "of the user");
    CHECK_FALSE(fs::exists(place.file("pair.bin")));
  }
  REQUIRE(mkfifo(place.file("pipe").c_str(), 0600) == 0);
  check_fails(
      place.run_with({"tokenize", "--tokenizer", "bytes", "--input", "words.txt", "--overwrite", "--output", "pipe"}),
      2, "pipe is no file that can be replaced");
  CHECK(fs::is_fifo(place.file("pipe")));
}
