// safetensors files: as the package of that name writes them, round trips, and what is said about broken ones.
#include "checkpoint/safetensors.h"

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "data_support.h"

using namespace zt;
using namespace zt::testing;

namespace {

template <typename F>
std::string run_error_of(F&& f) {
  try {
    f();
  } catch (const RunError& error) {
    return error.what();
  }
  return {};
}

std::string with_length(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i) & 0xffU));
  return bytes + header + data;
}

// What is said of a file with this header and data.
std::string message_for(const std::string& header, const std::string& data = std::string(24, '\0')) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.safetensors", with_length(header, data));
  return run_error_of([&] { SafetensorsFile file(path); });
}
std::string message_for_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.safetensors", bytes);
  return run_error_of([&] { SafetensorsFile file(path); });
}

std::string tensor(const std::string& name, const std::string& shape, const std::string& range,
                   const std::string& type = "F32") {
  return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + range + "}";
}
std::string header(const std::vector<std::string>& entries) {
  std::string text = "{";
  for (const std::string& entry : entries) text += (text.size() > 1 ? "," : "") + entry;
  return text + "}";
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<float> floats(const SafetensorsFile& file, const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements));
  file.read_floats(tensor, 0, tensor.elements, values.data());
  return values;
}

}  // namespace

TEST_CASE("a file of the safetensors package is read as it was written") {
  const SafetensorsFile file(std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/formats/package.safetensors");
  CHECK(file.metadata() == TensorMetadata{{"format", "np"}, {"note", "a \"text\"\n with ü"}});
  REQUIRE(file.tensors().size() == 8);
  CHECK(file.find("absent") == nullptr);

  const std::vector<float> values = {0.0F, -0.0F, 1.5F, -2.25F, 65504.0F, 1e-3F};
  for (const char* name : {"single", "double"}) {
    REQUIRE(file.find(name) != nullptr);
    CHECK(file.find(name)->shape == std::vector<std::int64_t>{2, 3});
    CHECK(floats(file, *file.find(name)) == values);
    CHECK(std::signbit(floats(file, *file.find(name))[1]));
  }
  REQUIRE(file.find("half") != nullptr);
  CHECK(file.find("half")->type == StoredType::f16);
  CHECK(floats(file, *file.find("half")) ==
        std::vector<float>{0.0F, -0.0F, 1.5F, -2.25F, 65504.0F, to_float(from_float<f16_t>(1e-3F))});
  CHECK(file.find("scalar")->shape.empty());
  CHECK(floats(file, *file.find("scalar")) == std::vector<float>{7.0F});
  CHECK(file.find("empty")->bytes == 0);
  CHECK(file.find("flags")->type == StoredType::boolean);
  REQUIRE(file.find("größe/ü \"quoted\"") != nullptr);

  const StoredTensor& counts = *file.find("counts");
  std::vector<std::int64_t> integers(3);
  file.read(counts, 1, 3, integers.data());  // a part of it
  CHECK(integers == std::vector<std::int64_t>{-1, 0, 1});
  CHECK(contains(run_error_of([&] { floats(file, counts); }), {"counts", "I64", "F32, F16, BF16 or F64"}));
  CHECK(contains(run_error_of([&] { file.read(counts, 3, 3, integers.data()); }), {"has 5 elements", "element 3"}));
}

TEST_CASE("what is written is read back, in pieces of any size, with the checksums of what is on the disk") {
  const TemporaryFolder folder;
  const std::string path = folder.path("written.safetensors");
  // Sizes below, at and above the buffer of a MiB.
  const std::vector<TensorToWrite> tensors = {{"a", StoredType::f32, {3, 5}},
                                              {"none", StoredType::f32, {0}},
                                              {"b \"x\"", StoredType::bf16, {1 << 20}},
                                              {"c", StoredType::f16, {7}},
                                              {"last", StoredType::u8, {0, 3}}};
  std::string data(60 + (2 << 20) + 14, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 + i / 255);
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{1} << 20, (std::size_t{1} << 20) + 1, data.size()}) {
    SafetensorsWriter writer(path, tensors, {{"step", "12"}});
    for (std::size_t done = 0; done < data.size(); done += piece) {
      writer.append(data.data() + done, static_cast<std::int64_t>(std::min(piece, data.size() - done)));
    }
    writer.finish();

    const SafetensorsFile file(path);
    CHECK(file.metadata() == TensorMetadata{{"step", "12"}});
    REQUIRE(file.tensors().size() == tensors.size());
    CHECK(file.bytes() == writer.bytes());
    CHECK(writer.file_checksum() == checksum_of_file(path));
    CHECK(writer.file_checksum() == checksum_of(content(path)));
    std::string back;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const StoredTensor& announced = writer.tensors()[i];
      const StoredTensor* stored = file.find(tensors[i].name);
      REQUIRE(stored != nullptr);
      CHECK(stored->offset == announced.offset);
      CHECK(stored->shape == tensors[i].shape);
      std::string bytes(static_cast<std::size_t>(stored->bytes), '\0');
      file.read(*stored, 0, stored->elements, bytes.data());
      CHECK(writer.tensor_checksums()[i] == checksum_of(bytes));
      CHECK(writer.tensor_checksums()[i] == file.checksum(*stored));
      back += bytes;
    }
    CHECK(back == data);
    CHECK(file.find("a")->offset % 64 == 0);
  }
}

