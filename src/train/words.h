// Numbers as people read them and as files keep them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/number_text.h"

namespace zt {

std::string seconds_in_words(double seconds);       // "2:05", "1:02:03", "12.3 s"
std::string significant(double value, int digits);  // "0.000123"
std::string count_exactly(double count);            // "4294967296"

// object[key] = value; a number that is not finite becomes null with
// "not_finite": "nan" or "inf" beside it.
void put_number(nlohmann::ordered_json& object, const std::string& key, double value);

}  // namespace zt
