#include "data/csv_table.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/spelling.h"
#include "data/csv_number.h"
#include "data/csv_reader.h"
#include "data/faults.h"
#include "data/file_kind.h"
#include "data/input_file.h"
#include "data/open.h"

namespace zt {
namespace {

// Classes that are none, all of them.
struct WrongClasses {
  Faults faults;
  double largest = 0.0;
  bool fractions = false, negatives = false;
};

class TableReader {
 public:
  TableReader(const DataSettings& data, std::optional<std::int64_t> classes)
      : data_(data),
        classes_(classes),
        origin_(origin_of("data.path", data.path)),
        file_(data.path, "data.path", "a CSV file"),
        reader_(checked(file_.bytes()), data.delimiter.front(), origin_) {}

  CsvTable read() {
    if (!reader_.next()) throw UserError(origin_ + " has nothing but empty lines; name a CSV file with rows on them");
    table_.columns = reader_.columns();
    if (data_.header) {
      for (std::size_t c = 0; c < table_.columns; ++c) table_.names.push_back(reader_.field(c));
      header_line_ = reader_.line(0);
      check_header();
    }
    if (table_.columns == 1) fail_single_column();
    find_targets();
    if (!data_.header) add_row();
    while (reader_.next()) add_row();
    throw_if_faulty();
    if (table_.rows == 0) throw UserError(origin_ + " has a header and no rows below it; name a file with rows");
    return std::move(table_);
  }

 private:
  // What other programs write when they are asked for a table.
  std::string_view checked(std::string_view bytes) const {
    if (bytes.starts_with("PK\x03\x04")) {
      throw UserError(origin_ + " is a ZIP archive, perhaps a workbook; save it as CSV (UTF-8)");
    }
    require_text(bytes, origin_, "name a CSV file");
    return bytes;
  }

  // A line of numbers is hardly a header, but for 0, 1, 2 ... or 1, 2, 3 ..., which name columns that have no names.
  void check_header() const {
    std::vector<double> numbers;
    for (const std::string& name : table_.names) {
      const CsvNumber number = read_csv_number(name);
      if (!number.fault.empty()) return;
      numbers.push_back(number.value);
    }
    const auto counts_from = [&](double first) {
      return std::ranges::all_of(numbers, [&](double number) { return number == first++; });
    };
    if (counts_from(0.0) || counts_from(1.0)) return;
    throw UserError(join(origin_, ":", header_line_,
                         ": the first line should be a header, but holds only numbers; if it "
                         "is a row, set data.header to false and give data.target as a column number"));
  }

  void fail_single_column() const {
    const std::string& line = reader_.field(0);
    std::string hint = "; a table needs at least one feature and one target";
    for (const auto& [delimiter, written] : {std::pair{';', ";"}, {'\t', "\\t"}, {',', ","}}) {
      if (line.find(delimiter) != std::string::npos) {
        hint = join("; they seem to be separated by ", delimiter == '\t' ? "tabs" : written,
                    ": set data.delimiter to \"", written, "\"");
        break;
      }
    }
    for (const auto& [delimiter, name] : {std::pair{'|', "|"}, {' ', "blanks"}}) {
      if (line.find(delimiter) != std::string::npos && hint.starts_with("; a table")) {
        hint = join("; if they are separated by ", name, ", write ", R"(",", ";" or a tab between them)",
                    " (data.delimiter)");
      }
    }
    throw UserError(join(origin_, ":", reader_.line(0), ": only one column is found", hint));
  }

  void find_targets() {
    for (const ColumnName& target : data_.target) {
      const std::size_t column = target.number > 0 ? by_number(target.number) : by_name(target.name);
      if (std::ranges::find(table_.targets, column) != table_.targets.end()) {
        throw UserError("data.target names " + table_.column_name(column) + " of " + shown_path(data_.path) +
                        " twice: remove one");
      }
      table_.targets.push_back(column);
    }
    if (classes_ && table_.targets.size() != 1) {
      throw UserError(join("data.target names ", counted_columns(table_.targets.size()),
                           "; with model.loss \"cross_entropy\" it is one column of classes"));
    }
    for (std::size_t c = 0; c < table_.columns; ++c) {
      if (std::ranges::find(table_.targets, c) == table_.targets.end()) table_.features.push_back(c);
    }
    if (table_.features.empty()) {
      throw UserError("data.target names every column of " + shown_path(data_.path) + ": none is left as a feature");
    }
  }

  std::size_t by_number(std::int64_t number) const {
    if (number > static_cast<std::int64_t>(table_.columns)) {
      throw UserError(join("data.target: column ", number, " of ", shown_path(data_.path), ", which has ",
                           counted_columns(table_.columns), " (the first is 1)"));
    }
    return static_cast<std::size_t>(number - 1);
  }