TEST_CASE("checksums are XXH3's, and their text is read back") {
  CHECK(checksum_text(checksum_of("")) == "2d06800538d394c2");  // of no bytes: published with the algorithm
  CHECK(checksum_text(5) == "0000000000000005");
  CHECK(parse_checksum("00000000000000ff") == 255U);
  CHECK(!parse_checksum("00000000000000FF"));
  CHECK(!parse_checksum("ff"));
  CHECK(!parse_checksum("-000000000000001"));
}

TEST_CASE("fp32 becomes 16 bits rounded to nearest, ties to even, and infinite beyond fp16's range") {
  const std::vector<float> values = {1.0F, 65519.0F, 65520.0F, -1e6F, 0x1.004p0F, 0x1.00cp0F, NAN};
  std::vector<float> back(values.size());
  std::vector<std::uint16_t> raw(values.size());
  from_floats(values.data(), 7, DType::f16, raw.data());
  to_floats(StoredType::f16, raw.data(), 7, back.data());
  CHECK(back[0] == 1.0F);
  CHECK(back[1] == 65504.0F);
  CHECK(back[2] == std::numeric_limits<float>::infinity());
  CHECK(back[3] == -std::numeric_limits<float>::infinity());
  from_floats(values.data(), 7, DType::bf16, raw.data());
  to_floats(StoredType::bf16, raw.data(), 7, back.data());
  CHECK(back[4] == 1.0F);  // between 1 and 1 + 2^-7: nearer to 1
  CHECK(back[2] == 65536.0F);
  CHECK(std::isnan(back[6]));
  const std::vector<double> doubles = {0.1, 1e300, -0.0};
  to_floats(StoredType::f64, doubles.data(), 3, back.data());
  CHECK(back[0] == 0.1F);
  CHECK(std::isinf(back[1]));
}

TEST_CASE("lying lengths of the header are refused before memory is taken") {
  CHECK(contains(message_for_bytes(""), {"x.safetensors", "0 bytes"}));
  CHECK(contains(message_for_bytes("1234567"), {"7 bytes"}));
  CHECK(contains(message_for_bytes(std::string(8, '\xff')), {"18446744073709551615", "100000000"}));
  CHECK(contains(message_for_bytes(std::string("\x00\xe1\xf5\x05\x00\x00\x00\x00{}", 10)), {"100000000", "2 follow"}));
  CHECK(contains(message_for_bytes(std::string("\x01\xe1\xf5\x05\x00\x00\x00\x00{}", 10)), {"100000001", "allows"}));
  CHECK(contains(message_for_bytes(std::string(8, '\0')), {"no header in JSON"}));
  CHECK(contains(run_error_of([] { SafetensorsFile file("/nowhere/x"); }), {"/nowhere/x", "No such file"}));
  CHECK(contains(run_error_of([] { SafetensorsFile file("/tmp"); }), {"not a regular file"}));
  CHECK(contains(run_error_of([] { SafetensorsFile file("/dev/zero"); }), {"not a regular file"}));
}

