// Where a line is no JSON, and why.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zt {

struct JsonFault {
  std::size_t offset = 0;  // in bytes, at most the line's size
  std::string what;        // in words, with what to do; empty: the line is one value of JSON
  bool goes_on = false;    // the line ends where a value that spans several lines would go on
};

// The first fault of a line that should be one value of JSON (RFC 8259) with numbers that a double holds.
JsonFault find_json_fault(std::string_view line);

}  // namespace zt
