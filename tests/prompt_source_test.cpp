// JSON lines of prompt and completion: what counts, and that uneven counts change neither loss nor gradient.
#include <cmath>
#include <cstdint>

#include "data/json_lines.h"
#include "data/loader.h"
#include "data_support.h"
#include "tiny_models.h"
#include "train/curve.h"

using namespace zt::testing;

namespace {

zt::Settings prompt_settings(const std::string& path, std::int64_t positions = 8, std::int64_t batch = 1) {
  zt::Settings settings;
  settings.model.type = "gpt";
  settings.model.gpt.n_positions = positions;
  settings.data.type = "text";
  settings.data.format = "prompt_completion";
  settings.data.path = path;
  settings.data.validation_fraction = 0.0;
  settings.batch = {.train = batch, .micro = batch, .accumulation = 1};
  return settings;
}

std::string line_of(const std::string& prompt, const std::string& completion) {
  return R"({"prompt": ")" + prompt + R"(", "completion": ")" + completion + "\"}\n";
}

std::string message_for(const std::string& text, std::int64_t positions = 8) {
  const TemporaryFolder folder;
  const zt::Settings settings = prompt_settings(folder.write("x.jsonl", text), positions);
  return message_of([&] { zt::open_dataset(settings); });
}

// Lines whose completions are of very different lengths, prompts too.
std::string uneven_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string prompt(static_cast<std::size_t>(i * 5 % 7), static_cast<char>('a' + i % 5));
    const std::string completion(static_cast<std::size_t>(2 + i * i % 11), static_cast<char>('f' + i % 7));
    text += line_of(prompt, completion);
  }
  return text;
}

}  // namespace

TEST_CASE("a line is a sample: only the completion's tokens are targets, the rest of it is padding") {
  const TemporaryFolder folder;
  const std::string text = line_of("ab", "cd") + "\n" + line_of("", "xyz") + line_of("p", "q");
  for (const std::string& content : {text, packed(text)}) {
    const zt::Dataset dataset = zt::open_dataset(prompt_settings(folder.write("x.jsonl", content), 5));
    const zt::Source& source = *dataset.training;
    REQUIRE(source.samples() == 3);
    CHECK(source.shape() == zt::SampleShape{.tokens = 5, .token_targets = 5});
    CHECK(source.masks_losses());
    const Sample first = sample_of(source, 0);
    CHECK(first.tokens == std::vector<std::int32_t>{'a', 'b', 'c', 0, 0});
    CHECK(first.token_targets == std::vector<std::int32_t>{-1, 'c', 'd', -1, -1});
    CHECK(source.losses(0) == 2);
    // Nothing predicts the first token of all.
    const Sample second = sample_of(source, 1);
    CHECK(second.tokens == std::vector<std::int32_t>{'x', 'y', 0, 0, 0});
    CHECK(second.token_targets == std::vector<std::int32_t>{'y', 'z', -1, -1, -1});
    CHECK(source.losses(1) == 2);
    CHECK(sample_of(source, 2).token_targets == std::vector<std::int32_t>{'q', -1, -1, -1, -1});
    CHECK(source.losses(2) == 1);
    CHECK(dataset.vocab_size == 256);
    CHECK(contains(dataset.description, {"3 training and 0 validation lines", "9 tokens, 5 of them learned"}));
  }
}

TEST_CASE("lines longer than n_positions + 1 tokens are cut, and their number is told") {
  const TemporaryFolder folder;
  const std::string text = line_of("abc", "defgh") + line_of("abc", "de") + line_of("abcd", "efg");
  const zt::Dataset dataset = zt::open_dataset(prompt_settings(folder.write("x.jsonl", text), 4));
  CHECK(sample_of(*dataset.training, 0).tokens == std::vector<std::int32_t>{'a', 'b', 'c', 'd'});
  CHECK(sample_of(*dataset.training, 0).token_targets == std::vector<std::int32_t>{-1, -1, 'd', 'e'});
  CHECK(dataset.training->losses(0) == 2);
  CHECK(sample_of(*dataset.training, 2).token_targets == std::vector<std::int32_t>{-1, -1, -1, 'e'});
  CHECK(contains(dataset.description, {"2 lines cut at 5 tokens"}));

  CHECK(
      contains(message_for(line_of("a", "b") + line_of("abcdef", "g") + line_of("abcdefg", "g") + line_of("", "a"), 4),
               {"3 lines of which nothing would be learned", "line 2: the prompt of 6 tokens leaves no room",
                "n_positions 4", "line 3: the prompt of 7 tokens", "line 4: with an empty prompt", "two tokens"}));
}

