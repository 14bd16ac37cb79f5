// Limits of JSON that may come from a stranger, looked at before it becomes a tree of values: to copy, compare or print
// one takes a call for every level of nesting, and the ordered kind looks through all names of an object for each new
// one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zt {

struct JsonBounds {
  std::size_t deepest = 64;       // objects and lists within each other
  std::size_t most_names = 1000;  // of one object
};

// What the text goes beyond, "is nested more than 64 deep at its byte 812"; empty: nothing. Bytes count from 0; the
// text need not be JSON.
std::string beyond_json_bounds(std::string_view text, const JsonBounds& bounds);

}  // namespace zt
