// Files that were made to do harm: depth, numbers and sizes that a reader would pay for in stack, time or memory.
#include "checkpoint/checksum.h"
#include "checkpoint/huggingface.h"
#include "checkpoint/manifest.h"
#include "config/resolve.h"
#include "core/json_bounds.h"
#include "data/byte_pair_vocabulary.h"
#include "data/gzip.h"
#include "data/json_fault.h"
#include "data/json_lines.h"
#include "data/tokenizer.h"
#include "data_support.h"

using namespace zt::testing;

namespace {

// So deep that a call for every level would end the stack of 8 MiB.
constexpr std::size_t deep = 400000;

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The manifest that the fuzzer starts from, with `from` replaced by `to` and its checksum put right.
std::string manifest_with(const std::string& from, const std::string& to) {
  std::string text = read(ZEROTRAIN_SOURCE_DIR "/tests/fuzz/corpus/manifest/mlp");
  text.erase(text.rfind(",\n  \"checksum\""));
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return text + ",\n  \"checksum\": \"" + zt::checksum_text(zt::checksum_of(text)) + "\"\n}\n";
}

std::string message_of_manifest(const std::string& text) {
  try {
    zt::parse_manifest(text, "manifest.json");
  } catch (const zt::RunError& error) {
    return error.what();
  }
  return {};
}

std::string message_of_config(const std::string& text) {
  const TemporaryFolder folder;
  try {
    zt::resolve_config({folder.write("c.json", text)}, {}, 1, {});
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

const std::string byte_level = R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})";

}  // namespace

