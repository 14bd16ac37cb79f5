// Amounts on the command line: 7.5e9, 7.5B, 80GB, 64 GiB.
#pragma once

#include <cstdint>
#include <string>

namespace zt {

// A positive number, by itself or with k, M, G (or B: billion) or T behind it. UserError that names the option.
double count_of(const std::string& option, const std::string& text);
// Bytes: the same with kB, MB, GB, TB or kiB, MiB, GiB, TiB, and "/s" where it is of a second.
double bytes_of(const std::string& option, const std::string& text);

}  // namespace zt
