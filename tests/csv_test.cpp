// Rows of numbers from CSV files, and what is said about what is not one.
#include <cmath>
#include <set>

#include "data/csv_number.h"
#include "data/csv_reader.h"
#include "data_support.h"

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

zt::Settings csv_settings(const std::string& path, std::vector<std::int64_t> layers, const std::string& target = "y") {
  zt::Settings settings;
  settings.model.type = "mlp";
  settings.model.mlp.layers = std::move(layers);
  settings.data.type = "csv";
  settings.data.path = path;
  settings.data.target = {{.name = target}};
  settings.data.validation_fraction = 0.0;
  settings.data.normalize = false;
  settings.batch = {.train = 1, .micro = 1, .accumulation = 1};
  return settings;
}

// What is said when the table of columns a, b and y is this.
std::string message_for(const std::string& text, const std::string& loss = "mse", std::int64_t outputs = 1) {
  const TemporaryFolder folder;
  zt::Settings settings = csv_settings(folder.write("t.csv", text), {2, outputs});
  settings.model.mlp.loss = loss;
  return message_of([&] { zt::open_dataset(settings); });
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

TEST_CASE("wrong values are told with line, column and name, the first five of them, and the number of all") {
  CHECK(contains(message_for("a,b,y\n1,,3\n"),
                 {"t.csv", "1 value", "line 2, column 2 (b) is empty: a value is missing"}));
  CHECK(contains(message_for("a,b,y\n1,2,3\n4,five,6\n"), {"line 3, column 2 (b) is \"five\", not a number"}));
  CHECK(contains(message_for("a,b,y\n1,2,inf\n"), {"line 2, column 3 (y) is \"inf\", not finite"}));
  CHECK(
      contains(message_for("a,b,y\n1,\"2\nx\",3\n\"4\",NA,5\n"), {"2 values", "line 2, column 2", "line 4, column 2"}));
  std::string many = "a,b,y\n";
  for (int i = 0; i < 9; ++i) many += "1,NA,2\n";
  const std::string message = message_for(many);
  CHECK(contains(message, {"9 values", "line 2", "line 6", "and 4 more"}));
  CHECK(message.find("line 7") == std::string::npos);
}

TEST_CASE("tables that are none are told what they seem to be") {
  CHECK(contains(message_for("a,b,y\n1,2\n"),
                 {"t.csv has 1 row of another length", "header with its 3 columns", "line 2: 2 columns"}));
  CHECK(contains(message_for("a,b,y\n1,2,3\n1,5,2,3\n"), {"line 3: 4 columns", "comma within a field needs quotes"}));
  CHECK(contains(message_for("a;b;y\n1;2;3\n"), {"only one column", "separated by ;", "data.delimiter to \";\""}));
  CHECK(contains(message_for("y\n1\n"), {"only one column", "one feature and one target"}));
  CHECK(contains(message_for("a,b,y\n"), {"a header and no rows"}));
  CHECK(contains(message_for("\n\n"), {"nothing but empty lines", "name a CSV file"}));
  CHECK(contains(message_for("PK\x03\x04 xl/workbook"), {"ZIP archive", "save it as CSV"}));
  CHECK(contains(message_for("\xff\xfe"
                             "a"),
                 {"UTF-16"}));
  CHECK(contains(message_for("1.5,2,3\n1,2,3\n"), {"t.csv:1", "only numbers", "data.header to false"}));
  CHECK(contains(message_for("a,b,yy\n1,2,3\n"), {"data.target", "\"y\"", "line 1", "did you mean \"yy\"?"}));
  CHECK(contains(message_for("first,second,third\n1,2,3\n"), {"\"y\"", "it has first, second, third"}));
  CHECK(contains(message_for("y,b,y\n1,2,3\n"), {"more than once", "number"}));
  CHECK(contains(message_for("a,y\n1,2\n"),
                 {"model.layers", "first entry is 2", "1 feature column (2 columns less 1", "set it to 1"}));
}

TEST_CASE("rows of other lengths, wrong values and wrong classes are told together") {
  std::string table = "a,b,y\n1,2,0\n1,2\nx,2,1\n1,2,7\n1,2,4\n";
  for (int i = 0; i < 7; ++i) table += "1\n";
  const std::string message = message_for(table, "cross_entropy", 3);
  CHECK(contains(message,
                 {"8 rows of another length", "line 3: 2 columns", "line 7: 1 column", "and 3 more",
                  "1 value that cannot be trained on", "line 4, column 1 (a) is \"x\"", "2 values that are no classes",
                  "line 5, column 3 (y) is 7", "line 6, column 3 (y) is 4", "make the last entry of model.layers 8"}));
  CHECK(contains(message_for("a,b,y\n1,2,0.5\n", "cross_entropy", 3), {"set model.loss to \"mse\""}));
  const std::string negative = message_for("a,b,y\n1,2,-1\n", "cross_entropy", 3);
  CHECK(contains(negative, {"number the classes from 0 on"}));
  CHECK(negative.find("make the last entry") == std::string::npos);
  CHECK(message_for("a,b,y\n1,2,250000\n", "cross_entropy", 3).find("make the last entry") == std::string::npos);
}

TEST_CASE("bars and blanks between columns are named, and so are packed and binary files") {
  CHECK(contains(message_for("a|b|y\n1|2|3\n"), {"only one column", "separated by |", "data.delimiter"}));
  CHECK(contains(message_for("a b y\n1 2 3\n"), {"only one column", "separated by blanks", "data.delimiter"}));
  CHECK(contains(message_for("a\tb\ty\n1\t2\t3\n"), {"separated by tabs", R"(data.delimiter to "\t")"}));
  CHECK(contains(message_for(std::string("\x28\xb5\x2f\xfd\x24\x00\x01", 7)), {"packed by zstd", "only gzip"}));
  CHECK(contains(message_for(std::string(5000, '\0')), {"looks like a binary file"}));
}

TEST_CASE("control characters and bytes that are no UTF-8 are shown as escapes") {
  const std::string message = message_for("a\x1b[31m\x01,b\xff,z\n1,2,3\n");
  CHECK(contains(message, {R"(it has a\x1b[31m\x01, b\xff, z)"}));
  CHECK(contains(message_for(std::string("a,b,y\n1,2\0,3\n", 13)), {R"("2\x00", not a number)"}));
  CHECK(contains(message_for("\"a\nb\",b,y\nx,2,3\n"), {R"(column 1 (a\nb) is "x")"}));
  CHECK(contains(message_for(std::string(500, 'n') + ",b,y\nx,2,3\n"), {"(" + std::string(40, 'n') + "...)"}));
  const TemporaryFolder folder;
  zt::Settings settings = csv_settings(folder.path("C:\new\table.csv"), {2, 1});
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }),
                 {R"(C:\new\table.csv: no such file)", R"(in JSON a backslash is written \\)"}));
  settings.data.path = folder.write("t.csv", "a,b,y\n1,2,3\n") + std::string("\0.csv", 5);
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {R"(t.csv\x00.csv)", "character 0"}));
}

