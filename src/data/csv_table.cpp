#include "data/csv_table.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/spelling.h"
#include "data/csv_number.h"
#include "data/csv_reader.h"
#include "data/input_file.h"
#include "data/open.h"

namespace zt {
namespace {

// Wrong values of a table: the first few in words, the rest counted.
class Faults {
 public:
  void add(const std::string& text) {
    if (++count_ <= most_shown) text_ += (text_.empty() ? "" : "\n  ") + text;
  }
  void throw_if_any(const std::string& origin) const {
    if (count_ == 0) return;
    const bool one = count_ == 1;
    throw UserError(
        join(origin, " has ", count_, one ? " value" : " values",
             " that cannot be trained on: fill in, drop or repair these rows, or write the words of a column "
             "as numbers:\n  ",
             text_, count_ > most_shown ? join("\n  and ", count_ - most_shown, " more") : ""));
  }

 private:
  static constexpr std::int64_t most_shown = 5;
  std::int64_t count_ = 0;
  std::string text_;
};

class TableReader {
 public:
  TableReader(const DataSettings& data, std::optional<std::int64_t> classes)
      : data_(data),
        classes_(classes),
        origin_("data.path: " + data.path),
        file_(data.path, "data.path", "a CSV file"),
        reader_(checked(file_.bytes()), data.delimiter.front(), origin_) {}

  CsvTable read() {
    if (!reader_.next()) throw UserError(origin_ + " has no lines with something on them");
    table_.columns = reader_.columns();
    if (data_.header) {
      for (std::size_t c = 0; c < table_.columns; ++c) names_.push_back(reader_.field(c));
      header_line_ = reader_.line(0);
      check_header();
    }
    if (table_.columns == 1) fail_single_column();
    find_targets();
    if (!data_.header) add_row();
    while (reader_.next()) add_row();
    faults_.throw_if_any(origin_);
    if (table_.rows == 0) throw UserError(origin_ + " has a header and no rows below it");
    return std::move(table_);
  }

 private:
  // What other programs write when they are asked for a table.
  std::string_view checked(std::string_view bytes) const {
    if (bytes.starts_with("PK\x03\x04")) {
      throw UserError(origin_ + " is a ZIP archive, perhaps a workbook; save it as CSV (UTF-8)");
    }
    if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) {
      throw UserError(origin_ + " is text in UTF-16; save it as CSV in UTF-8");
    }
    return bytes;
  }

  // A line of numbers is hardly a header, but for 0, 1, 2 ... or 1, 2, 3 ..., which name columns that have no names.
  void check_header() const {
    std::vector<double> numbers;
    for (const std::string& name : names_) {
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
        hint = join("; they seem to be separated by ", written, ": set data.delimiter to \"", written, "\"");
        break;
      }
    }
    throw UserError(join(origin_, ":", reader_.line(0), ": only one column is found", hint));
  }

  // "column 3 (age)"
  std::string column_name(std::size_t column) const {
    return join("column ", column + 1, names_.empty() ? std::string() : join(" (", names_[column], ")"));
  }

  void find_targets() {
    for (const ColumnName& target : data_.target) {
      const std::size_t column = target.number > 0 ? by_number(target.number) : by_name(target.name);
      if (std::ranges::find(table_.targets, column) != table_.targets.end()) {
        throw UserError("data.target names " + column_name(column) + " of " + data_.path + " twice: remove one");
      }
      table_.targets.push_back(column);
    }
    if (classes_ && table_.targets.size() != 1) {
      throw UserError(join("data.target names ", table_.targets.size(),
                           " columns; with model.loss \"cross_entropy\" it is one column of classes"));
    }
    for (std::size_t c = 0; c < table_.columns; ++c) {
      if (std::ranges::find(table_.targets, c) == table_.targets.end()) table_.features.push_back(c);
    }
    if (table_.features.empty()) {
      throw UserError("data.target names every column of " + data_.path + ": none is left as a feature");
    }
  }

  std::size_t by_number(std::int64_t number) const {
    if (number > static_cast<std::int64_t>(table_.columns)) {
      throw UserError(join("data.target: column ", number, " of ", data_.path, ", which has ", table_.columns,
                           " columns (the first is 1)"));
    }
    return static_cast<std::size_t>(number - 1);
  }

  std::size_t by_name(const std::string& name) const {
    if (!data_.header) {
      throw UserError("data.target: \"" + name +
                      "\" is a name, but data.header is false: give the column's number (the "
                      "first is 1), without quotes");
    }
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      const std::string near = nearest_word(name, names_);
      std::string known;
      constexpr std::size_t most = 12;
      for (std::size_t c = 0; c < names_.size() && c < most; ++c) known += (c > 0 ? ", " : "") + names_[c];
      if (names_.size() > most) known += join(" and ", names_.size() - most, " more");
      throw UserError(join("data.target: \"", name, "\" is not in the header of ", data_.path, " (line ", header_line_,
                           "); ", near.empty() ? "it has " + known : "did you mean \"" + near + "\"?"));
    }
    if (std::ranges::count(names_, name) > 1) {
      throw UserError("data.target: the header of " + data_.path + " has \"" + name +
                      "\" more than once: give the column's number (the first is 1), without quotes");
    }
    return static_cast<std::size_t>(found - names_.begin());
  }

  void add_row() {
    if (reader_.columns() != table_.columns) {
      throw UserError(join(origin_, ":", reader_.line(0), ": this row has ", reader_.columns(), " columns, ",
                           data_.header ? "the header " : "the first row ", table_.columns,
                           reader_.columns() > table_.columns && data_.delimiter == ","
                               ? "; a comma within a field needs quotes around it"
                               : "; every row needs as many"));
    }
    for (std::size_t c = 0; c < table_.columns; ++c) {
      CsvNumber number = read_csv_number(reader_.field(c));
      if (number.fault.empty() && classes_ && c == table_.targets.front()) number.fault = class_fault(number.value);
      if (!number.fault.empty()) {
        std::string hint;
        if (table_.rows == 0 && !data_.header && c == 0)
          hint = " (is this line a header? then set data.header to true)";
        faults_.add(join("line ", reader_.line(c), ", ", column_name(c), " is ", number.fault, hint));
      }
      table_.values.push_back(number.value);
    }
    ++table_.rows;
  }

  std::string class_fault(double value) const {
    if (value >= 0.0 && value < static_cast<double>(*classes_) && value == std::floor(value)) return {};
    return join(value, ", but classes are integers from 0 to ", *classes_ - 1, " (the last entry of model.layers is ",
                *classes_, ")");
  }

  const DataSettings& data_;
  std::optional<std::int64_t> classes_;
  std::string origin_;
  InputFile file_;
  CsvReader reader_;
  std::vector<std::string> names_;
  std::int64_t header_line_ = 0;
  CsvTable table_;
  Faults faults_;
};

}  // namespace

CsvTable read_csv_table(const DataSettings& data, std::optional<std::int64_t> classes) {
  return TableReader(data, classes).read();
}

}  // namespace zt
