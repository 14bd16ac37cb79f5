// The directory `checkpoints` of a run: step-00000200 and others like it, each a checkpoint, and `latest`, a file with
// the name of the newest.
//
// A checkpoint is written as step-00000200.tmp and renamed when it is whole. Names that end otherwise (.tmp: of a run
// that was killed; .set-aside: passed over by a resume) are no checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zt {

std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of_checkpoint(const std::string& name);  // nothing: it is no such name

// What `checkpoints` holds: steps of finished checkpoints (their manifest is there), ascending, and names of what was
// never finished.
struct CheckpointList {
  std::vector<std::int64_t> finished;
  std::vector<std::string> unfinished;
};
CheckpointList list_checkpoints(const std::string& checkpoints);

// What `latest` says. RunError: it names nothing that could be a checkpoint here.
std::optional<std::int64_t> latest_checkpoint(const std::string& checkpoints);

// A new checkpoint becomes visible: its directory, written under temporary_checkpoint(), gets its name, then `latest`
// names it. One that stood under the name is replaced.
std::string temporary_checkpoint(const std::string& checkpoints, std::int64_t step);
void publish_checkpoint(const std::string& checkpoints, std::int64_t step);

// Removes all finished checkpoints but the `keep` newest, and what killed runs left; errors are not told: nothing
// depends on it.
void prune_checkpoints(const std::string& checkpoints, std::int64_t keep);
void remove_unfinished(const std::string& checkpoints);

// Checkpoints of later steps get the ending .set-aside, as a run goes on from `step` and will write them anew. Returns
// their names. RunError.
std::vector<std::string> set_aside_after(const std::string& checkpoints, std::int64_t step);

}  // namespace zt
