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
  std::int64_t rows = 0;
  std::vector<double> values;                  // [rows, columns]; finite, within what fp32 holds
  std::vector<std::size_t> features, targets;  // columns from 0; features in the file's order, targets in the config's

  double value(std::int64_t row, std::size_t column) const {
    return values[static_cast<std::size_t>(row) * columns + column];
  }
};

// Reads data.path with data.delimiter, data.header and data.target. With `classes` the target is one column of integers
// 0 ... classes - 1. Throws UserError with file, line and column: no such column, rows of other lengths, values that
// are missing, no numbers, infinite or no class; of these the first few and how many there are.
CsvTable read_csv_table(const DataSettings& data, std::optional<std::int64_t> classes);

}  // namespace zt
