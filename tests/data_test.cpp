#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "core/errors.h"
#include "data/loader.h"
#include "data/permutation.h"
#include "data/source.h"
#include "data/tokenizer.h"

namespace {

// A folder that lives as long as the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "zt-data-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  std::string path(const std::string& name = {}) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

template <typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const zt::UserError& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::vector<std::string>& words) {
  UNSCOPED_INFO(text);
  return std::ranges::all_of(words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

zt::Settings text_settings(const std::string& path, std::int64_t positions, std::int64_t batch = 1) {
  zt::Settings settings;
  settings.model.type = "gpt";
  settings.model.gpt.n_positions = positions;
  settings.data.type = "text";
  settings.data.path = path;
  settings.batch = {.train = batch, .micro = batch, .accumulation = 1};
  return settings;
}

zt::Settings mlp_settings(const std::string& loss, std::vector<std::int64_t> layers, std::int64_t samples = 100) {
  zt::Settings settings;
  settings.model.type = "mlp";
  settings.model.mlp.layers = std::move(layers);
  settings.model.mlp.loss = loss;
  settings.data.type = "synthetic";
  settings.data.samples = samples;
  settings.batch = {.train = 10, .micro = 10, .accumulation = 1};
  return settings;
}

zt::Settings token_settings(std::int64_t vocabulary, std::int64_t positions, std::int64_t samples) {
  zt::Settings settings = mlp_settings("mse", {}, samples);
  settings.model.type = "gpt";
  settings.model.gpt.vocab_size = vocabulary;
  settings.model.gpt.n_positions = positions;
  settings.data.task = "tokens";
  return settings;
}

struct Sample {
  std::vector<std::int32_t> tokens, token_targets;
  std::vector<float> features, value_targets;
};

Sample sample_of(const zt::Source& source, std::int64_t index) {
  const zt::SampleShape shape = source.shape();
  Sample sample;
  sample.tokens.resize(static_cast<std::size_t>(shape.tokens));
  sample.token_targets.resize(static_cast<std::size_t>(shape.token_targets));
  sample.features.resize(static_cast<std::size_t>(shape.features));
  sample.value_targets.resize(static_cast<std::size_t>(shape.value_targets));
  source.sample(index, {sample.tokens, sample.token_targets, sample.features, sample.value_targets});
  return sample;
}

// Tokens 0, 1, 2 ... of which window k of length 1 holds the single token k.
std::unique_ptr<zt::Source> counting_source(std::int64_t samples) {
  auto tokens = std::make_shared<zt::TokenArray>(samples + 1, samples + 1);
  tokens->visit([](auto& ids) {
    using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Id>(i);
  });
  return zt::make_window_source(tokens, 0, samples + 1, 1);
}

}  // namespace

// --- permutation -----------------------------------------------------------------------------------------------

TEST_CASE("a permutation is a bijection for every size up to 300 and some large ones") {
  std::vector<std::int64_t> sizes;
  for (std::int64_t n = 1; n <= 300; ++n) sizes.push_back(n);
  sizes.insert(sizes.end(), {1023, 1024, 1025, 65537, 100003, 1 << 20});
  for (const std::int64_t n : sizes) {
    const zt::Permutation permutation(n, 42);
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    bool once = true;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t image = permutation(i);
      once = once && image >= 0 && image < n && !seen[static_cast<std::size_t>(image)];
      if (once) seen[static_cast<std::size_t>(image)] = true;
    }
    INFO(n);
    REQUIRE(once);
  }
}

TEST_CASE("a permutation of a huge range stays inside and does not repeat itself soon") {
  const std::int64_t n = (std::int64_t{1} << 40) + 12345;
  const zt::Permutation permutation(n, 7);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const std::int64_t image = permutation(i);
    REQUIRE((image >= 0 && image < n));
    seen.insert(image);
  }
  CHECK(seen.size() == 10000);
}

