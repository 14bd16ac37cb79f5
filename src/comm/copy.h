// Copies of slices, up to hundreds of megabytes.
#pragma once

#include <cstdint>

namespace zt {

// memcpy; large blocks are written past the caches, which saves reading what is overwritten.
void copy_block(void* to, const void* from, std::int64_t bytes);

}  // namespace zt
