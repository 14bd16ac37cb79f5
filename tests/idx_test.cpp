// Images and classes from IDX files, plain or gzip, and what is said about broken ones.
#include <bit>
#include <cstring>
#include <limits>

#include "data_support.h"

using namespace zt::testing;

namespace {

std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i) & 0xffU));
  return text;
}

// An IDX file of these dimensions around raw elements.
std::string idx(int type, const std::vector<std::uint32_t>& dimensions, const std::string& elements) {
  std::string text = {'\0', '\0', static_cast<char>(type), static_cast<char>(dimensions.size())};
  for (const std::uint32_t length : dimensions) text += big_endian(length, 4);
  return text + elements;
}

std::string bytes(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text.push_back(static_cast<char>(value));
  return text;
}

// Three images of 2 x 2 and their classes.
const std::string three_images = idx(0x08, {3, 2, 2}, bytes({0, 255, 51, 1, 10, 20, 30, 40, 5, 6, 7, 8}));
const std::string three_labels = idx(0x08, {3}, bytes({2, 0, 1}));

zt::Settings idx_settings(const std::string& images, const std::string& labels) {
  zt::Settings settings;
  settings.model.type = "mlp";
  settings.model.mlp.layers = {4, 8, 3};
  settings.model.mlp.loss = "cross_entropy";
  settings.data.type = "idx";
  settings.data.images = images;
  settings.data.labels = labels;
  settings.batch = {.train = 1, .micro = 1, .accumulation = 1};
  return settings;
}

// What is said when the images, or the labels, are these bytes.
std::string message_for_images(const std::string& content) {
  const TemporaryFolder folder;
  const zt::Settings settings = idx_settings(folder.write("images", content), folder.write("labels", three_labels));
  return message_of([&] { zt::open_dataset(settings); });
}
std::string message_for_labels(const std::string& content) {
  const TemporaryFolder folder;
  const zt::Settings settings = idx_settings(folder.write("images", three_images), folder.write("labels", content));
  return message_of([&] { zt::open_dataset(settings); });
}

}  // namespace

TEST_CASE("bytes become features in [0, 1], labels become classes, plain and packed") {
  const TemporaryFolder folder;
  for (const bool is_packed : {false, true}) {
    const auto file = [&](const std::string& name, const std::string& content) {
      return folder.write(name, is_packed ? packed(content) : content);
    };
    zt::Settings settings = idx_settings(file("i", three_images), file("l", three_labels));
    const zt::Dataset dataset = zt::open_dataset(settings);
    CHECK(dataset.training->shape() == zt::SampleShape{.token_targets = 1, .features = 4});
    REQUIRE(dataset.training->samples() == 3);
    const Sample first = sample_of(*dataset.training, 0);
    CHECK(first.features == std::vector<float>{0.0F, 1.0F, 0.2F, 1.0F / 255.0F});
    CHECK(first.token_targets == std::vector<std::int32_t>{2});
    CHECK(sample_of(*dataset.training, 2).features[3] == 8.0F / 255.0F);
    CHECK(sample_of(*dataset.training, 2).token_targets[0] == 1);
    CHECK(dataset.validation == nullptr);
    CHECK(dataset.bytes == static_cast<std::int64_t>(three_images.size() + three_labels.size()));  // bytes stay bytes
    CHECK(contains(dataset.description, {"3 training and 0 validation images of 4 values in 3 classes"}));

    settings.data.validation_images =
        file("vi", idx(0x08, {1, 4}, bytes({9, 9, 9, 9})));  // other dimensions, as many values
    settings.data.validation_labels = file("vl", idx(0x08, {1}, bytes({1})));
    CHECK(zt::open_dataset(settings).validation->samples() == 1);
    CHECK(contains(zt::open_dataset(settings).description, {"3 training and 1 validation image of 4 values"}));
    settings.data.validation_labels.clear();
    CHECK(
        contains(message_of([&] { zt::open_dataset(settings); }), {"validation_images", "validation_labels", "both"}));
  }
}

