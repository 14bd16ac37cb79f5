// What the operating system says about this process and its machine.
#pragma once

#include <cstdint>
#include <string>

namespace zt {

std::int64_t peak_resident_bytes();  // the most memory that this process has had resident, shared pages included
std::string machine_name();          // host and boot, so that containers of one machine with one name differ
std::string allowed_cores();         // the cores that this process may run on, as a text to compare
int allowed_core_count();

}  // namespace zt