TEST_CASE("over many keys every index goes everywhere about equally often") {
  for (const std::int64_t n : {2, 3, 5, 8, 13}) {
    const int keys = 20000;
    std::vector<int> counts(static_cast<std::size_t>(n * n), 0);
    for (int key = 0; key < keys; ++key) {
      const zt::Permutation permutation = zt::epoch_order(n, 1, key);
      for (std::int64_t i = 0; i < n; ++i) ++counts[static_cast<std::size_t>(i * n + permutation(i))];
    }
    const double expected = static_cast<double>(keys) / static_cast<double>(n);
    for (const int count : counts) CHECK(std::abs(count - expected) < 6.0 * std::sqrt(expected));
  }
}

TEST_CASE("neighbours are torn apart, and epochs and seeds differ") {
  const std::int64_t n = 10007;
  const auto first = zt::epoch_order(n, 1234, 0);
  const auto second = zt::epoch_order(n, 1234, 1);
  const auto other_seed = zt::epoch_order(n, 1235, 0);
  double distance = 0.0;
  int fixed = 0;
  int same_epoch = 0;
  int same_seed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) distance += static_cast<double>(std::abs(first(i) - first(i - 1)));
    fixed += first(i) == i ? 1 : 0;
    same_epoch += first(i) == second(i) ? 1 : 0;
    same_seed += first(i) == other_seed(i) ? 1 : 0;
  }
  // Two independent uniform numbers are n / 3 apart on average; a random permutation has one fixed point.
  CHECK(distance / static_cast<double>(n - 1) == Approx(static_cast<double>(n) / 3.0).epsilon(0.03));
  CHECK(fixed < 10);
  CHECK(same_epoch < 10);
  CHECK(same_seed < 10);
}

TEST_CASE("the order of samples is what it was in earlier builds") {
  const auto order = zt::epoch_order(10, 1234, 0);
  std::vector<std::int64_t> images;
  for (std::int64_t i = 0; i < 10; ++i) images.push_back(order(i));
  CHECK(images == std::vector<std::int64_t>{0, 3, 1, 6, 8, 4, 7, 2, 5, 9});
}

// --- tokenizers ------------------------------------------------------------------------------------------------

TEST_CASE("bytes: every byte is its own id and comes back") {
  const auto tokenizer = zt::make_byte_tokenizer();
  CHECK(tokenizer->vocabulary_size() == 256);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const auto ids = tokenizer->encode(all);
  for (std::size_t i = 0; i < 256; ++i) CHECK(ids[i] == static_cast<std::int32_t>(i));
  CHECK(tokenizer->decode(ids) == all);
  CHECK(tokenizer->decode(std::vector<std::int32_t>{65, 256, -1, 66}) ==
        "A\xef\xbf\xbd\xef\xbf\xbd"
        "B");
  CHECK(tokenizer->encode_corpus(all, "x").bytes() == 256);
}

TEST_CASE("characters: distinct code points of the whole text in their order") {
  // d, U+00E9, U+4E2D, U+1F600, a, newline
  const std::string text =
      "d\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"
      "ad\n";
  const auto tokenizer = zt::make_character_tokenizer(text, "text");
  CHECK(tokenizer->vocabulary_size() == 6);
  CHECK(tokenizer->encode(text) == std::vector<std::int32_t>{2, 3, 4, 5, 1, 2, 0});
  CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  CHECK(tokenizer->definition() == "\nad\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80");
  CHECK(tokenizer->decode(std::vector<std::int32_t>{6}) == "\xef\xbf\xbd");

  const auto again = zt::make_tokenizer(tokenizer->name(), tokenizer->definition());
  CHECK(again->encode(text) == tokenizer->encode(text));
}

TEST_CASE("characters: a character that the text does not have is named with its byte") {
  const auto tokenizer = zt::make_character_tokenizer("abc", "text");
  CHECK(
      contains(message_of([&] { tokenizer->encode("ab\xc3\xa9"); }), {"U+00E9", "\xc3\xa9", "byte 2", "3 characters"}));
  CHECK(contains(message_of([&] { tokenizer->encode("\n"); }), {"U+000A", "byte 0"}));
}

