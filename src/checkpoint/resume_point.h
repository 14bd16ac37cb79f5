// From which checkpoint a run goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

namespace zt {

struct ResumePoint {
  std::string directory;  // of the checkpoint
  Manifest manifest;
  bool same_run = false;  // it belongs to the run in the output directory
  std::string offer;      // what an error about it ends with: how to take the one before; empty: there is none
};

struct ResumeSearch {
  std::optional<ResumePoint> point;
  std::vector<std::string> notices;  // what was passed over, a line each
};

// The newest finished checkpoint below `path` (a checkpoint itself, a run's directory, or empty: the output directory),
// or with `previous` the one before it that is whole. Nothing where the output directory has none yet (its unfinished
// ones are in `notices`). RunError where one is damaged or `latest` is, which names the file and what to do; UserError
// where `path` holds none.
ResumeSearch find_resume_point(const std::string& path, const std::string& output_directory, bool previous);

}  // namespace zt
