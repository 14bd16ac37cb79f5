// Numbers in the unit that fits them, as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace zt {

std::string bytes_in_words(std::int64_t bytes);  // "1.25 GB", powers of 1000
std::string count_in_words(double count);        // "10.8 M"
std::string fixed(double value, int decimals);   // "1.250"

}  // namespace zt
