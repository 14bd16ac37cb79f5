// What a file seems to be that is not what was asked for.
#pragma once

#include <string>
#include <string_view>

namespace zt {

// "looks packed by zstd: only gzip is unpacked; unpack it first (unzstd FILE)": of content that has been unpacked from
// gzip where it was gzip, so that a further gzip is told, too. Empty if it does not.
std::string packed_in_words(std::string_view bytes);

// Text in UTF-16, or no text at all: bytes that stand in no text are too many of the first ones. In words as above,
// without a remedy; empty if it looks like text.
std::string binary_in_words(std::string_view bytes);

// Throws UserError where one of the two says something; `remedy` follows what binary_in_words says: "name a CSV file".
void require_text(std::string_view bytes, const std::string& origin, const std::string& remedy);

}  // namespace zt