TEST_CASE("characters: what is not UTF-8 is an error with the offset") {
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"ab\xff"
       "c",
       "byte 2 (0xff)"},
      {"a\x80", "byte 1 (0x80)"},  // lone continuation
      {"a\xc3", "byte 1 (0xc3)"},
      {"a\xe4\xb8", "byte 1 (0xe4)"},  // cut short
      {"\xc0\xaf", "byte 0 (0xc0)"},
      {"\xe0\x80\xaf", "byte 0 (0xe0)"},  // overlong
      {"\xf0\x80\x80\xaf", "byte 0 (0xf0)"},
      {"ok\xed\xa0\x80", "byte 2 (0xed)"},  // overlong; surrogate
      {"\xf4\x90\x80\x80", "byte 0 (0xf4)"},
      {"\xc3"
       "a",
       "byte 0 (0xc3)"},  // above U+10FFFF
  };
  for (const auto& [text, words] : broken) {
    CHECK(contains(message_of([&] { zt::make_character_tokenizer(text, "file.txt"); }),
                   {"file.txt", "not UTF-8", words, "bytes"}));
  }
  // The bounds themselves are fine.
  const std::string bounds =
      "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
  CHECK(zt::make_character_tokenizer(bounds, "x")->definition() == bounds);
}

TEST_CASE("token arrays are as narrow as the vocabulary allows") {
  CHECK(zt::TokenArray(10, 256).bytes() == 10);
  CHECK(zt::TokenArray(10, 257).bytes() == 20);
  CHECK(zt::TokenArray(10, 65536).bytes() == 20);
  CHECK(zt::TokenArray(10, 65537).bytes() == 40);
}

// --- text ------------------------------------------------------------------------------------------------------

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
  CHECK(contains(message(text_settings(folder.path(), 4)), {folder.path(), "is a directory", "name one"}));
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
    CHECK(contains(message, {"short.txt", "too short", "1 tokens", "n_positions 16", "longer text"}));
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

TEST_CASE("fewer samples than one global batch is an error that names both numbers") {
  const TemporaryFolder folder;
  zt::Settings settings = text_settings(folder.write("text.txt", std::string(1000, 'x')), 10, 90);
  settings.data.validation_fraction = 0.1;  // 900 tokens for training: 89 windows
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"train_batch_size: 90", "89 windows", "text.txt"}));
  settings.batch.train = 89;
  CHECK(zt::open_dataset(settings).training->samples() == 89);

  zt::Settings synthetic = mlp_settings("mse", {4, 1}, 100);
  synthetic.batch.train = 91;
  const std::string message = message_of([&] { zt::open_dataset(synthetic); });
  CHECK(contains(message, {"train_batch_size: 91", "data.samples 100", "only 90", "102 or more"}));
  synthetic.data.samples = 102;
  CHECK(zt::open_dataset(synthetic).training->samples() >= 91);
}

// --- synthetic -------------------------------------------------------------------------------------------------

TEST_CASE("synthetic regression: normal features, a linear map with little noise, a tenth for validation") {
  const zt::Dataset dataset = zt::open_dataset(mlp_settings("mse", {16, 8, 2}, 2000));
  CHECK(dataset.training->samples() == 1800);
  CHECK(dataset.validation->samples() == 200);
  CHECK(dataset.training->shape() == zt::SampleShape{.features = 16, .value_targets = 2});
  double sum = 0.0;
  double squares = 0.0;
  // Stochastic least squares: what is left of the error is the noise, in samples that were never fitted too.
  std::vector<double> map(16, 0.0);
  const auto error_of = [&](const Sample& sample) {
    double prediction = 0.0;
    for (std::size_t f = 0; f < 16; ++f) prediction += map[f] * static_cast<double>(sample.features[f]);
    return static_cast<double>(sample.value_targets[1]) - prediction;
  };
  for (std::int64_t index = 0; index < 1800; ++index) {
    const Sample sample = sample_of(*dataset.training, index);
    const double error = error_of(sample);
    for (std::size_t f = 0; f < 16; ++f) {
      const double feature = static_cast<double>(sample.features[f]);
      map[f] += 0.02 * error * feature;
      sum += feature;
      squares += feature * feature;
    }
  }
  const double count = 1800.0 * 16.0;
  CHECK(std::abs(sum / count) < 0.03);
  CHECK(squares / count == Approx(1.0).epsilon(0.03));
  double left = 0.0;
  for (std::int64_t index = 0; index < 200; ++index) {
    const double error = error_of(sample_of(*dataset.validation, index));
    left += error * error / 200.0;
  }
  CHECK(left < 0.02);
  CHECK(left > 0.005);
}

