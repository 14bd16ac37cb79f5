// The directory that a run's files go to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace zt {

// Creates it if needed, and checks that it can be written. One that holds a run is refused (UserError) unless
// `resume` (left as it is) or `overwrite` (the run's files are removed, nothing else).
void claim_output_directory(const std::string& path, bool resume, bool overwrite);

// What the summary of a completed run says.
struct FinishedRun {
  std::int64_t steps = 0;       // attempted
  bool took_all_steps = false;  // it ended because training.max_steps were attempted
};
std::optional<FinishedRun> finished_run(const std::string& path);

}  // namespace zt
