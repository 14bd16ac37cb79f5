// What is said about CSV files that are not what they should be.
#include "csv_support.h"

using namespace zt::testing;

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