TEST_CASE("synthetic classification: classes about equally often, mostly told apart by their centres") {
  const zt::Dataset dataset = zt::open_dataset(mlp_settings("cross_entropy", {16, 32, 3}, 4000));
  CHECK(dataset.training->shape() == zt::SampleShape{.token_targets = 1, .features = 16});
  std::vector<std::vector<double>> centres(3, std::vector<double>(16, 0.0));
  std::vector<int> counts(3, 0);
  for (std::int64_t index = 0; index < dataset.training->samples(); ++index) {
    const Sample sample = sample_of(*dataset.training, index);
    const auto label = static_cast<std::size_t>(sample.token_targets[0]);
    REQUIRE(label < 3);
    ++counts[label];
    for (std::size_t f = 0; f < 16; ++f) centres[label][f] += static_cast<double>(sample.features[f]);
  }
  for (std::size_t label = 0; label < 3; ++label) {
    CHECK(counts[label] > 1000);
    for (double& value : centres[label]) value /= counts[label];
  }
  int right = 0;
  for (std::int64_t index = 0; index < dataset.validation->samples(); ++index) {
    const Sample sample = sample_of(*dataset.validation, index);
    std::vector<double> distances(3, 0.0);
    for (std::size_t label = 0; label < 3; ++label) {
      for (std::size_t f = 0; f < 16; ++f) {
        distances[label] += std::pow(centres[label][f] - static_cast<double>(sample.features[f]), 2.0);
      }
    }
    const auto nearest = std::ranges::min_element(distances) - distances.begin();
    right += nearest == sample.token_targets[0] ? 1 : 0;
  }
  CHECK(static_cast<double>(right) / static_cast<double>(dataset.validation->samples()) > 0.85);
}

TEST_CASE("synthetic tokens: targets are the next tokens, and most transitions repeat") {
  const zt::Dataset dataset = zt::open_dataset(token_settings(50, 64, 1000));
  CHECK(dataset.vocab_size == 50);
  CHECK(dataset.training->shape() == zt::SampleShape{.tokens = 64, .token_targets = 64});
  std::map<std::pair<int, int>, int> transitions;
  for (std::int64_t index = 0; index < dataset.training->samples(); ++index) {
    const Sample sample = sample_of(*dataset.training, index);
    for (std::size_t t = 0; t < 64; ++t) {
      REQUIRE((sample.tokens[t] >= 0 && sample.tokens[t] < 50));
      if (t > 0) REQUIRE(sample.tokens[t] == sample.token_targets[t - 1]);
      ++transitions[{sample.tokens[t], sample.token_targets[t]}];
    }
  }
  // The four most frequent followers of a token carry about nine tenths.
  std::map<int, std::vector<int>> followers;
  for (const auto& [pair, count] : transitions) followers[pair.first].push_back(count);
  double carried = 0.0;
  double all = 0.0;
  for (auto& [token, counts] : followers) {
    std::ranges::sort(counts, std::greater<>());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all += counts[i];
      if (i < 4) carried += counts[i];
    }
  }
  CHECK(carried / all > 0.85);
  CHECK(carried / all < 0.97);
}

