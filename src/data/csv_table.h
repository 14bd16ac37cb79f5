// A CSV file of numbers as a table, with its target columns found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"

namespace zt {

struct CsvTable {
  std::size_t columns = 0;
  std::vector<std::string> names;  // as the header has them; empty: there is none
  std::int64_t rows = 0;
  std::vector<double> values;                  // [rows, columns]; finite, within what fp32 holds
  std::vector<std::size_t> features, targets;  // columns from 0; features in the file's order, targets in the config's

  double value(std::int64_t row, std::size_t column) const {
    return values[static_cast<std::size_t>(row) * columns + column];
  }
  std::string column_name(std::size_t column) const;  // for messages: "column 3 (age)"
};

// Reads data.path with data.delimiter, data.header and data.target. With `classes` the target is one column of integers
// 0 ... classes - 1. Throws UserError with file, line and column: no such column, rows of other lengths, values that
// are missing, no numbers, infinite or no class; of these the first few and how many there are.
CsvTable read_csv_table(const DataSettings& data, std::optional<std::int64_t> classes);

// The lines (from 1) of the file that read_csv_table has read on which these rows start: rows from 0, ascending. Reads
// the file once more, so that only who has something to say of a row pays for its line.
std::vector<std::int64_t> lines_of_rows(const DataSettings& data, const std::vector<std::int64_t>& rows);

}  // namespace zt
