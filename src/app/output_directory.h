// The directory that a run's files go to.
#pragma once

#include <string>

namespace zt {

// Creates it if needed, and checks that it can be written. One that holds a run is refused (UserError) unless
// `resume` (left as it is) or `overwrite` (the run's files are removed, nothing else).
void claim_output_directory(const std::string& path, bool resume, bool overwrite);

// Whether its summary says that a run was completed.
bool holds_finished_run(const std::string& path);

}  // namespace zt