TEST_CASE("synthetic data: the same seed gives the same, validation is other data, mistakes are named") {
  for (auto settings :
       {mlp_settings("mse", {5, 3}), mlp_settings("cross_entropy", {5, 3}), token_settings(30, 7, 100)}) {
    const auto equal = [](const Sample& a, const Sample& b) {
      return a.tokens == b.tokens && a.features == b.features && a.value_targets == b.value_targets;
    };
    const zt::Dataset one = zt::open_dataset(settings);
    const zt::Dataset two = zt::open_dataset(settings);
    settings.training.seed = 99;
    const zt::Dataset other = zt::open_dataset(settings);
    CHECK(equal(sample_of(*one.training, 5), sample_of(*two.training, 5)));
    CHECK_FALSE(equal(sample_of(*one.training, 5), sample_of(*one.training, 6)));
    CHECK_FALSE(equal(sample_of(*one.training, 5), sample_of(*one.validation, 5)));
    CHECK_FALSE(equal(sample_of(*one.training, 5), sample_of(*other.training, 5)));
  }
  zt::Settings settings = token_settings(0, 7, 100);
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"model.vocab_size", "auto"}));
  settings = token_settings(10, 7, 100);
  settings.data.task = "regression";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"data.type", "mlp", "gpt"}));
  settings.data.task = "juggling";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"data.task", "juggling", "tokens"}));
}

// --- loader ----------------------------------------------------------------------------------------------------

namespace {

// The samples of `steps` global batches in the order of the global batch, read by `ranks` ranks that take turns.
std::vector<std::int32_t> read_by_ranks(const zt::Loader& loader, std::int64_t batch, std::int64_t micro,
                                        std::int64_t ranks, std::int64_t steps) {
  std::vector<std::int32_t> read(static_cast<std::size_t>(steps * batch), -1);
  std::vector<zt::MicroBatch> batches(static_cast<std::size_t>(ranks));
  const std::int64_t accumulation = (loader.micro_batches() + ranks - 1) / ranks;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::int64_t valid = 0;
    for (std::int64_t k = 0; k < accumulation; ++k) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        zt::MicroBatch& micro_batch = batches[static_cast<std::size_t>(rank)];
        loader.fill(step * batch, k * ranks + rank, micro_batch);
        valid += micro_batch.valid;
        for (std::int64_t row = 0; row < micro; ++row) {
          const std::int64_t position = micro_batch.first_sample_in_global_batch + row;
          const auto at = static_cast<std::size_t>(row);
          if (micro_batch.valid_rows[at] == 0) {
            REQUIRE(micro_batch.tokens[at] == 0);
            REQUIRE(micro_batch.token_targets[at] == -1);
            continue;
          }
          REQUIRE(position < batch);
          read[static_cast<std::size_t>(step * batch + position)] = micro_batch.tokens[at];
        }
      }
    }
    REQUIRE(valid == loader.valid(step * batch));
  }
  return read;
}

}  // namespace

TEST_CASE("each sample comes exactly once an epoch, at any world size, with the same order") {
  const std::int64_t samples = 101;  // no batch size divides it: batches straddle epochs
  const auto source = counting_source(samples);
  for (const std::int64_t micro : {1, 2, 3, 4}) {
    const std::int64_t batch = 12;
    const std::int64_t steps = 3 * samples / batch + 1;
    const zt::Loader loader(*source, zt::Loader::Order::shuffled, 5, micro, batch);
    CHECK(loader.micro_batches() == batch / micro);
    const auto alone = read_by_ranks(loader, batch, micro, 1, steps);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::int32_t> part(alone.begin() + epoch * samples, alone.begin() + (epoch + 1) * samples);
      std::ranges::sort(part);
      for (std::int32_t i = 0; i < samples; ++i) REQUIRE(part[static_cast<std::size_t>(i)] == i);
    }
    for (const std::int64_t ranks : {2, 3, 4, 5, 7}) {
      REQUIRE(read_by_ranks(loader, batch, micro, ranks, steps) == alone);
    }
    // Nor does the order of samples depend on how the batch is cut.
    const zt::Loader single(*source, zt::Loader::Order::shuffled, 5, 1, batch);
    REQUIRE(read_by_ranks(single, batch, 1, 1, steps) == alone);
  }
}

