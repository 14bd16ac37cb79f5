// A field of a table as a number.
#pragma once

#include <string>
#include <string_view>

namespace zt {

struct CsvNumber {
  double value = 0.0;  // finite, and within what fp32 holds
  std::string fault;   // empty, or what is wrong with the field, in words that follow "is"
};

// Blanks around the number do not matter. A missing value (nothing, NA, N/A, null, None, NaN, ?) is a fault of its own.
CsvNumber read_csv_number(std::string_view field);

}  // namespace zt