TEST_CASE("characters are those of prompts and completions, escapes read as JSON has them") {
  const TemporaryFolder folder;
  zt::Settings settings =
      prompt_settings(folder.write("x.jsonl", line_of("\\u00e9\\n", "b\xc3\xa9") + line_of("a", "b")));
  settings.data.tokenizer = "characters";
  const zt::Dataset dataset = zt::open_dataset(settings);
  CHECK(dataset.vocab_size == 4);  // newline, a, b, U+00E9
  CHECK(sample_of(*dataset.training, 0).tokens == std::vector<std::int32_t>{3, 0, 2, 0, 0, 0, 0, 0});
  CHECK(sample_of(*dataset.training, 0).token_targets == std::vector<std::int32_t>{-1, 2, 3, -1, -1, -1, -1, -1});
  settings.model.gpt.vocab_size = 3;
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"model.vocab_size: 3", "the 4 tokens"}));
}

TEST_CASE("validation lines are chosen by split_seed") {
  const TemporaryFolder folder;
  zt::Settings settings = prompt_settings(folder.write("x.jsonl", uneven_lines(50)));
  settings.data.validation_fraction = 0.2;
  const zt::Dataset dataset = zt::open_dataset(settings);
  CHECK(dataset.training->samples() == 40);
  CHECK(dataset.validation->samples() == 10);
  settings.batch.train = 41;
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }),
                 {"train_batch_size: 41", "only 40 lines for training"}));
}

TEST_CASE("mistakes of JSON lines are told with line, column and the place") {
  const std::string good = line_of("a", "b");
  const auto message_of_line = [&](const std::string& line) { return message_for(good + line + "\n"); };
  CHECK(contains(message_of_line("{\"prompt\": \"a\" \"completion\": \"b\"}"),
                 {"x.jsonl has 1 fault", "line 2, column 16: a comma is missing before this",
                  "\n      {\"prompt\": \"a\" \"completion\": \"b\"}\n                     ^"}));
  CHECK(contains(message_for("[1]\n"), {"line 1, column 1", "one object", "this one is an array"}));
  CHECK(contains(message_of_line("7"), {"this one is a number"}));
  CHECK(contains(message_of_line("{\"prompt\": \"a\", \"completions\": \"b\"}"),
                 {"line 2: the key \"completion\" is missing", "is \"completions\" meant"}));
  CHECK(contains(message_of_line("{\"text\": \"a\"}"), {"\"prompt\" is missing"}));
  CHECK(contains(message_of_line("{\"prompt\": [\"a\"], \"completion\": \"b\"}"),
                 {"\"prompt\" is an array", "text in quotes"}));
  CHECK(contains(message_of_line("{\"prompt\": 3, \"completion\": null}"),
                 {"\"prompt\" is a number", "\"completion\" is null"}));
  CHECK(contains(message_for(good + "\n" + line_of("a", "")), {"line 3: \"completion\" is empty"}));
  CHECK(contains(message_of_line("{\"prompt\": \"a\", \"prompt\": \"b\", \"completion\": \"c\"}"),
                 {"\"prompt\"", "twice"}));
  CHECK(contains(message_for("\n \n"), {"nothing but empty lines", "write objects"}));
  CHECK(message_for("{\"id\": {\"prompt\": 1}, \"prompt\": \"a\", \"completion\": \"b\"}\r\n").empty());  // other keys
  CHECK(message_for("\xef\xbb\xbf" + good).empty());
}

