// Unpacking gzip (RFC 1952), with zlib.
#pragma once

#include <string>
#include <string_view>

namespace zt {

// Whether the bytes start as gzip does.
bool is_gzip(std::string_view bytes);

// The whole unpacked content; several packed parts one after the other, as `cat a.gz b.gz` makes, are one. Lengths and
// checksums are verified. `origin` names the file in errors. Throws UserError: cut short, damaged, or followed by bytes
// that are not gzip.
std::string gunzip(std::string_view packed, const std::string& origin);

}  // namespace zt