  std::size_t by_name(const std::string& name) const {
    if (!data_.header) {
      throw UserError("data.target: \"" + shown(name) +
                      "\" is a name, but data.header is false: give the column's number (the "
                      "first is 1), without quotes");
    }
    const auto found = std::ranges::find(table_.names, name);
    if (found == table_.names.end()) {
      const std::string near = nearest_word(name, table_.names);
      std::string known;
      constexpr std::size_t most = 12;
      for (std::size_t c = 0; c < table_.names.size() && c < most; ++c)
        known += (c > 0 ? ", " : "") + shown(table_.names[c], 40);
      if (table_.names.size() > most) known += join(" and ", table_.names.size() - most, " more");
      throw UserError(join("data.target: \"", shown(name), "\" is not in the header of ", shown_path(data_.path),
                           " (line ", header_line_, "); ",
                           near.empty() ? "it has " + known : "did you mean \"" + shown(near) + "\"?"));
    }
    if (std::ranges::count(table_.names, name) > 1) {
      throw UserError("data.target: the header of " + shown_path(data_.path) + " has \"" + shown(name) +
                      "\" more than once: give the column's number (the first is 1), without quotes");
    }
    return static_cast<std::size_t>(found - table_.names.begin());
  }

  void add_row() {
    if (reader_.columns() != table_.columns) {
      lengths_.add(join("line ", reader_.line(0), ": ", counted_columns(reader_.columns())));
      longer_ = longer_ || reader_.columns() > table_.columns;
      return;
    }
    for (std::size_t c = 0; c < table_.columns; ++c) {
      CsvNumber number = read_csv_number(reader_.field(c));
      if (number.fault.empty() && classes_ && c == table_.targets.front()) check_class(number.value, c);
      if (!number.fault.empty()) {
        std::string hint;
        if (table_.rows == 0 && !data_.header && c == 0)
          hint = " (is this line a header? then set data.header to true)";
        values_.add(join("line ", reader_.line(c), ", ", table_.column_name(c), " is ", number.fault, hint));
      }
      table_.values.push_back(number.value);
    }
    ++table_.rows;
  }

  void check_class(double value, std::size_t column) {
    const bool whole = value == std::floor(value);
    if (whole) wrong_classes_.largest = std::max(wrong_classes_.largest, value);
    if (whole && value >= 0.0 && value < static_cast<double>(*classes_)) return;
    wrong_classes_.fractions = wrong_classes_.fractions || !whole;
    wrong_classes_.negatives = wrong_classes_.negatives || value < 0.0;
    wrong_classes_.faults.add(
        join("line ", reader_.line(column), ", ", table_.column_name(column), " is ", shown(value)));
  }

  std::string class_advice() const {
    constexpr double most = 100'000.0;  // more of them are hardly classes
    const char* const numbers = R"(if the column holds amounts, not classes, set model.loss to "mse")";
    if (wrong_classes_.fractions || wrong_classes_.largest >= most) return numbers;
    const std::string count = shown(wrong_classes_.largest + 1.0);
    if (wrong_classes_.negatives) return join("number the classes from 0 on; ", numbers);
    return join("make the last entry of model.layers ", count, ", or number the classes from 0 on without gaps; ",
                numbers);
  }

  void throw_if_faulty() const {
    std::string message;
    const auto add = [&](const Faults& faults, const std::string& what) {
      if (faults.count() > 0) message += (message.empty() ? "" : "\n") + origin_ + " has " + what + faults.list();
    };
    add(lengths_, join(counted(lengths_.count(), "row"), " of another length than the ",
                       data_.header ? "header" : "first row", " with its ", counted_columns(table_.columns),
                       longer_ && data_.delimiter == "," ? "; a comma within a field needs quotes around it:"
                                                         : "; every row needs as many:"));
    add(values_,
        join(counted(values_.count(), "value"),
             " that cannot be trained on: fill in, drop or repair these rows, or write the words of a column as "
             "numbers:"));
    const Faults& classes = wrong_classes_.faults;
    if (classes_) {
      add(classes,
          join(counted(classes.count(), "value"), classes.count() == 1 ? " that is no class" : " that are no classes",
               ": classes are integers from 0 to ", *classes_ - 1, ", as the last entry of model.layers is ", *classes_,
               "; ", class_advice(), ":"));
    }
    if (!message.empty()) throw UserError(message);
  }

  static std::string counted_columns(std::size_t count) { return counted(static_cast<std::int64_t>(count), "column"); }

  const DataSettings& data_;
  std::optional<std::int64_t> classes_;
  std::string origin_;
  InputFile file_;
  CsvReader reader_;
  std::int64_t header_line_ = 0;
  CsvTable table_;
  Faults lengths_, values_;
  bool longer_ = false;  // a row has more columns than the header
  WrongClasses wrong_classes_;
};

}  // namespace

std::string CsvTable::column_name(std::size_t column) const {
  return join("column ", column + 1, names.empty() ? std::string() : join(" (", shown(names[column], 40), ")"));
}

CsvTable read_csv_table(const DataSettings& data, std::optional<std::int64_t> classes) {
  return TableReader(data, classes).read();
}

std::vector<std::int64_t> lines_of_rows(const DataSettings& data, const std::vector<std::int64_t>& rows) {
  const InputFile file(data.path, "data.path", "a CSV file");
  CsvReader reader(file.bytes(), data.delimiter.front(), origin_of("data.path", data.path));
  if (data.header) reader.next();
  std::vector<std::int64_t> lines;
  std::int64_t read = 0;
  for (const std::int64_t row : rows) {
    for (; read <= row; ++read) reader.next();
    lines.push_back(reader.line(0));
  }
  return lines;
}

}  // namespace zt