TEST_CASE("of many wrong lines the first five are told, the rest counted") {
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += line_of("a", "b") + "{\"prompt\": \"a\"}\n";
  const std::string message = message_for(lines);
  CHECK(contains(message, {"9 faults", "line 2:", "line 10:", "and 4 more"}));
  CHECK(message.find("line 12") == std::string::npos);
}

TEST_CASE("files of JSON that are no lines of it are told as such") {
  const std::string one = R"({"prompt": "a", "completion": "b"})";
  CHECK(contains(message_for("[\n  " + one + ",\n  " + one + "\n]\n"),
                 {"this file is one JSON array", "each object on its own line", "without the [ and ]"}));
  const std::string commas = message_for(one + ",\n" + one + ",\n");
  CHECK(contains(commas, {"2 faults", "line 1, column 35: remove the comma behind }", "line 2, column 35"}));
  const std::string pretty = message_for("{\n  \"prompt\": \"a\",\n  \"completion\": \"b\"\n}\n");
  CHECK(contains(pretty, {"1 fault so far", "line 1, column 2: the line ends within an object", "one line"}));
  CHECK(contains(message_for(std::string(3000, '\0')), {"looks like a binary file", "JSON lines"}));
  CHECK(contains(message_for(std::string("\xfd"
                                         "7zXZ\0\0",
                                         7)),
                 {"packed by xz", "only gzip"}));
}

TEST_CASE("no byte of a line reaches a message raw") {
  const std::string line = "{\"prompt\": \"a\x1b[2J\x07\", \"comp\xff";
  const std::string message = message_for(line);
  CHECK(contains(message, {"line 1, column 14", R"(the character \x1b within a text)", R"(a\x1b[2J\x07", "comp\xff)",
                           "\n                   ^"}));
  CHECK(std::ranges::none_of(message, [](char c) { return (c < 0x20 && c != '\n') || c == 0x7f; }));
  const std::string key = message_for("{\"\\u001b[2J\": 1, \"\\u001b[2J\": 2}\n");
  CHECK(contains(key, {R"(the key "\x1b[2J" stands there twice)"}));
}

TEST_CASE("prompts and completions in a file of another name are noticed") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += line_of("ab", "cd");
  zt::Settings settings = prompt_settings(folder.write("x.json", "\n" + lines));
  CHECK(zt::open_dataset(settings).notices.empty());
  settings.data.format = "plain";
  const zt::Dataset dataset = zt::open_dataset(settings);
  REQUIRE(dataset.notices.size() == 1);
  CHECK(contains(dataset.notices[0], {"x.json", "one running text", "data.format to \"prompt_completion\""}));
  for (const std::string before : {"[", "[\n  "}) {
    folder.write("x.json",
                 before + R"({"prompt": "abcdef", "completion": "b"})" + ",\n" + R"({"prompt": "c"}])" + "\n");
    CHECK(zt::open_dataset(settings).notices.size() == 1);
  }
  folder.write("x.json", R"([{"prompt": "abcdef", "completion": "b"}])");
  CHECK(zt::open_dataset(settings).notices.size() == 1);
  folder.write("x.json", R"({"prompt": 1, "completion": "b"} and text, as much as is needed for one window or more)");
  CHECK(zt::open_dataset(settings).notices.empty());
}

TEST_CASE("JSON lines cut at any byte are refused or read, and nothing else") {
  const TemporaryFolder folder;
  const std::string lines = line_of("a\\u00e9\xe4\xb8\xad", "bc") + line_of("d", "e\\n");
  int refused = 0, accepted = 0;
  const auto attempt = [&](const std::string& content) {
    const zt::Settings settings = prompt_settings(folder.write("x.jsonl", content));
    ++(message_of([&] { sample_of(*zt::open_dataset(settings).training, 0); }).empty() ? accepted : refused);
  };
  for (const std::string& whole : {lines, packed(lines)}) {
    for (std::size_t length = 0; length <= whole.size(); ++length) attempt(whole.substr(0, length));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char byte : {'\0', '"', '\\', '\n', '}', '\xff'}) {
        std::string changed = whole;
        changed[at] = byte;
        attempt(changed);
      }
    }
  }
  CHECK(refused > 100);
  CHECK(accepted > 10);
}

