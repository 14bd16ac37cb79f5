// Rows of numbers from CSV files.
#include <cmath>
#include <set>

#include "csv_support.h"
#include "data/csv_number.h"
#include "data/csv_reader.h"

using namespace zt::testing;

namespace {

using Records = std::vector<std::vector<std::string>>;

Records records_of(const std::string& text, char delimiter = ',') {
  zt::CsvReader reader(text, delimiter, "t.csv");
  Records records;
  while (reader.next()) {
    std::vector<std::string>& record = records.emplace_back();
    for (std::size_t c = 0; c < reader.columns(); ++c) record.push_back(reader.field(c));
  }
  return records;
}

}  // namespace

TEST_CASE("records are read as RFC 4180 has them") {
  CHECK(records_of("a,b\n1,2\n") == Records{{"a", "b"}, {"1", "2"}});
  CHECK(records_of("a,b\r\n1,2") == Records{{"a", "b"}, {"1", "2"}});
  CHECK(records_of("a,b\r1,2\r") == Records{{"a", "b"}, {"1", "2"}});
  CHECK(records_of("\"a,\"\"x\"\"\",b\n\"two\r\nlines\",\n") == Records{{"a,\"x\"", "b"}, {"two\r\nlines", ""}});
  CHECK(records_of("\xef\xbb\xbf"
                   "a\n\n\r\n1\n") == Records{{"a"}, {"1"}});
  CHECK(records_of("1;2\n", ';') == Records{{"1", "2"}});
  CHECK(records_of(",,\n\"\"\n") == Records{{"", "", ""}, {""}});
  CHECK(records_of("").empty());
}

TEST_CASE("quotes that are wrong are told with the line") {
  CHECK(contains(message_of([] { records_of("a,b\n1,\"2\n3\n"); }), {"t.csv:2", "opens column 2", "never closed"}));
  CHECK(contains(message_of([] { records_of("a\n\n5\"x\n"); }), {"t.csv:3", "column 1", "quote inside a field"}));
  CHECK(contains(message_of([] { records_of("\"a\nb\"c\n"); }), {"t.csv:2", "after its closing quote"}));
}

TEST_CASE("lines are counted through quoted line breaks") {
  zt::CsvReader reader("\"a\nb\",c\n\n1,2\n", ',', "t.csv");
  REQUIRE(reader.next());
  CHECK(reader.line(0) == 1);
  CHECK(reader.line(1) == 2);
  REQUIRE(reader.next());
  CHECK(reader.line(0) == 4);
}

TEST_CASE("numbers are read exactly, and what is none is named") {
  CHECK(zt::read_csv_number("0.1").value == 0.1);
  CHECK(zt::read_csv_number(" -1.5e-3\t").value == -1.5e-3);
  CHECK(zt::read_csv_number("+7").value == 7.0);
  CHECK(zt::read_csv_number(".5").value == 0.5);
  CHECK(zt::read_csv_number("1e-400").value == 0.0);
  CHECK(zt::read_csv_number("1e-400").fault.empty());
  for (const std::string missing : {"", "  ", "NA", "n/a", "NaN", "null", "None", "?"}) {
    CHECK(contains(zt::read_csv_number(missing).fault, {"missing"}));
  }
  for (const std::string wrong : {"red", "1 2", "0x10", "--1", "+-1", "1e", "1.2.3", "12a", "+"}) {
    CHECK(contains(zt::read_csv_number(wrong).fault, {"\"" + wrong + "\"", "not a number"}));
  }
  CHECK(contains(zt::read_csv_number("1,5").fault, {"not a number", "1.5"}));
  CHECK(contains(zt::read_csv_number("inf").fault, {"not finite"}));
  CHECK(contains(zt::read_csv_number("-Infinity").fault, {"not finite"}));
  CHECK(contains(zt::read_csv_number("1e39").fault, {"fp32"}));
  CHECK(contains(zt::read_csv_number("-1e400").fault, {"fp32"}));
}

