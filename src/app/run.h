// The program: from the command line to an exit code.
#pragma once

#include <chrono>

namespace zt {

// Returns the exit code, or throws (main.cpp says what to whom).
int run(int argc, const char* const* argv, std::chrono::steady_clock::time_point process_start);

}  // namespace zt
