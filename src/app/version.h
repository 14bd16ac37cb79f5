// What --version prints.
#pragma once

#include <string>

namespace zt {

std::string version_text();
std::string program_name();  // "zerotrain 0.1.0 (0123abc)"

}  // namespace zt