TEST_CASE("targets are found by name or number, all other columns are features") {
  const TemporaryFolder folder;
  zt::Settings settings = csv_settings(folder.write("t.csv", "a,y,b,z\n1,2,3,4\n5,6,7,8\n"), {2, 2});
  settings.data.target = {{.name = "z"}, {.name = "y"}};
  zt::Dataset dataset = zt::open_dataset(settings);
  CHECK(dataset.training->shape() == zt::SampleShape{.features = 2, .value_targets = 2});
  CHECK(dataset.training->samples() == 2);
  CHECK(sample_of(*dataset.training, 0).features == std::vector<float>{1.0F, 3.0F});
  CHECK(sample_of(*dataset.training, 1).value_targets == std::vector<float>{8.0F, 6.0F});
  CHECK(dataset.validation == nullptr);
  CHECK(dataset.bytes == 2 * 4 * 4);

  settings.data.target = {{.number = 4}, {.number = 2}};
  CHECK(sample_of(*zt::open_dataset(settings).training, 1).value_targets == std::vector<float>{8.0F, 6.0F});

  settings = csv_settings(folder.write("bare.csv", packed("1\t2\t3\n4\t5\t6\n")), {2, 1});
  settings.data.header = false;
  settings.data.delimiter = "\t";
  settings.data.target = {{.number = 3}};
  dataset = zt::open_dataset(settings);
  CHECK(dataset.training->samples() == 2);
  CHECK(sample_of(*dataset.training, 0).features == std::vector<float>{1.0F, 2.0F});
  CHECK(sample_of(*dataset.training, 0).value_targets == std::vector<float>{3.0F});
}

TEST_CASE("with cross entropy the target is a class") {
  const TemporaryFolder folder;
  zt::Settings settings = csv_settings(folder.write("t.csv", "a,y\n0.5,2\n1.5,0\n2.5,1.0\n"), {1, 3});
  settings.model.mlp.loss = "cross_entropy";
  const zt::Dataset dataset = zt::open_dataset(settings);
  CHECK(dataset.training->shape() == zt::SampleShape{.token_targets = 1, .features = 1});
  CHECK(sample_of(*dataset.training, 0).token_targets == std::vector<std::int32_t>{2});
  CHECK(sample_of(*dataset.training, 2).token_targets == std::vector<std::int32_t>{1});
  CHECK(contains(message_for("a,b,y\n1,2,3\n", "cross_entropy", 3),
                 {"1 value that is no class", "line 2, column 3 (y) is 3", "integers from 0 to 2", "model.layers is 3",
                  "last entry of model.layers 4"}));
  CHECK(contains(message_for("a,b,y\n1,2,0.5\n", "cross_entropy", 3), {"is 0.5", "classes are integers"}));
  CHECK(contains(message_for("a,b,y\n1,2,-1\n", "cross_entropy", 3), {"is -1"}));
  CHECK(contains(message_for("a,b,y\n1,2,red\n", "cross_entropy", 3), {"column 3 (y)", "not a number"}));
}

