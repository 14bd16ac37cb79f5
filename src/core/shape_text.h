// Shapes in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zt {

std::string shape_text(const std::vector<std::int64_t>& shape);     // "3 x 5", as messages have it
std::string shape_as_list(const std::vector<std::int64_t>& shape);  // "[3, 5]", as files have it

}  // namespace zt
