// Words for messages: what files and configs hold, so that no byte of it can disturb a terminal or a log, and counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zt {

// Text from outside: control characters and bytes that are not UTF-8 as \n, \t, \r, \xNN or \uNNNN; cut after `longest`
// characters, with "..." in place of the rest.
std::string shown(std::string_view text, std::size_t longest = 60);

// A path in the same way; of a very long one the beginning and the end.
std::string shown_path(const std::string& path);

// "data.path: /data/x.csv"
std::string origin_of(const std::string& key, const std::string& path);

// The last part of a path, as shown.
std::string file_name(const std::string& path);

// The shortest decimal that is this very number: 0.9999999999999 stays that.
std::string shown(double number);

// "1 row", "2 rows"; a plural that is not singular + s is given.
std::string counted(std::int64_t count, std::string_view singular, std::string_view plural = {});

// "3 or less"; "1", of which there is nothing less that a size could be.
std::string at_most(std::int64_t count);

}  // namespace zt
