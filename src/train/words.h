// Numbers as people read them and as files keep them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace zt {

std::string bytes_in_words(std::int64_t bytes);     // "1.25 GB", powers of 1000
std::string count_in_words(double count);           // "10.8 M"
std::string seconds_in_words(double seconds);       // "2:05", "1:02:03", "12.3 s"
std::string fixed(double value, int decimals);      // "1.250"
std::string significant(double value, int digits);  // "0.000123"
std::string count_exactly(double count);            // "4294967296"

// object[key] = value; a number that is not finite becomes null with
// "not_finite": "nan" or "inf" beside it.
void put_number(nlohmann::ordered_json& object, const std::string& key, double value);

}  // namespace zt
