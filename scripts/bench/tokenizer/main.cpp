// What a byte-pair tokenizer encodes per second of one core's time, on texts of several kinds, in turn:
//
//   tokenizer_bench TOKENIZER TEXT [--megabytes 4] [--rounds 7] [--json]
//
// TOKENIZER is a file or folder as --tokenizer takes it (GPT-2's, for figures that can be held against others'); TEXT
// is a file of plain prose. Per kind of text: the median over the rounds, its ratio to prose, and what cutting the text
// into pieces alone does per second.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/json.h"
#include "data/byte_pair_encoder.h"
#include "data/byte_pair_split.h"
#include "data/utf8.h"

namespace {

struct Options {
  std::string tokenizer, text;
  std::size_t bytes = 4'000'000;
  int rounds = 7;
  bool json = false;
};

struct Kind {
  const char* name;
  std::string text;
  std::vector<double> encoding{}, cutting{};  // megabytes per second, by round
};

std::string prose(const std::string& path, std::size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  const std::string once{std::istreambuf_iterator<char>(file), {}};
  if (once.empty()) throw std::runtime_error(path + " cannot be read, or is empty");
  std::string text;
  while (text.size() < bytes) text += once;
  text.resize(bytes);
  return text;
}

// Words of up to 12 random characters, each of one script: hardly one comes twice, hardly two bytes merge.
std::string mixed_scripts(std::size_t bytes) {
  constexpr struct {
    char32_t first, last;
  } scripts[] = {{0x21, 0x7e},       {0xa1, 0x24f},      {0x370, 0x3ff},    {0x400, 0x4ff},   {0x531, 0x58a},
                 {0x591, 0x5f4},     {0x600, 0x6ff},     {0x900, 0x97f},    {0xb80, 0xbff},   {0xe01, 0xe5b},
                 {0x10a0, 0x10ff},   {0x1200, 0x137c},   {0x3041, 0x30ff},  {0x4e00, 0x9fff}, {0xac00, 0xd7a3},
                 {0x12000, 0x123ff}, {0x1d400, 0x1d7ff}, {0x1f300, 0x1faff}};
  std::mt19937 random(1);
  std::string text;
  while (text.size() < bytes) {
    const auto& script = scripts[random() % std::size(scripts)];
    for (auto left = random() % 12 + 1; left > 0; --left) {
      zt::append_utf8(text, script.first + static_cast<char32_t>(random()) % (script.last - script.first + 1));
    }
    text += ' ';
  }
  return text;
}

std::string random_letters(std::size_t bytes) {
  std::mt19937 random(2);
  std::string text(bytes, ' ');
  for (char& sign : text) sign = "etaoinshrdlu"[random() % 12];
  return text;
}

// Seconds of this process: other work on the machine takes turns with it.
template <typename Work>
double megabytes_per_second(const std::string& text, const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return 1e-6 * static_cast<double>(text.size()) / (now() - start);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Options read_options(int count, char** words) {
  Options options;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--json") {
      options.json = true;
    } else if (word == "--megabytes" && i + 1 < count) {
      options.bytes = 1'000'000 * static_cast<std::size_t>(std::max(1, std::atoi(words[++i])));
    } else if (word == "--rounds" && i + 1 < count) {
      options.rounds = std::max(1, std::atoi(words[++i]));
    } else {
      files.push_back(word);
    }
  }
  if (files.size() != 2)
    throw std::runtime_error("usage: tokenizer_bench TOKENIZER TEXT [--megabytes N] [--rounds N] [--json]");
  options.tokenizer = files[0];
  options.text = files[1];
  return options;
}

void bench(const Options& options) {
  const zt::BytePairEncoder encoder(zt::read_byte_pair_vocabulary(options.tokenizer, "TOKENIZER"));
  std::vector<Kind> kinds = {{"prose", prose(options.text, options.bytes)},
                             {"mixed scripts", mixed_scripts(options.bytes)},
                             {"one letter", std::string(options.bytes, 'a')},
                             {"random letters", random_letters(options.bytes)}};
  for (int round = 0; round < options.rounds; ++round) {
    for (Kind& kind : kinds) {
      std::vector<std::uint32_t> ids;
      ids.reserve(kind.text.size() / 3);
      kind.encoding.push_back(megabytes_per_second(kind.text, [&] { encoder.encode(kind.text, kind.name, ids); }));
      const zt::PieceSplitter splitter(kind.text);
      kind.cutting.push_back(megabytes_per_second(kind.text, [&] {
        for (std::size_t at = 0; at < kind.text.size();) at = splitter.end_of_piece(at);
      }));
    }
  }
  nlohmann::json all = nlohmann::json::array();
  if (!options.json) std::printf("%-16s %8s %9s %13s\n", "text", "MB/s", "of prose", "cutting MB/s");
  for (const Kind& kind : kinds) {
    const double rate = median(kind.encoding), of_prose = rate / median(kinds[0].encoding);
    if (options.json) {
      all.push_back({{"text", kind.name},
                     {"megabytes_per_second", rate},
                     {"of_prose", of_prose},
                     {"cutting_megabytes_per_second", median(kind.cutting)}});
    } else {
      std::printf("%-16s %8.1f %9.2f %13.0f\n", kind.name, rate, of_prose, median(kind.cutting));
    }
  }
  if (options.json) std::cout << all.dump(2) << '\n';
}

}  // namespace

int main(int count, char** words) {
  try {
    bench(read_options(count, words));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "tokenizer_bench: " << error.what() << '\n';
    return 1;
  }
}
