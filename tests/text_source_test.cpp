// A running text, cut into windows.
#include <sys/stat.h>

#include <limits>

#include "data_support.h"

using namespace zt::testing;

namespace {

zt::Settings text_settings(const std::string& path, std::int64_t positions, std::int64_t batch = 1) {
  zt::Settings settings;
  settings.model.type = "gpt";
  settings.model.gpt.n_positions = positions;
  settings.data.type = "text";
  settings.data.path = path;
  settings.batch = {.train = batch, .micro = batch, .accumulation = 1};
  return settings;
}

}  // namespace

TEST_CASE("k * T + 1 tokens make k windows with targets shifted by one") {
  auto tokens = std::make_shared<zt::TokenArray>(30, 300);
  tokens->visit([](auto& ids) {
    using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Id>(i + 260);
  });
  CHECK(zt::make_window_source(tokens, 0, 0, 4)->samples() == 0);
  CHECK(zt::make_window_source(tokens, 0, 4, 4)->samples() == 0);
  CHECK(zt::make_window_source(tokens, 0, 5, 4)->samples() == 1);
  CHECK(zt::make_window_source(tokens, 0, 8, 4)->samples() == 1);
  CHECK(zt::make_window_source(tokens, 0, 9, 4)->samples() == 2);

  const auto source = zt::make_window_source(tokens, 10, 13, 4);
  CHECK(source->shape() == zt::SampleShape{.tokens = 4, .token_targets = 4});
  REQUIRE(source->samples() == 3);
  const Sample last = sample_of(*source, 2);
  CHECK(last.tokens == std::vector<std::int32_t>{278, 279, 280, 281});
  CHECK(last.token_targets == std::vector<std::int32_t>{279, 280, 281, 282});
}

TEST_CASE("the last validation_fraction of a text's tokens is for validation") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i));
  zt::Settings settings = text_settings(folder.write("text", text), 4);
  settings.data.validation_fraction = 0.25;
  const zt::Dataset dataset = zt::open_dataset(settings);
  CHECK(dataset.training->samples() == 18);   // 75 tokens
  CHECK(dataset.validation->samples() == 6);  // 25 tokens
  CHECK(sample_of(*dataset.training, 0).tokens == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(sample_of(*dataset.training, 17).token_targets == std::vector<std::int32_t>{69, 70, 71, 72});
  CHECK(sample_of(*dataset.validation, 0).tokens == std::vector<std::int32_t>{75, 76, 77, 78});
  CHECK(sample_of(*dataset.validation, 5).token_targets == std::vector<std::int32_t>{96, 97, 98, 99});
  CHECK(dataset.vocab_size == 256);
  CHECK(dataset.bytes == 100);
  CHECK(contains(dataset.description, {"text", "100 tokens", "18 training", "6 validation"}));

  settings.data.validation_fraction = 0.0;
  CHECK(zt::open_dataset(settings).validation == nullptr);
}

TEST_CASE("characters count over the whole text, validation part included") {
  const TemporaryFolder folder;
  zt::Settings settings = text_settings(folder.write("text", std::string(50, 'a') + std::string(50, 'z')), 4);
  settings.data.tokenizer = "characters";
  const zt::Dataset dataset = zt::open_dataset(settings);
  CHECK(dataset.vocab_size == 2);
  CHECK(sample_of(*dataset.validation, 0).tokens == std::vector<std::int32_t>{1, 1, 1, 1});
}

TEST_CASE("an explicit vocabulary may be larger than the tokenizer's, not smaller") {
  const TemporaryFolder folder;
  zt::Settings settings = text_settings(folder.write("text", std::string(100, 'a')), 4);
  settings.model.gpt.vocab_size = 300;
  CHECK(zt::open_dataset(settings).vocab_size == 300);
  settings.model.gpt.vocab_size = 200;
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"model.vocab_size", "200", "256"}));
}

TEST_CASE("errors of a text name the path, what is wrong and what to do") {
  const TemporaryFolder folder;
  const auto message = [&](const zt::Settings& settings) { return message_of([&] { zt::open_dataset(settings); }); };
  const std::string missing = folder.path("missing.txt");
  CHECK(contains(message(text_settings(missing, 4)), {"data.path", missing, "no such file", "check"}));
  const std::string below_file = folder.write("file", "x") + "/missing.txt";
  CHECK(contains(message(text_settings(below_file, 4)), {below_file, "no such file"}));
  CHECK(
      contains(message(text_settings(folder.path(), 4)), {folder.path(), "is a directory", "name a text file in it"}));
  const std::string empty = folder.write("empty.txt", "");
  CHECK(contains(message(text_settings(empty, 4)), {empty, "is empty"}));
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(contains(message(text_settings(pipe, 4)), {pipe, "not a regular file"}));
  if (::geteuid() != 0) {  // root reads everything
    const std::string secret = folder.write("secret.txt", std::string(1000, 'x'));
    REQUIRE(::chmod(secret.c_str(), 0) == 0);
    CHECK(contains(message(text_settings(secret, 4)), {secret, "permission denied", "chmod"}));
  }
  const std::string good = folder.write("good.txt", std::string(1000, 'x'));
  zt::Settings settings = text_settings(good, 4);
  settings.data.tokenizer = "bpe";
  CHECK(contains(message(settings), {"data.tokenizer", "bpe", "characters"}));
  settings = text_settings(good, 4);
  settings.model.type = "mlp";
  CHECK(contains(message(settings), {"data.type", "gpt", "mlp"}));
  settings = text_settings(good, 4);
  settings.data.type = "tape";
  CHECK(contains(message(settings), {"data.type", "tape", "synthetic"}));
}

