// How much memory a process may still take.
#pragma once

#include <cstdint>

namespace zt {

// The least of what is free on this machine, and of the limits of this process's control groups, in bytes.
std::int64_t available_memory_bytes();

}  // namespace zt