TEST_CASE("an epoch shorter than the global batch's rest and a source of one sample work") {
  const auto one = counting_source(1);
  const zt::Loader loader(*one, zt::Loader::Order::shuffled, 5, 2, 4);
  zt::MicroBatch batch;
  loader.fill(8, 1, batch);
  CHECK(batch.tokens == std::vector<std::int32_t>{0, 0});
  CHECK(batch.valid == 2);
  CHECK(loader.epoch_of(8) == 8);
}

TEST_CASE("the batch at a position is the same however one got there") {
  const auto source = counting_source(50);
  const zt::Loader loader(*source, zt::Loader::Order::shuffled, 5, 4, 8);
  zt::MicroBatch walked;
  for (std::int64_t step = 0; step < 20; ++step) loader.fill(step * 8, 1, walked);
  const zt::Loader fresh(*source, zt::Loader::Order::shuffled, 5, 4, 8);
  zt::MicroBatch jumped;
  fresh.fill(19 * 8, 1, jumped);
  CHECK(jumped.tokens == walked.tokens);
  CHECK(jumped.token_targets == walked.token_targets);
}

TEST_CASE("evaluation reads in order and masks what is past the end") {
  auto tokens = std::make_shared<zt::TokenArray>(3 * 5 + 1, 100);
  tokens->visit([](auto& ids) {
    using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Id>(i + 1);
  });
  const auto source = zt::make_window_source(tokens, 0, tokens->size(), 3);  // five samples
  const zt::Loader loader(*source, zt::Loader::Order::sequential, 5, 2, 4);
  zt::MicroBatch batch;
  loader.fill(0, 1, batch);
  CHECK(batch.first_sample_in_global_batch == 2);
  CHECK(batch.tokens == std::vector<std::int32_t>{7, 8, 9, 10, 11, 12});
  CHECK(batch.valid == 6);
  CHECK(loader.valid(0) == 12);
  loader.fill(4, 0, batch);
  CHECK(batch.tokens == std::vector<std::int32_t>{13, 14, 15, 0, 0, 0});
  CHECK(batch.token_targets == std::vector<std::int32_t>{14, 15, 16, -1, -1, -1});
  CHECK(batch.valid_rows == std::vector<std::int32_t>{1, 0});
  CHECK(batch.valid == 3);
  CHECK(loader.valid(4) == 3);
  loader.fill(4, 1, batch);
  CHECK(batch.valid == 0);
  CHECK(loader.valid(8) == 0);
}

TEST_CASE("rows of features are masked, too") {
  const auto source = zt::make_synthetic_regression(3, 2, 1, 0, 3);
  const zt::Loader loader(*source, zt::Loader::Order::sequential, 5, 2, 4);
  zt::MicroBatch batch;
  loader.fill(0, 0, batch);
  CHECK(batch.features[5] != 0.0F);
  loader.fill(0, 1, batch);
  CHECK(batch.features.size() == 6);
  CHECK(batch.features[3] == 0.0F);
  CHECK(batch.value_targets[2] == 0.0F);
  CHECK(batch.valid_rows == std::vector<std::int32_t>{1, 0});
  CHECK(batch.valid == 1);
  CHECK(loader.valid(0) == 3);
  CHECK(loader.micro_batch_bytes() == 2 * 4 * (3 + 2 + 1));
}

TEST_CASE("a filled batch keeps its memory when it is filled again") {
  const auto text = counting_source(50);
  const auto rows = zt::make_synthetic_regression(7, 2, 1, 0, 50);
  const auto walks = zt::make_synthetic_tokens(20, 9, 1, 0, 50);
  for (const zt::Source* source : {text.get(), rows.get(), walks.get()}) {
    const zt::Loader loader(*source, zt::Loader::Order::shuffled, 5, 4, 8);
    zt::MicroBatch batch;
    loader.fill(0, 0, batch);
    const auto places = [&] {
      return std::vector<const void*>{batch.tokens.data(), batch.token_targets.data(), batch.features.data(),
                                      batch.value_targets.data(), batch.valid_rows.data()};
    };
    const auto before = places();
    for (std::int64_t step = 1; step < 30; ++step) loader.fill(step * 8, step % 2, batch);
    CHECK(places() == before);
  }
}