TEST_CASE("a text that is too short says how many tokens are needed, and that many are enough") {
  const TemporaryFolder folder;
  for (const double fraction : {0.0, 0.1, 0.3, 0.5, 0.9}) {
    zt::Settings settings = text_settings(folder.write("short.txt", "x"), 16);
    settings.data.validation_fraction = fraction;
    const std::string message = message_of([&] { zt::open_dataset(settings); });
    CHECK(contains(message, {"short.txt", "too short", "1 token;", "n_positions 16", "longer text"}));
    const std::size_t at = message.find("at least ") + 9;
    const auto needed = static_cast<std::size_t>(std::stoll(message.substr(at)));
    folder.write("short.txt", std::string(needed - 1, 'x'));
    CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"too short"}));
    folder.write("short.txt", std::string(needed, 'x'));
    const zt::Dataset dataset = zt::open_dataset(settings);
    CHECK(dataset.training->samples() >= 1);
    if (fraction > 0.0) CHECK(dataset.validation->samples() >= 1);
  }
}

TEST_CASE("shares that no text could satisfy are told without a search for its length") {
  const TemporaryFolder folder;
  zt::Settings settings = text_settings(folder.write("text.txt", std::string(1000, 'x')), 16);
  for (const double fraction : {1e-300, 1e-19, 0.9999999999999}) {
    settings.data.validation_fraction = fraction;
    const std::string message = message_of([&] { zt::open_dataset(settings); });
    CHECK(message.find("a longer text") == std::string::npos);
    CHECK(contains(message, {"too short: 1000 tokens; no text is long enough", "or validation_fraction 0",
                             fraction < 0.5 ? "a larger validation_fraction" : "a smaller validation_fraction"}));
  }
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"data.validation_fraction 0.9999999999999;"}));
}

TEST_CASE("texts that seem to be packed or no text are told") {
  const TemporaryFolder folder;
  const std::string zstd = "\x28\xb5\x2f\xfd" + std::string(200, 'x');
  zt::Settings settings = text_settings(folder.write("text.txt", zstd), 4);
  const zt::Dataset dataset = zt::open_dataset(settings);
  REQUIRE(dataset.notices.size() == 1);
  CHECK(contains(dataset.notices[0], {"text.txt looks packed by zstd: only gzip is unpacked", "as they stand"}));
  settings.data.tokenizer = "characters";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"packed by zstd", "unpack it first"}));
  folder.write("text.txt", std::string(500, '\0'));
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"looks like a binary file", "\"bytes\""}));
  folder.write("text.txt", "plain text, longer than a window, and with nothing to say of it");
  CHECK(zt::open_dataset(settings).notices.empty());
}

TEST_CASE("a batch beyond all bounds is told, and no sum overflows") {
  const TemporaryFolder folder;
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  zt::Settings settings = text_settings(folder.write("text.txt", std::string(16, 'x')), 10, huge);
  settings.data.validation_fraction = 0.0;
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }),
                 {"train_batch_size: 9223372036854775807", "only 1 window of", "set train_batch_size to 1,"}));
  settings.model.type = "mlp";
  settings.model.mlp.layers = {2, 1};
  settings.data.type = "synthetic";
  const std::string made = message_of([&] { zt::open_dataset(settings); });
  CHECK(contains(made, {"train_batch_size: 9223372036854775807", "set train_batch_size to 3687 or less"}));
  CHECK(made.find("or data.samples to") == std::string::npos);
}

TEST_CASE("fewer samples than one global batch is an error that names both numbers") {
  const TemporaryFolder folder;
  zt::Settings settings = text_settings(folder.write("text.txt", std::string(1000, 'x')), 10, 90);
  settings.data.validation_fraction = 0.1;  // 900 tokens for training: 89 windows
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"train_batch_size: 90", "89 windows", "text.txt"}));
  settings.batch.train = 89;
  CHECK(zt::open_dataset(settings).training->samples() == 89);
}
