// The manual page zerotrain(1).
#pragma once

#include <string>
#include <vector>

#include "app/usage/command_usage.h"

namespace zt {

// In mdoc, the macros of man pages.
std::string manual_page(const std::vector<CommandUsage>& commands);

}  // namespace zt