TEST_CASE("features are normalized by the training rows alone, targets not at all") {
  const TemporaryFolder folder;
  std::string text = "a,b,c,y\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(1000 + i * i) + ",0.1," + (i == 7 ? "5" : std::to_string(-0.001 * i)) + "," +
            std::to_string(i) + "\n";
  }
  zt::Settings settings = csv_settings(folder.write("t.csv", text), {3, 1});
  settings.data.normalize = true;
  settings.data.validation_fraction = 0.25;
  const zt::Dataset dataset = zt::open_dataset(settings);
  REQUIRE(dataset.training->samples() == 30);
  REQUIRE(dataset.validation->samples() == 10);
  settings.data.normalize = false;
  const zt::Dataset raw = zt::open_dataset(settings);
  for (const std::size_t column : {0UL, 2UL}) {
    double sum = 0.0, squares = 0.0, raw_sum = 0.0, raw_squares = 0.0;
    for (std::int64_t i = 0; i < 30; ++i) {
      const double value = static_cast<double>(sample_of(*dataset.training, i).features[column]);
      const double raw_value = static_cast<double>(sample_of(*raw.training, i).features[column]);
      sum += value, squares += value * value, raw_sum += raw_value, raw_squares += raw_value * raw_value;
    }
    CHECK(std::abs(sum / 30.0) < 1e-6);
    CHECK(squares / 30.0 == Approx(1.0).epsilon(1e-6));
    // Validation rows are moved by the same two numbers.
    const double mean = raw_sum / 30.0;
    const double deviation = std::sqrt(raw_squares / 30.0 - mean * mean);
    for (std::int64_t i = 0; i < 10; ++i) {
      const double raw_value = static_cast<double>(sample_of(*raw.validation, i).features[column]);
      const double value = static_cast<double>(sample_of(*dataset.validation, i).features[column]);
      CHECK(value == Approx((raw_value - mean) / deviation).epsilon(1e-3).margin(1e-3));
    }
  }
  for (std::int64_t i = 0; i < 30; ++i) {
    CHECK(sample_of(*dataset.training, i).features[1] == 0.0F);  // constant
    CHECK(sample_of(*dataset.training, i).value_targets == sample_of(*raw.training, i).value_targets);
  }
}

TEST_CASE("validation rows are spread over the file by split_seed, whatever the training seed") {
  const TemporaryFolder folder;
  std::string text = "a,y\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + ",0\n";
  zt::Settings settings = csv_settings(folder.write("t.csv", text), {1, 1});
  settings.data.validation_fraction = 0.1;
  const auto validation_rows = [&] {
    const zt::Dataset dataset = zt::open_dataset(settings);
    std::vector<int> rows;
    std::set<int> all;
    for (std::int64_t i = 0; i < dataset.validation->samples(); ++i) {
      rows.push_back(static_cast<int>(sample_of(*dataset.validation, i).features[0]));
    }
    all.insert(rows.begin(), rows.end());
    for (std::int64_t i = 0; i < dataset.training->samples(); ++i) {
      all.insert(static_cast<int>(sample_of(*dataset.training, i).features[0]));
    }
    CHECK(all.size() == 1000);  // each row in one part, in its order
    CHECK(std::ranges::is_sorted(rows));
    return rows;
  };
  const std::vector<int> rows = validation_rows();
  REQUIRE(rows.size() == 100);
  int in_first_half = 0;
  for (const int row : rows) in_first_half += row < 500 ? 1 : 0;
  CHECK((in_first_half > 30 && in_first_half < 70));
  settings.training.seed = 99;
  CHECK(validation_rows() == rows);
  settings.data.split_seed = 1;
  CHECK(validation_rows() != rows);
}

TEST_CASE("a table cut at any byte, or with any byte changed, is refused or read, and nothing else") {
  const TemporaryFolder folder;
  const std::string table = "a,\"b\"\"\r\n\",y\r\n1,\"2.5\",3\r\n-4e1, 5 ,+6\n\n7,8,9";
  int refused = 0, accepted = 0;
  const auto attempt = [&](const std::string& content) {
    const zt::Settings settings = csv_settings(folder.write("t.csv", content), {2, 1});
    const bool is_refused = !message_of([&] {
                               const zt::Dataset dataset = zt::open_dataset(settings);
                               sample_of(*dataset.training, dataset.training->samples() - 1);
                             }).empty();
    ++(is_refused ? refused : accepted);
  };
  for (const std::string& whole : {table, packed(table)}) {
    for (std::size_t length = 0; length <= whole.size(); ++length) attempt(whole.substr(0, length));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char byte : {'\0', '"', ',', '\n', '\r', '\xff'}) {
        std::string changed = whole;
        changed[at] = byte;
        attempt(changed);
      }
    }
  }
  CHECK(refused > 100);
  CHECK(accepted > 10);
}
