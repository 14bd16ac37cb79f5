// Byte-pair vocabularies against what tiktoken and tokenizers made of the same texts (scripts/golden/byte_pairs.py).
#include "core/json.h"
#include "data/byte_pair_encoder.h"
#include "data/byte_pair_split.h"
#include "data/byte_pair_training.h"
#include "data/tokenizer.h"
#include "data/unicode_classes.h"
#include "data_support.h"

using namespace zt::testing;
using nlohmann::json;

namespace {

std::string golden_path(const std::string& name) {
  return std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/byte_pairs/" + name;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

const json& cases() {
  static const json all = json::parse(contents(golden_path("cases.json")));
  return all;
}

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string text_of(const char* name) { return unhex(cases()[name]["hex"].get<std::string>()); }
std::vector<std::int32_t> ids_of(const char* name, const char* by = "ids") {
  return cases()[name][by].get<std::vector<std::int32_t>>();
}

std::string base64(const std::string& bytes) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      text += j <= std::min<std::size_t>(3, bytes.size() - i) ? letters[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// The golden vocabulary in the two other forms.
std::string as_tiktoken() {
  const auto vocabulary = zt::read_byte_pair_vocabulary(golden_path("tokenizer.json"), "x");
  std::string text;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (static_cast<std::int32_t>(id) != vocabulary.end_of_text)
      text += base64(vocabulary.tokens[id]) + " " + std::to_string(id) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("letters, numbers and spaces are those of tiktoken and tokenizers, for every code point") {
  std::vector<zt::CharacterClass> expected(zt::code_point_count, zt::CharacterClass::other);
  for (const auto& [name, kind] :
       {std::pair{"letter", zt::CharacterClass::letter}, std::pair{"number", zt::CharacterClass::number},
        std::pair{"space", zt::CharacterClass::space}}) {
    const auto ranges = cases()["classes"][name].get<std::vector<std::size_t>>();
    for (std::size_t i = 0; i < ranges.size(); i += 2)
      std::fill(&expected[ranges[i]], &expected[ranges[i + 1]] + 1, kind);
  }
  std::int64_t wrong = 0;
  for (char32_t c = 0; c < zt::code_point_count; ++c) {
    if (zt::UnicodeClasses::table().of(c) != expected[c]) ++wrong;
    if (c < 128 && zt::UnicodeClasses::table().of_ascii(static_cast<unsigned char>(c)) != expected[c]) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a tokenizer.json gives the ids of tokenizers, and the text comes back") {
  const auto tokenizer = zt::open_tokenizer(golden_path("tokenizer.json"), "data.tokenizer");
  CHECK(tokenizer->name() == "byte_pair");
  CHECK(tokenizer->vocabulary_size() == 1000);
  CHECK(tokenizer->end_of_text() == 0);
  for (const char* name : {"mixed", "broken", "special"}) {
    INFO(name);
    CHECK(tokenizer->encode(text_of(name)) == ids_of(name));
    CHECK(tokenizer->decode(ids_of(name)) == text_of(name));
    const zt::TokenArray corpus = tokenizer->encode_corpus(text_of(name), "x");
    std::vector<std::int32_t> copied(static_cast<std::size_t>(corpus.size()));
    corpus.copy(0, copied);
    CHECK(copied == ids_of(name));
  }
  CHECK(tokenizer->encode("").empty());
  CHECK(tokenizer->decode(std::vector<std::int32_t>{-1, 1000}) == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("a tiktoken file gives the ids of tiktoken") {
  const TemporaryFolder folder;
  const auto tokenizer = zt::open_tokenizer(folder.write("ranks", as_tiktoken()), "data.tokenizer");
  CHECK(tokenizer->end_of_text() == 0);  // the id that no rank has
  for (const char* name : {"mixed", "special"}) CHECK(tokenizer->encode(text_of(name)) == ids_of(name, "tiktoken"));
  CHECK(tokenizer->encode(text_of("broken")) == ids_of("broken"));
}

TEST_CASE("vocab.json with merges.txt, a folder, and either of the files are the same tokenizer") {
  const TemporaryFolder folder;
  const json model = json::parse(contents(golden_path("tokenizer.json")))["model"];
  std::string merges = "#version: 0.2\n";
  for (const json& merge : model["merges"])
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  folder.write("merges.txt", merges);
  folder.write("vocab.json", model["vocab"].dump());
  folder.write("gpt2-merges.txt", merges);
  folder.write("gpt2-vocab.json", model["vocab"].dump());
  for (const char* name : {"", "merges.txt", "vocab.json", "gpt2-merges.txt"}) {
    const auto tokenizer = zt::open_tokenizer(folder.path(name), "data.tokenizer");
    CHECK(tokenizer->encode(text_of("mixed")) == ids_of("mixed"));
    CHECK(tokenizer->encode(text_of("special")) == ids_of("special"));
  }
}

TEST_CASE("a byte-pair tokenizer is built again from its definition") {
  const TemporaryFolder folder;
  for (const std::string& path : {golden_path("tokenizer.json"), folder.write("ranks", as_tiktoken())}) {
    const auto tokenizer = zt::open_tokenizer(path, "x");
    const auto again = zt::make_tokenizer(tokenizer->name(), tokenizer->definition());
    CHECK(again->encode(text_of("mixed")) == tokenizer->encode(text_of("mixed")));
    CHECK(again->definition() == tokenizer->definition());
    const std::string exported = zt::huggingface_tokenizer(tokenizer->name(), tokenizer->definition());
    CHECK(zt::make_tokenizer("byte_pair", exported)->encode(text_of("special")) == ids_of("special"));
  }
  CHECK(zt::huggingface_tokenizer("bytes", "").empty());
}

TEST_CASE("a text is cut into pieces as GPT-2's pattern cuts it") {
  const auto pieces = [](const std::string& text) {
    std::vector<std::string> found;
    const zt::PieceSplitter splitter(text);
    for (std::size_t at = 0; at < text.size(); at += found.back().size())
      found.push_back(text.substr(at, splitter.end_of_piece(at) - at));
    return found;
  };
  using List = std::vector<std::string>;
  CHECK(pieces("it's we'll 'S  x") == List{"it", "'s", " we", "'ll", " '", "S", " ", " x"});
  CHECK(pieces("a\n\n b \n") == List{"a", "\n\n", " b", " \n"});
  CHECK(pieces("a \n\tb") == List{"a", " \n", "\t", "b"});
  CHECK(pieces("x12 34!?'s") == List{"x", "12", " 34", "!?'", "s"});
  CHECK(pieces(" \xff\xff a\x80") == List{" \xff\xff", " a", "\x80"});
  CHECK(pieces("\xc2\xa0\xc2\xa0z") == List{"\xc2\xa0", "\xc2\xa0", "z"});
}

TEST_CASE("a text may be cut where cut_before says") {
  const auto tokenizer = zt::open_tokenizer(golden_path("tokenizer.json"), "x");
  const std::string text = contents(golden_path("corpus.txt"));
  const std::vector<std::int32_t> whole = tokenizer->encode(text);
  int cuts = 0;
  for (std::size_t at = text.size() - 1; (at = tokenizer->cut_before(text, at)) > 0; --at) {
    if (++cuts % 16 != 1) continue;
    std::vector<std::int32_t> parts = tokenizer->encode(std::string_view(text).substr(0, at));
    const std::vector<std::int32_t> rest = tokenizer->encode(std::string_view(text).substr(at));
    parts.insert(parts.end(), rest.begin(), rest.end());
    CHECK(parts == whole);
  }
  CHECK(cuts > 100);
}

TEST_CASE("a trained vocabulary is that of tokenizers, line by line and over whole texts") {
  const std::string corpus = contents(golden_path("corpus.txt"));
  zt::PieceCounts lines, whole;
  for (std::string_view rest = corpus; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    lines.add(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  whole.add(corpus);
  const auto check = [](const zt::PieceCounts& pieces, const zt::BytePairTraining& settings, const json& golden) {
    const auto trained = zt::train_byte_pairs(pieces, settings);
    const json model = json::parse(zt::tokenizer_json(trained))["model"];
    CHECK(model["vocab"] == golden["vocab"]);
    json merges = json::array();
    for (const json& merge : golden["merges"])
      merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    CHECK(model["merges"] == merges);
  };
  check(lines, {1000, 0, {"<|endoftext|>"}}, json::parse(contents(golden_path("tokenizer.json")))["model"]);
  check(whole, {600, 3, {"<|endoftext|>"}}, cases()["whole"]);

  zt::PieceCounts two;
  two.add("ab");
  const auto all = zt::train_byte_pairs(two, {1000, 0, {}});
  CHECK(all.tokens.size() == 257);  // nothing is left to merge
  CHECK(contains(message_of([&] {
                   zt::train_byte_pairs(two, {256, 0, {"<|endoftext|>"}});
                 }),
                 {"--vocab-size 256", "257"}));
}

TEST_CASE("more than 65536 tokens are held in 32 bits") {
  json file = json::parse(contents(golden_path("tokenizer.json")));
  for (int id = 1000; id < 70000; ++id) file["model"]["vocab"]["\xc4\xa0never" + std::to_string(id)] = id;
  file["added_tokens"].push_back({{"id", 70000}, {"content", "<|last|>"}, {"special", true}});
  const auto tokenizer = zt::make_tokenizer("byte_pair", file.dump());
  CHECK(tokenizer->vocabulary_size() == 70001);
  const zt::TokenArray corpus = tokenizer->encode_corpus("a<|last|>", "x");
  CHECK(corpus.bytes() == 8);
  std::vector<std::int32_t> ids(2);
  corpus.copy(0, ids);
  CHECK(ids[1] == 70000);
}

TEST_CASE("bad tokenizer files are refused with what is wrong and where") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& name, const std::string& text) {
    const std::string path = folder.write(name, text);
    return message_of([&] { zt::open_tokenizer(path, "data.tokenizer"); });
  };
  // tiktoken
  const std::string ranks = as_tiktoken();
  CHECK(contains(said("a", ""), {"is empty"}));
  CHECK(contains(said("a", "\n \n"), {"nothing but blanks"}));
  CHECK(contains(said("a", "IQ== 0\n"), {"no rank for the byte 0"}));
  CHECK(contains(said("a", ranks + "IQ==\n"), {"line 1000", "base64"}));
  CHECK(contains(said("a", ranks + "IQ== 4294967296\n"), {"line 1000"}));
  CHECK(contains(said("a", ranks + "IQ== 2147483647\n"), {"the largest id is 2147483647", "1000 tokens"}));
  CHECK(contains(said("a", ranks + "I*== 1001\n"), {"line 1000"}));
  CHECK(contains(said("a", ranks + "IQ== 1001\n"), {"\"!\" stands there twice"}));
  CHECK(contains(said("a", ranks + "IUFCQw== 7\n"), {"the rank 7 stands there twice"}));
  CHECK(contains(said("a", "In the beginning God created the heaven\n"), {"line 1", "tokenizer.json"}));
  std::string many;
  for (int i = 0; i < 100256; ++i) many += base64(std::to_string(i)) + " " + std::to_string(i) + "\n";
  CHECK(contains(said("a", many), {"cl100k_base"}));
  CHECK(contains(said("a", std::string("\x1f\x8b\x08\x00", 4)), {"gzip"}));
  CHECK(contains(said("a", std::string(5000, '\0')), {"binary"}));

  // vocab.json and merges.txt
  const json whole = json::parse(contents(golden_path("tokenizer.json")));
  const std::string vocab = whole["model"]["vocab"].dump();
  CHECK(contains(said("vocab.json", vocab), {"merges.txt: no such file", "one half"}));
  folder.write("merges.txt", "#version: 0.2\nt h\n");
  CHECK(said("vocab.json", vocab).empty());
  CHECK(contains(said("vocab.json", vocab.substr(0, 2000)), {"not JSON at byte", "cut short"}));
  CHECK(contains(said("vocab.json", "{}"), {"the vocabulary is empty"}));
  CHECK(contains(said("vocab.json", "[1]"), {"not an object"}));
  CHECK(contains(said("vocab.json", R"({"a": -1})"), {"the id of \"a\" is -1"}));
  CHECK(contains(said("vocab.json", R"({"a": 1.5})"), {"the id of \"a\" is 1.5"}));
  CHECK(contains(said("vocab.json", R"({"a": 1, "b": 1})"), {"have the same id, 1"}));
  CHECK(contains(said("vocab.json", R"({"a": 2000000000})"), {"the largest id is 2000000000"}));
  CHECK(contains(said("vocab.json", R"({"": 0})"), {"a token is empty"}));
  CHECK(contains(said("vocab.json", std::string(100000, '[')), {"vocab.json"}));
  folder.write("vocab.json", vocab);
  CHECK(contains(said("merges.txt", "t h\nq zz\n"), {"line 2", "the token \"zz\" is not in the vocabulary"}));
  CHECK(contains(said("merges.txt", "t h\n! \xc3\xbf\n"), {"line 2", "the result"}));
  CHECK(contains(said("merges.txt", "t h\nt h e\n"), {"line 2", "two tokens"}));
  CHECK(contains(said("merges.txt", "t\n"), {"line 1", "two tokens"}));

  // tokenizer.json: what is not done here is named
  const auto with = [&](const char* pointer, const json& value) {
    json changed = whole;
    changed[json::json_pointer(pointer)] = value;
    return said("tokenizer.json", changed.dump());
  };
  CHECK(with("/normalizer", nullptr).empty());
  CHECK(contains(with("/normalizer", {{"type", "NFC"}}), {"the normalizer NFC"}));
  CHECK(contains(with("/model/type", "WordPiece"), {"model.type is \"WordPiece\"", "--train"}));
  CHECK(contains(with("/model/byte_fallback", true), {"model.byte_fallback is true"}));
  CHECK(contains(with("/model/dropout", 0.1), {"model.dropout is 0.1"}));
  CHECK(contains(with("/model/end_of_word_suffix", "</w>"), {"model.end_of_word_suffix"}));
  CHECK(contains(with("/pre_tokenizer", {{"type", "Sequence"}}), {"its pre_tokenizer is Sequence", "ByteLevel"}));
  CHECK(contains(with("/pre_tokenizer", nullptr), {"it has no pre_tokenizer"}));
  CHECK(contains(with("/pre_tokenizer/add_prefix_space", true), {"add_prefix_space is true"}));
  CHECK(contains(with("/pre_tokenizer/use_regex", false), {"use_regex is false"}));
  CHECK(contains(with("/post_processor", {{"type", "TemplateProcessing"}}), {"post_processor is TemplateProcessing"}));
  CHECK(contains(with("/decoder", {{"type", "Metaspace"}}), {"its decoder is Metaspace"}));
  CHECK(contains(with("/added_tokens/0/lstrip", true), {"lstrip of the added token"}));
  CHECK(contains(with("/added_tokens/0/id", 5), {"has the id 5", "the vocabulary gives it 0"}));
  CHECK(contains(with("/added_tokens/0/id", -5), {"an entry of added_tokens"}));
  CHECK(contains(with("/added_tokens/0/content", ""), {"an added token is empty"}));
  CHECK(contains(with("/added_tokens", {{{"id", 1999999999}, {"content", "x y"}}}), {"the largest id is 1999999999"}));
  CHECK(contains(with("/model/merges", "t h"), {"model.merges is not a list"}));
  CHECK(contains(with("/model/merges/0", json::array({"t"})), {"model.merges[0]", "two tokens"}));
  CHECK(contains(with("/model/merges/0", json::array({"t", "\xe4\xb8\xad"})),
                 {"model.merges[0]", "not in the vocabulary"}));
  CHECK(contains(with("/model/vocab", 7), {"not an object"}));
  CHECK(contains(said("tokenizer.json", R"({"a": 1})"), {"no object \"model\""}));
  CHECK(contains(said("tokenizer.json", whole.dump().substr(0, 9000)), {"not JSON at byte"}));

  CHECK(contains(message_of([&] { zt::open_tokenizer(folder.path("none"), "data.tokenizer"); }), {"no such file"}));
  const TemporaryFolder empty;
  CHECK(contains(message_of([&] { zt::open_tokenizer(empty.path(), "data.tokenizer"); }), {"is a folder without"}));
}

TEST_CASE("a byte that has no token is named with its place") {
  json file = json::parse(contents(golden_path("tokenizer.json")));
  file["model"]["vocab"].erase("\xc4\x82");  // the sign of byte 2
  file["model"]["merges"] = json::array();
  const auto tokenizer = zt::make_tokenizer("byte_pair", file.dump());
  CHECK(contains(message_of([&] { tokenizer->encode("ab\x02"); }), {"byte 2 (0x02) has no token"}));
  file["model"]["unk_token"] = "!";
  CHECK(contains(message_of([&] { zt::make_tokenizer("byte_pair", file.dump()); }), {"unk_token", "255 of the 256"}));
}
