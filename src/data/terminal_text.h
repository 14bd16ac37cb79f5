// What a model has written, on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace zt {

// All of a running text: newlines, tabs and characters that draw nothing stay; other control characters, and bytes that
// are not UTF-8, are escaped as in messages (data/message_text.h), so that none of them can steer the terminal.
std::string shown_lines(std::string_view text);

}  // namespace zt
