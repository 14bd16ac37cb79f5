// What messages about files say: escapes, kinds of files, and where a line is no JSON.
#include <random>

#include "core/json.h"
#include "data/file_kind.h"
#include "data/json_fault.h"
#include "data/message_text.h"
#include "data_support.h"

using namespace zt::testing;

TEST_CASE("text from outside is shown without a byte that a terminal would act upon") {
  CHECK(zt::shown("plain \xc3\xa9 \xf0\x9f\x98\x80") == "plain \xc3\xa9 \xf0\x9f\x98\x80");
  CHECK(zt::shown(std::string("a\0b\n\r\t\x1b\x7f", 8)) == R"(a\x00b\n\r\t\x1b\x7f)");
  CHECK(zt::shown("\xff\xc3(\xed\xa0\x80") == R"(\xff\xc3(\xed\xa0\x80)");
  CHECK(zt::shown("\xc2\x9b\xe2\x80\xae") == R"(\u009b\u202e)");  // a control character of Latin-1, right to left
  CHECK(zt::shown(std::string(61, 'x')) == std::string(60, 'x') + "...");
  CHECK(zt::shown(std::string(60, 'x')) == std::string(60, 'x'));
  const std::string path = zt::shown_path("/begin" + std::string(5000, 'x') + "\n/end.csv");
  CHECK(path.size() < 450);
  CHECK(contains(path, {"/begin", "...", R"(\n/end.csv)"}));
  CHECK(zt::shown(0.9999999999999) == "0.9999999999999");
  CHECK(zt::counted(1, "row") == "1 row");
  CHECK(zt::counted(0, "row") == "0 rows");
  CHECK(zt::counted(2, "class", "classes") == "2 classes");
  CHECK(zt::at_most(1) == "1");
  CHECK(zt::at_most(2) == "2 or less");
}

TEST_CASE("packed files are known by their first bytes") {
  const auto names = [](const std::string& bytes, const std::string& packer) {
    return contains(zt::packed_in_words(bytes), {"looks packed by " + packer + ":", "unpack it first"});
  };
  CHECK(names("PK\x03\x04....", "zip"));
  CHECK(names("BZh91AY&SY....", "bzip2"));
  CHECK(names(std::string("\xfd"
                          "7zXZ\0",
                          6),
              "xz"));
  CHECK(names("\x28\xb5\x2f\xfd....", "zstd"));
  CHECK(names("\x04\x22\x4d\x18....", "lz4"));
  CHECK(names("7z\xbc\xaf\x27\x1c", "7-Zip"));
  CHECK(names(packed("text"), "gzip twice"));
  CHECK(names(std::string(257, 'f') + "ustar" + std::string(300, '\0'), "tar"));
  for (const char* text : {"", "P", "PK", "BZh9 is no name", "a,b\n1,2\n"}) CHECK(zt::packed_in_words(text).empty());
}

TEST_CASE("binary files and UTF-16 are told from text") {
  std::mt19937 random(7);
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes.push_back(static_cast<char>(random() & 0xffU));
  for (const std::size_t size : {100UL, 1000UL, 5000UL}) {
    CHECK(zt::binary_in_words(bytes.substr(0, size)) == "looks like a binary file");
    CHECK(zt::binary_in_words(std::string(size, '\0')) == "looks like a binary file");
  }
  const std::string text = "a,b\n1.5,2\n";
  std::string wide;
  for (const char c : text) wide += {c, '\0'};
  CHECK(zt::binary_in_words(wide) == "looks like text in UTF-16");
  CHECK(zt::binary_in_words("\xff\xfe" + wide) == "is text in UTF-16");
  CHECK(zt::binary_in_words(text).empty());
  CHECK(zt::binary_in_words("").empty());
  CHECK(zt::binary_in_words("tabs\tand\xe9\xe8 of Latin-1, \x1b[0m a colour\r\n").empty());
  CHECK(zt::binary_in_words(text + '\0').empty());  // a slip
}