TEST_CASE("other element types are taken as they are") {
  const TemporaryFolder folder;
  const auto features_of = [&](int type, const std::string& elements) {
    const zt::Settings settings = idx_settings(folder.write("i", idx(type, {1, 4}, elements)),
                                               folder.write("l", idx(0x0b, {1}, big_endian(2, 2))));
    return sample_of(*zt::open_dataset(settings).training, 0).features;
  };
  CHECK(features_of(0x09, bytes({-128, -1, 0, 127})) == std::vector<float>{-128.0F, -1.0F, 0.0F, 127.0F});
  CHECK(features_of(0x0b, big_endian(0x8000ffff0001012c, 8)) == std::vector<float>{-32768.0F, -1.0F, 1.0F, 300.0F});
  CHECK(features_of(0x0c, big_endian(0xffffffff00000007, 8) + big_endian(0x0001000080000000, 8)) ==
        std::vector<float>{-1.0F, 7.0F, 65536.0F, -2147483648.0F});
  std::string floats, doubles;
  for (const float value : {0.5F, -3.25F, 1e30F, 0.1F}) {
    floats += big_endian(std::bit_cast<std::uint32_t>(value), 4);
    doubles += big_endian(std::bit_cast<std::uint64_t>(static_cast<double>(value)), 8);
  }
  CHECK(features_of(0x0d, floats) == std::vector<float>{0.5F, -3.25F, 1e30F, 0.1F});
  CHECK(features_of(0x0e, doubles) == std::vector<float>{0.5F, -3.25F, 1e30F, 0.1F});
}

TEST_CASE("each way in which an IDX file can be broken has its own sentence") {
  CHECK(contains(message_for_images("\x89PNG...."), {"data.images", "no IDX file", "89 50 4e 47", "00 00 08 03"}));
  CHECK(contains(message_for_images(std::string("\0\0", 2)), {"cut short", "2 bytes"}));
  CHECK(contains(message_for_images(idx(0x0a, {3, 2, 2}, "")), {"no IDX file", "element type", "00 00 0a 03"}));
  CHECK(contains(message_for_images(idx(0x08, {}, "abcd")), {"no dimensions"}));
  CHECK(contains(message_for_images(idx(0x08, {3, 2, 2}, "").substr(0, 10)), {"cut short", "header of 3 dimensions"}));
  CHECK(contains(message_for_images(three_images.substr(0, three_images.size() - 1)),
                 {"cut short", "promises 3 x 2 x 2 unsigned bytes, 12 bytes", "11 bytes follow"}));
  CHECK(contains(message_for_images(three_images + "x"), {"goes on after its end", "12 bytes", "13 bytes follow"}));
  CHECK(contains(message_for_images(idx(0x08, {0, 2, 2}, "")), {"holds nothing", "0 x 2 x 2"}));
  const std::uint32_t huge = 0xffffffffU;
  CHECK(contains(message_for_images(idx(0x08, {huge, huge, huge}, "abc")), {"cut short", "4294967295 x"}));
  CHECK(contains(message_for_images(packed(three_images).substr(0, 30)), {"gzip content is cut short after 30 bytes"}));
  std::string damaged = packed(three_images);
  damaged[damaged.size() - 6] ^= 0x11;  // in the checksum
  CHECK(contains(message_for_images(damaged), {"gzip content is damaged", "incorrect data check"}));
  CHECK(contains(message_for_images(packed(three_images) + "tail"), {"bytes that are not gzip follow"}));
  CHECK(contains(message_for_images(packed("")), {"gzip of nothing"}));
  CHECK(contains(
      message_for_images(idx(0x0d, {3, 4}, std::string(40, '\0') + big_endian(0x7fc00000, 4) + big_endian(0, 4))),
      {"data.images", "image 2 (from 0)", "position 2", "not a number"}));
}

TEST_CASE("images and labels that do not belong together or to the model are told with both numbers") {
  CHECK(contains(message_for_images(idx(0x08, {3, 5}, std::string(15, 'x'))),
                 {"model.layers", "first entry is 4", "has 5 values", "set it to 5"}));
  CHECK(contains(message_for_labels(idx(0x08, {2}, bytes({0, 1}))), {"data.labels", "2 labels", "3 images"}));
  CHECK(contains(message_for_labels(idx(0x08, {3}, bytes({0, 3, 1}))),
                 {"label 1 (from 0) is 3", "last entry of model.layers, 3", "classes 0 to 2"}));
  CHECK(contains(message_for_labels(idx(0x09, {3}, bytes({0, -1, 1}))), {"label 1 (from 0) is -1"}));
  CHECK(contains(message_for_labels(idx(0x08, {3, 1}, bytes({0, 1, 2}))),
                 {"2 dimensions", "name the file of the labels"}));
  CHECK(contains(message_for_labels(idx(0x0d, {1}, big_endian(0, 4))),
                 {"1 floating-point numbers of 32 bits", "labels are integers"}));

  const TemporaryFolder folder;
  zt::Settings settings = idx_settings(folder.write("i", three_images), folder.path("none"));
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"data.labels", "no such file"}));
  settings.data.labels = folder.write("l", three_labels);
  settings.batch.train = 4;
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }),
                 {"train_batch_size: 4", "only 3 images", "to 3 or less"}));
  settings.batch.train = 1;
  settings.model.mlp.loss = "mse";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"model.loss", "cross_entropy"}));
  settings.model.type = "gpt";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"data.type", "mlp", "gpt"}));
}