TEST_CASE("the bounds of JSON count what is open and the names of one object, and pass over texts") {
  const zt::JsonBounds bounds{.deepest = 3, .most_names = 2};
  CHECK(zt::beyond_json_bounds(R"({"a": [[1], [2]], "b": "[[[[{{{{::::"})", bounds).empty());
  CHECK(zt::beyond_json_bounds(R"({"a": {"x\"": 1, "y": 2}, "b": {"x": 1, "y": 2}})", bounds).empty());
  CHECK(zt::beyond_json_bounds("[[[[", bounds) == "is nested more than 3 deep at its byte 3");
  CHECK(zt::beyond_json_bounds(R"({"a":1,"b":{},"c":1})", bounds) ==
        "has an object of more than 2 names at its byte 17");
  CHECK(zt::beyond_json_bounds("]]}\"\\", bounds).empty());
}

TEST_CASE("JSON that is nested without end is refused, not copied or shown") {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": )" + nested(deep) + "}");
  folder.write("model.safetensors", "x");
  CHECK(contains(message_of([&] { zt::open_huggingface(folder.path()); }), {"config.json", "nested more than 64"}));

  CHECK(contains(message_of_manifest(manifest_with("\"config\": {", "\"config\": {\"x\": " + nested(deep) + ", ")),
                 {"manifest.json", "nested more than 80"}));

  CHECK(contains(message_of([&] { zt::parse_byte_pair_vocabulary(R"({"model": )" + nested(deep) + "}", "t.json"); }),
                 {"t.json", "nested more than 32"}));

  CHECK(contains(message_of_config(R"({"train_batch_size": ")" + nested(deep) + "\"}"), {"train_batch_size"}));
  CHECK(contains(message_of_config(R"({"train_batch_size": [")" + nested(deep) + "\"]}"), {"train_batch_size"}));

  CHECK_FALSE(zt::looks_like_prompts(R"([{"prompt": )" + nested(deep) + "}]"));
}

TEST_CASE("objects of so many names that to look through them would take hours are refused") {
  std::string names;
  for (int i = 0; i < 200000; ++i) names += "\"k" + std::to_string(i) + "\": 1, ";
  CHECK(contains(message_of_manifest(manifest_with("\"config\": {", "\"config\": {" + names)),
                 {"an object of more than 1000 names"}));
  CHECK(contains(message_of_config("{" + names + "\"train_batch_size\": 1}"), {"more than 10000 keys"}));
}

TEST_CASE("a manifest's moments and sizes stay within what can be, and its names are shown in one line") {
  std::string moments;
  for (int i = 0; i < 17; ++i) moments += "\"m" + std::to_string(i) + "\", ";
  CHECK(contains(message_of_manifest(manifest_with("\"moments\": [", "\"moments\": [" + moments)),
                 {"moments are more than any optimizer has"}));

  zt::Manifest manifest = zt::parse_manifest(manifest_with("zerotrain", "zerotrain"), "manifest.json");
  REQUIRE(manifest.files.size() >= 1);
  zt::CheckpointFile empty = manifest.files.front();
  empty.pieces.clear();
  for (int i = 0; i < 5; ++i) {
    empty.name = "more" + std::to_string(i);
    empty.bytes = std::int64_t{1} << 60;
    manifest.files.push_back(empty);
  }
  CHECK(contains(message_of_manifest(zt::manifest_text(manifest)), {"larger together than any disk"}));

  manifest.files.resize(manifest.files.size() - 5);
  empty.name = "a\n\x1b[2Jb";
  empty.kind = "x\ny";
  empty.bytes = 1;
  manifest.files.push_back(empty);
  const std::string message = message_of_manifest(zt::manifest_text(manifest));
  CHECK(contains(message, {"\\x1b[2Jb", "x\\ny"}));
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("a tokenizer's definition is read again, whatever its tokens are") {
  const auto again = [](const std::string& text) {
    const auto tokenizer = zt::make_byte_pair_tokenizer(zt::parse_byte_pair_vocabulary(text, "t.json"));
    CHECK(zt::make_tokenizer(tokenizer->name(), tokenizer->definition())->definition() == tokenizer->definition());
  };
  // Blanks within the tokens of a merge.
  again(R"({"model": {"type": "BPE", "vocab": {"a b": 0, " c": 1, "a b c": 2}, "merges": [["a b", " c"]]}, )" +
        byte_level + "}");
  // Added tokens that the vocabulary has count once.
  std::string vocab, added;
  for (int i = 0; i < 100; ++i) {
    vocab += "\"t" + std::to_string(i) + "\": " + std::to_string(i) + (i < 99 ? ", " : "");
    added += R"({"id": )" + std::to_string(i) + R"(, "content": "t)" + std::to_string(i) + "\"}, ";
  }
  const auto with_last = [&](int id) {
    return R"({"model": {"type": "BPE", "vocab": {)" + vocab + R"(}, "merges": []}, "added_tokens": [)" + added +
           R"({"id": )" + std::to_string(id) + R"(, "content": "<last>"}], )" + byte_level + "}";
  };
  again(with_last(2 * 101 + 4095));
  CHECK(contains(message_of([&] { again(with_last(2 * 101 + 4096)); }), {"largest id", "101 tokens"}));
}

TEST_CASE("a tiktoken file with a token of a megabyte is refused before it is cut in two everywhere") {
  const std::string token(std::size_t{4} << 18, 'A');
  CHECK(contains(message_of([&] { zt::parse_byte_pair_vocabulary("IQ== 0\n" + token + " 1\n", "ranks"); }),
                 {"line 2", "786432 bytes", "1024 at most"}));
}

TEST_CASE("a line of carriage returns is a fault like any other") {
  CHECK(zt::find_json_fault("\r").what == "a value is missing");
  CHECK(contains(message_of([] { zt::read_prompts("\r\r\n", "p.jsonl"); }), {"p.jsonl", "line 1"}));
}

TEST_CASE("gzip that unpacks to more than memory has is refused while it is unpacked") {
  const std::string zeros(std::size_t{200} << 20, '\0');
  std::string packed(1 << 20, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zeros.data()));
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const auto bytes = [](std::int64_t count) { return [count] { return count; }; };
  CHECK(contains(message_of([&] { zt::gunzip(packed, "x.gz", bytes(100 << 20)); }), {"x.gz", "has not the memory"}));
  CHECK(zt::gunzip(packed, "x.gz", bytes(std::int64_t{201} << 20)) == zeros);
  CHECK(zt::gunzip(packed, "x.gz") == zeros);
}