TEST_CASE("each way in which a line is no JSON has its own sentence and place") {
  struct Case {
    const char* line;
    std::size_t offset;
    const char* words;
  };
  const std::vector<Case> cases = {
      {R"({"a": "b")", 9, "ends within an object"},
      {R"({"a": ["b")", 10, "ends within an array"},
      {R"({"a": "b)", 6, "never closed"},
      {R"({"a": "b\)", 8, "ends within an escape"},
      {R"({"a" "b"})", 5, "colon is missing"},
      {R"({"a": "b" "c": 1})", 10, "a comma is missing before this"},
      {R"({"a": "b",})", 9, "remove the comma before the }"},
      {R"({"a": [1,]})", 8, "remove the comma before the ]"},
      {R"({"a": "b"},)", 10, "remove the comma behind }"},
      {R"({"a": 1} {"a": 2})", 9, "a second object begins here"},
      {R"({"a": 1}})", 8, "a } too many"},
      {R"({"a": [1}})", 8, "a ] is missing before this }"},
      {R"({'a': 1})", 1, "double quotes"},
      {R"({a: 1})", 1, "double quotes"},
      {R"({"a": yes})", 6, "double quotes: \"yes\""},
      {R"({"a": True})", 6, "small letters"},
      {R"({"a": NaN})", 6, "no NaN"},
      {R"({"a": "say "yes""})", 12, R"(within a text is written \")"},
      {R"({"a": "C:\dir"})", 9, R"(no escape: \d)"},
      {R"({"a": "\u12g4"})", 7, R"(\u is followed by four digits)"},
      {R"({"a": "\ud800"})", 7, "surrogate"},
      {R"({"a": 01})", 6, "not a number"},
      {R"({"a": +1})", 6, "not a number"},
      {R"({"a": 1e999})", 6, "1e999 is more than can be read"},
      {R"({"a": })", 6, "a value is missing before this }"},
      {R"({"a": 1,, "b": 2})", 8, "a comma too many"},
      {R"({"a": 1 // b)", 8, "no comments"},
      {"{\"a\": \"\t\"}", 7, R"(a tab within a text is written as an escape: \t)"},
      {"{\"a\": \"\xe9\"}", 7, R"(not UTF-8 (the byte \xe9))"},
      {"{\"a\": \xe9}", 6, R"(not UTF-8 (the byte \xe9))"},
      {"{\xe2\x80\x9c"
       "a\xe2\x80\x9d: 1}",
       1, "double quotes"},
  };
  for (const Case& c : cases) {
    const zt::JsonFault fault = zt::find_json_fault(c.line);
    INFO(c.line);
    CHECK(fault.offset == c.offset);
    CHECK(contains(fault.what, {c.words}));
  }
}

TEST_CASE("the scanner finds a fault where the parser does, and nowhere else") {
  std::mt19937 random(3);
  const std::string line =
      R"({"prompt": "a\u00e9\ud83d\ude00\n", "n": [-1.5e+3, 0, true, null, {}], "completion": {"x": [[]]}})";
  const std::string_view bytes("\0\t\"\\{}[]:,-+.0e9u/ntf\xff\xc3\xa9 ", 26);
  int wrong = 0, right = 0;
  for (int trial = 0; trial < 40000; ++trial) {
    std::string changed = line;
    for (unsigned count = random() % 3; count < 3; ++count) {
      const std::size_t at = random() % changed.size();
      switch (random() % 3) {
        case 0: changed[at] = bytes[random() % bytes.size()]; break;
        case 1: changed.erase(at, 1 + random() % 3); break;
        default: changed.insert(at, 1, bytes[random() % bytes.size()]); break;
      }
    }
    const bool parsed = nlohmann::json::accept(changed);
    const zt::JsonFault fault = zt::find_json_fault(changed);
    INFO(changed);
    REQUIRE(fault.what.empty() == parsed);
    REQUIRE(fault.offset <= changed.size());
    ++(parsed ? right : wrong);
  }
  CHECK(wrong > 10000);
  CHECK(right > 100);
}