TEST_CASE("exchanged files are told as such, and all that is wrong with the files together") {
  const TemporaryFolder folder;
  const auto message = [](const zt::Settings& settings) { return message_of([&] { zt::open_dataset(settings); }); };
  zt::Settings settings = idx_settings(folder.write("l", three_labels), folder.write("i", three_images));
  const std::string exchanged = message(settings);
  CHECK(contains(exchanged, {"data.images and data.labels are exchanged", "3 unsigned bytes) has one dimension",
                             "3 x 2 x 2 unsigned bytes) has 3", "exchange the two paths"}));
  CHECK(exchanged.find("model.layers") == std::string::npos);
  settings.data.labels = folder.path("l");
  CHECK(contains(message(settings), {"data.images", "one dimension, as labels have"}));

  settings = idx_settings(folder.path("i"), folder.path("l"));
  settings.data.validation_images = folder.write("vi", idx(0x08, {1, 3, 3}, std::string(9, 'x')));
  settings.data.validation_labels = folder.write("vl", idx(0x08, {1}, bytes({1})));
  const std::string other = message(settings);
  CHECK(contains(other, {"data.validation_images", "/vi (1 x 3 x 3 unsigned bytes) has images of 9 values",
                         "data.images", "/i (3 x 2 x 2 unsigned bytes) has images of 4"}));
  CHECK(other.find("model.layers") == std::string::npos);

  settings.data.images = folder.path("none");
  settings.data.labels = folder.write("l", idx(0x08, {3}, bytes({0, 5, 4})));
  settings.data.validation_labels = folder.write("vl", three_labels);
  CHECK(contains(message(settings),
                 {"data.images: " + folder.path("none") + ": no such file",
                  "label 1 (from 0) is 5 (1 more is wrong, too)", "make that entry 6",
                  "data.validation_labels: " + folder.path("vl") + " has 3 labels, but data.validation_images"}));
}

TEST_CASE("images beyond what fp16 holds are refused in fp16 alone; packed files are named") {
  const TemporaryFolder folder;
  std::string elements;
  for (const std::uint32_t value : {1U, 65504U, 65505U, 0U}) elements += big_endian(value, 4);
  zt::Settings settings =
      idx_settings(folder.write("i", idx(0x0c, {1, 4}, elements)), folder.write("l", idx(0x08, {1}, bytes({1}))));
  CHECK(message_of([&] { zt::open_dataset(settings); }).empty());
  settings.precision.preset = "fp16";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }),
                 {"image 0 (from 0) has at position 2 (from 0) 65505, beyond 65504", "scale the images", "bf16"}));
  CHECK(contains(message_for_images("BZh91AY&SY...."), {"data.images", "packed by bzip2", "only gzip"}));
}

TEST_CASE("several packed parts one after the other are one file") {
  const TemporaryFolder folder;
  const std::string halves = packed(three_images.substr(0, 9)) + packed(three_images.substr(9));
  const zt::Settings settings = idx_settings(folder.write("i", halves), folder.write("l", three_labels));
  CHECK(sample_of(*zt::open_dataset(settings).training, 0).features[1] == 1.0F);
}

TEST_CASE("an IDX file cut at any byte, or with any byte changed, is refused or read, and nothing else") {
  const TemporaryFolder folder;
  const std::string labels = folder.write("labels", three_labels);
  int refused = 0;
  const auto attempt = [&](const std::string& content) {
    const zt::Settings settings = idx_settings(folder.write("images", content), labels);
    const std::string message = message_of([&] {
      const zt::Dataset dataset = zt::open_dataset(settings);
      for (std::int64_t i = 0; i < dataset.training->samples(); ++i) sample_of(*dataset.training, i);
    });
    refused += message.empty() ? 0 : 1;
    return message;
  };
  for (const std::string& whole : {three_images, packed(three_images)}) {
    for (std::size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(attempt(whole.substr(0, length)).empty());
    CHECK(attempt(whole).empty());
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned flip : {1U, 0x80U, 0xffU}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ flip);
        attempt(changed);
      }
    }
  }
  CHECK(refused > 100);
}
