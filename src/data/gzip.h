// Unpacking gzip (RFC 1952), with zlib.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/available_memory.h"

namespace zt {

// Whether the bytes start as gzip does.
bool is_gzip(std::string_view bytes);

// The whole unpacked content; several packed parts one after the other, as `cat a.gz b.gz` makes, are one. Lengths and
// checksums are verified. `origin` names the file in errors. Throws UserError: cut short, damaged, or followed by bytes
// that are not gzip, or larger unpacked than `available` says that memory is (bytes, asked for again as it grows): a
// megabyte may hold a gigabyte.
std::string gunzip(std::string_view packed, const std::string& origin,
                   const std::function<std::int64_t()>& available = available_memory_bytes);

}  // namespace zt