TEST_CASE("the loader counts the losses of the very samples of a global batch") {
  const TemporaryFolder folder;
  const zt::Dataset dataset = zt::open_dataset(prompt_settings(folder.write("x.jsonl", uneven_lines(23)), 12));
  for (const auto order : {zt::Loader::Order::shuffled, zt::Loader::Order::sequential}) {
    const zt::Loader loader(*dataset.training, order, 7, 2, 6);
    std::vector<std::int64_t> sums;
    for (std::int64_t step = 0; step < 6; ++step) {
      zt::MicroBatch batch;
      std::int64_t sum = 0;
      for (std::int64_t j = 0; j < 3; ++j) {
        loader.fill(step * 6, j, batch);
        const auto counted =
            std::ranges::count_if(batch.token_targets, [](std::int32_t target) { return target >= 0; });
        CHECK(batch.valid == counted);
        sum += counted;
      }
      CHECK(loader.valid(step * 6) == sum);
      sums.push_back(sum);
    }
    CHECK(sums[0] != sums[1]);
  }
}

namespace {

// A tiny GPT on uneven lines, with J micro-batches of `micro` lines on one rank.
zt::Settings uneven_settings(const std::string& path, std::int64_t micro, std::int64_t micro_batches) {
  zt::Settings settings = zt::test::with_batch(zt::test::tiny_gpt(), micro, micro_batches, 1);
  settings.model.gpt.vocab_size = 256;
  settings.data = prompt_settings(path).data;
  settings.data.validation_fraction = 0.2;
  settings.precision.grad_accum_dtype = "fp32";
  return settings;
}

}  // namespace

TEST_CASE("uneven counts over ranks and micro-steps change no bit of loss, norm and weights") {
  const TemporaryFolder folder;
  for (const zt::DType dtype : {zt::DType::f32, zt::DType::f16}) {
    zt::Settings settings = uneven_settings(folder.write("x.jsonl", uneven_lines(40)), 1, 12);
    settings.precision.preset = zt::name_of(dtype);
    settings.loss_scale.initial_scale_power = 6;
    const zt::Dataset dataset = zt::open_dataset(settings);
    const zt::Curve reference = zt::trace_curve(zt::at(settings, 1, 0), dataset, 1);
    CHECK(std::isfinite(reference.validation_loss));
    for (const int ranks : {1, 2, 3, 4}) {
      for (const int stage : {0, 1, 2, 3}) {
        INFO(ranks << " ranks, stage " << stage);
        CHECK(zt::trace_curve(zt::at(settings, ranks, stage), dataset, ranks).same_bits(reference));
      }
    }
  }
}

TEST_CASE("lines one by one give the loss and gradient of one big batch") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.jsonl", uneven_lines(40));
  const zt::Settings big = uneven_settings(path, 12, 1);
  const zt::Dataset dataset = zt::open_dataset(big);
  const zt::Curve whole = zt::trace_curve(big, dataset, 1);
  const zt::Curve single = zt::trace_curve(uneven_settings(path, 1, 12), dataset, 1);
  const zt::Curve ranks = zt::trace_curve(zt::at(uneven_settings(path, 3, 4), 4, 2), dataset, 4);
  REQUIRE(whole.steps.size() == 3);
  for (std::size_t step = 0; step < whole.steps.size(); ++step) {
    INFO("step " << step + 1);
    for (const zt::Curve* other : {&single, &ranks}) {
      CHECK(other->steps[step].loss == Approx(whole.steps[step].loss).epsilon(1e-6));
      CHECK(other->steps[step].grad_norm == Approx(whole.steps[step].grad_norm).epsilon(1e-5));
    }
  }
  CHECK(single.validation_loss == Approx(whole.validation_loss).epsilon(1e-5));
}
