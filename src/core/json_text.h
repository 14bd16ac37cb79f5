// JSON as the program's records have it: every floating-point number with 9 significant digits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace zt {

// indent < 0: one line.
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace zt
