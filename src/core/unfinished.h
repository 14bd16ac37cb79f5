// What is being written under a name that it will not keep, so that a process that a signal ends leaves none of it.
#pragma once

#include <string>

namespace zt {

// As long as one lives, remove_unfinished() removes what stands under its path. Nothing else does: who writes there
// renames or removes it in the ordinary ways before this one goes.
class Unfinished {
 public:
  enum class Kind { file, directory };

  Unfinished(const std::string& path, Kind kind);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
};

// For the thread that ends the process and does so right after. From now on no Unfinished begins or ends: who tries
// waits, so other threads neither start anew nor report that what they were writing is gone.
void remove_unfinished();

}  // namespace zt
