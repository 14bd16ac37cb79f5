// How much memory a process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace zt {

// The least of what is free on this machine, and of the limits of this process's control groups, in bytes.
std::int64_t available_memory_bytes();

// The same by the files below `root`, which stands before /proc and /sys.
std::int64_t available_memory_below(const std::string& root);

}  // namespace zt