TEST_CASE("in fp16, what is beyond its range is told with line and column before the first step") {
  const TemporaryFolder folder;
  zt::Settings settings = csv_settings(folder.path("t.csv"), {2, 1});
  const auto message = [&](const std::string& table) {
    folder.write("t.csv", table);
    return message_of([&] { zt::open_dataset(settings); });
  };
  const std::string features = "a,\"b\n\",y\n1,2,3\n4,65505,6\n-1e9,3,7\n";
  for (const char* preset : {"fp32", "bf16"}) {
    settings.precision.preset = preset;
    CHECK(message(features).empty());
  }
  settings.precision.preset = "fp16";
  CHECK(contains(message(features),
                 {"2 values beyond 65504, the largest that fp16 holds", "data.normalize to true", "bf16.enabled",
                  "line 4, column 2 (b\\n) is 65505", "line 5, column 1 (a) is -1e+09"}));
  CHECK(message("a,b,y\n1,65504,-65504\n").empty());
  settings.data.normalize = true;
  CHECK(message(features).empty());
  const std::string targets = message("a,b,y\n1,2,70000\n4,5,6\n");
  CHECK(contains(targets, {"1 value beyond", "line 2, column 3 (y) is 70000", "a larger unit"}));
  CHECK(targets.find("data.normalize") == std::string::npos);
  // Classes are no numbers of the model; deviations of rows for validation may be.
  settings.model.mlp.layers = {2, 70001};
  settings.model.mlp.loss = "cross_entropy";
  CHECK(message("a,b,y\n1,2,70000\n4,5,6\n").empty());
  settings.model.mlp.layers = {2, 1};
  settings.model.mlp.loss = "mse";
  settings.data.validation_fraction = 0.5;
  settings.data.path = folder.path("v.csv");
  bool found = false;
  for (int i = 0; i < 4 && !found; ++i) {  // one of the four rows, whichever the seed takes, is for validation
    std::string table = "a,b,y\n";
    for (int row = 0; row < 4; ++row)
      table += std::to_string(row) + (row == i ? ",1e9,0\n" : ",0." + std::to_string(row) + ",0\n");
    folder.write("v.csv", table);
    found = contains(message_of([&] { zt::open_dataset(settings); }),
                     {"line " + std::to_string(i + 2) + ", column 2 (b) is ", "once normalized"});
  }
  CHECK(found);
}

TEST_CASE("wrong settings of a table name both sides") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", "a,b,y\n1,2,3\n4,5,6\n");
  const auto message = [&](const auto& change) {
    zt::Settings settings = csv_settings(path, {2, 1});
    change(settings);
    return message_of([&] { zt::open_dataset(settings); });
  };
  CHECK(message([](zt::Settings&) {}).empty());
  CHECK(contains(message([](zt::Settings& s) { s.data.target = {{.number = 4}}; }), {"column 4", "3 columns"}));
  CHECK(contains(message([](zt::Settings& s) { s.data.target.push_back({.number = 3}); }), {"column 3 (y)", "twice"}));
  CHECK(contains(message([](zt::Settings& s) {
                   s.data.target = {{.name = "a"}, {.name = "b"}, {.name = "y"}};
                 }),
                 {"every column"}));
  CHECK(contains(message([](zt::Settings& s) { s.data.header = false; }), {"is a name", "data.header is false"}));
  CHECK(contains(message([](zt::Settings& s) {
                   s.data.header = false;
                   s.data.target = {{.number = 3}};
                 }),
                 {"line 1, column 1 is \"a\"", "is this line a header?"}));
  CHECK(contains(message([](zt::Settings& s) { s.model.mlp.layers = {2, 3}; }), {"last entry is 3", "1 column;"}));
  CHECK(contains(message([](zt::Settings& s) { s.data.validation_fraction = 0.1; }),
                 {"2 rows", "none for validation", "a larger validation_fraction"}));
  CHECK(contains(message([](zt::Settings& s) { s.batch.train = 3; }),
                 {"train_batch_size: 3", "only 2 rows", "to 2 or less"}));
  CHECK(contains(message([](zt::Settings& s) { s.model.type = "gpt"; }), {"data.type", "mlp", "gpt"}));
  CHECK(contains(message([&](zt::Settings& s) { s.data.path = folder.path("none"); }), {"data.path", "no such file"}));
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
