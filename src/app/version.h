// What --version prints.
#pragma once

#include <string>

namespace zt {

std::string version_text();

}  // namespace zt
