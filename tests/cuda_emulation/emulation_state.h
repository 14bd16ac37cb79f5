// What the parts of the emulation ask of each other about settings, findings and calls that are to fail.
#pragma once

#include <source_location>
#include <string>

#include "emulation.h"

namespace zt::emulation {

// Keeps `text` for Findings, or prints it and aborts.
void report(const std::string& text);

// True if this call was chosen by fail_nth. Counts it.
bool is_to_fail(Call call, int device);

// "file.cu:12", the file without its folders.
std::string text_of(const std::source_location& where);

// A random number generator that is a function of the seed and what is passed (splitmix64's finalizer).
std::uint64_t mix(std::uint64_t value);

}  // namespace zt::emulation