TEST_CASE("a header that is not the format's JSON is refused with tensor and reason") {
  const std::string good = tensor("t", "[2,3]", "[0,24]");
  CHECK(message_for(header({good})).empty());
  CHECK(message_for(header({R"("__metadata__":{"a":"b"})", good}) + "   ").empty());
  CHECK(message_for("{}", "").empty());

  CHECK(contains(message_for("[1]"), {"no header in JSON"}));
  CHECK(contains(message_for(" " + header({good})), {"no header in JSON"}));
  CHECK(contains(message_for("{" + good), {"no JSON"}));
  CHECK(contains(message_for(header({good}) + "x"), {"no JSON from its byte"}));
  CHECK(contains(message_for("{\"\xff\":{}}"), {"no JSON"}));
  CHECK(contains(message_for("{" + std::string(100000, '[')), {"no JSON"}));
  CHECK(contains(message_for("{\"t\":" + std::string(100000, '[')), {"\"t\"", "a list, not an object"}));
  CHECK(contains(message_for(header({R"("":{})"})), {"without a name"}));
  CHECK(contains(message_for(header({good, good})), {"\"t\" stands there twice"}));
  CHECK(contains(message_for(header({R"("t":5)"})), {"\"t\"", "a number, not an object"}));
  CHECK(contains(message_for(header({R"("t":null)"})), {"null"}));
  CHECK(contains(message_for(header({R"("__metadata__":{"a":5})", good})), {"__metadata__", "\"a\"", "not a text"}));
  CHECK(contains(message_for(header({R"("__metadata__":{"a":{}})", good})), {"\"a\"", "not a text"}));
  CHECK(contains(message_for(header({R"("__metadata__":{"a":"1","a":"2"})", good})), {"\"a\" stands there twice"}));
  CHECK(contains(message_for(header({R"("__metadata__":[])", good})), {"__metadata__", "not an object"}));
  CHECK(contains(message_for(header({R"("__metadata__":{})", R"("__metadata__":{})"})), {"twice"}));
  CHECK(contains(message_for(header({R"("t":{"dtype":"F32","shape":[6]})"})), {"\"t\"", "no data_offsets"}));
  CHECK(contains(message_for(header({R"("t":{"shape":[6],"data_offsets":[0,24]})"})), {"no dtype"}));
  CHECK(contains(message_for(header({R"("t":{"dtype":"F32","data_offsets":[0,24]})"})), {"no shape"}));
  CHECK(contains(message_for(header({R"("t":{"dtype":"F32","dtype":"F32","shape":[6],"data_offsets":[0,24]})"})),
                 {"dtype stands there twice"}));
  CHECK(contains(message_for(header({R"("t":{"dtype":"F32","shape":[6],"data_offsets":[0,24],"x":1})"})), {"\"x\""}));
  CHECK(
      contains(message_for(header({R"("t":{"dtype":5,"shape":[6],"data_offsets":[0,24]})"})), {"dtype", "not a text"}));
  CHECK(contains(message_for(header({tensor("t", "[6]", "[0,24]", "F33")})), {"\"F33\""}));
  CHECK(contains(message_for(header({tensor("t", "6", "[0,24]")})), {"shape", "not a list"}));
  CHECK(contains(message_for(header({tensor("t", "[[6]]", "[0,24]")})), {"a list in its shape"}));
  CHECK(contains(message_for(header({tensor("t", "[-6]", "[0,24]")})), {"-6", "0 or more"}));
  CHECK(contains(message_for(header({tensor("t", "[6.0]", "[0,24]")})), {"6.0"}));
  CHECK(contains(message_for(header({tensor("t", "[6]", "[0,24,30]")})), {"not two numbers"}));
  CHECK(contains(message_for(header({tensor("t", "[6]", "[24]")})), {"not two numbers"}));
  CHECK(
      contains(message_for(header({tensor("t", "[6]", "[0,9223372036854775808]")})), {"9223372036854775808", "large"}));
  CHECK(contains(message_for(header({tensor("t\\n\\u0007", "[5]", "[0,24]")})), {R"("t\n\x07")"}));
}

