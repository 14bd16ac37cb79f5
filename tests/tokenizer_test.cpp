// Text to numbers and back.
#include "data/tokenizer.h"

#include "data_support.h"

using namespace zt::testing;

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
