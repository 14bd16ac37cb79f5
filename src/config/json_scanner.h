// Checks the grammar of JSON text before it is parsed, for errors that a person can act on, and finds the line of
// every key.
#pragma once

#include <map>
#include <string>

#include "config/problems.h"

namespace zt {

struct ScanResult {
  std::map<std::string, std::size_t> lines;    // key path -> line, from 1
  std::map<std::string, std::string> written;  // key path -> the number, true, false or null that stands there
  Problems duplicates;
};

// `blanked`: text without comments. `original`: the same length, shown in messages. Throws ConfigError.
ScanResult scan_json(const std::string& blanked, const std::string& original, const std::string& name);

// The same for the value that --set gives to the key `path`; it may be of any type.
ScanResult scan_json_value(const std::string& blanked, const std::string& original, const std::string& path);

// "FILE:LINE:COLUMN: what", the line and a caret below it.
std::string describe_position(const std::string& text, std::size_t position, const std::string& name,
                              const std::string& what);

}  // namespace zt