TEST_CASE("shapes and places that do not fit the file are refused with tensor and reason") {
  CHECK(contains(message_for(header({tensor("t", "[5]", "[0,24]")})), {"5 elements of F32 take 20", "span 24"}));
  CHECK(contains(message_for(header({tensor("t", "[6]", "[24,0]")})), {"before their start"}));
  CHECK(contains(message_for(header({tensor("t", "[4294967296,4294967296]", "[0,24]")})), {"can be counted"}));
  CHECK(contains(message_for(header({tensor("t", "[4611686018427387904]", "[0,24]")})), {"can be counted"}));
  CHECK(message_for(header({tensor("t", "[0,4611686018427387904]", "[0,0]")}), "").empty());  // no elements at all
  CHECK(contains(message_for(header({tensor("t", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6]", "[0,24]")})), {"dimensions"}));
  CHECK(contains(message_for(header({tensor("t", "[100]", "[0,400]")})), {"end at byte 400", "24 bytes"}));
  CHECK(contains(message_for(header({tensor("t", "[1]", "[9223372036854775803,9223372036854775807]")})), {"24 bytes"}));
  CHECK(contains(message_for(header({tensor("t", "[4]", "[0,16]"), tensor("u", "[4]", "[8,24]")})),
                 {"\"u\"", "overlap"}));
  CHECK(contains(message_for(header({tensor("t", "[2]", "[0,8]"), tensor("u", "[2]", "[16,24]")})), {"8 bytes of no"}));
  CHECK(contains(message_for(header({tensor("t", "[4]", "[8,24]")})), {"\"t\"", "8 bytes of no tensor"}));
  CHECK(contains(message_for(header({tensor("t", "[4]", "[0,16]")})), {"behind the last tensor are 8 bytes"}));
  CHECK(message_for(header({tensor("u", "[2]", "[16,24]"), tensor("t", "[4]", "[0,16]")})).empty());  // in any order
}

TEST_CASE("a file that becomes shorter while it is read is an error") {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("x.safetensors", with_length(header({tensor("t", "[6]", "[0,24]")}), std::string(24, '\1')));
  const SafetensorsFile file(path);
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(file.bytes() - 1));
  CHECK(contains(run_error_of([&] { floats(file, file.tensors()[0]); }), {"x.safetensors", "ends at byte"}));
}

TEST_CASE("a writer refuses what it cannot write, and says what is missing") {
  const TemporaryFolder folder;
  const std::string path = folder.path("w");
  const std::vector<float> data(6);
  CHECK(contains(run_error_of([] { SafetensorsWriter writer("/nowhere/w", {}, {}); }), {"/nowhere/w", "No such file"}));
  CHECK(contains(run_error_of([&] {
                   SafetensorsWriter writer(path, {{"a", StoredType::f32, {1}}, {"a", StoredType::f32, {1}}}, {});
                 }),
                 {"\"a\"", "twice"}));
  CHECK(contains(run_error_of([&] {
                   SafetensorsWriter writer(path, {{"__metadata__", StoredType::f32, {1}}}, {});
                 }),
                 {"no tensor can have"}));
  CHECK(contains(run_error_of([&] {
                   SafetensorsWriter writer(path, {{"a", StoredType::f32, {1LL << 62, 4}}}, {});
                 }),
                 {"can be counted"}));
  CHECK(contains(run_error_of([&] {
                   SafetensorsWriter writer(path, {{"a\xff", StoredType::f32, {1}}}, {});
                 }),
                 {"UTF-8"}));
  CHECK(contains(run_error_of([&] {
                   SafetensorsWriter writer(path, {{"a", StoredType::f32, {5}}, {"b", StoredType::f32, {0}}}, {});
                   writer.append(data.data(), 24);
                 }),
                 {"more data"}));
  CHECK(contains(run_error_of([&] {
                   SafetensorsWriter writer(path, {{"a", StoredType::f32, {4}}, {"b", StoredType::f32, {4}}}, {});
                   writer.append(data.data(), 24);
                   writer.finish();
                 }),
                 {"\"b\" has not got all"}));
  CHECK(contains(run_error_of([&] {
                   SafetensorsWriter writer("/dev/full", {{"a", StoredType::f32, {6}}}, {});
                   writer.append(data.data(), 24);
                   writer.finish();
                 }),
                 {"/dev/full", "No space left on device"}));
}
