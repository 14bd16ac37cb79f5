// What --version prints.
#pragma once

#include <string>

namespace zt {

std::string version_text();
std::string program_name();     // "zerotrain 0.1.0 (0123abc)"
std::string program_version();  // "0.1.0"
std::string program_date();     // of the commit, "2026-11-30"

}  // namespace zt
