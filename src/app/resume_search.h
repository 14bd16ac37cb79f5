// What --resume goes on from, and whether there is anything to do.
#pragma once

#include <functional>
#include <optional>

#include "app/command_line.h"
#include "checkpoint/resume_point.h"
#include "config/resolve.h"

namespace zt {

// The batch that a checkpoint's run had. RunError where its config names none.
ResumedBatch batch_of(const ResumePoint& point);

// The command line's config for a run that goes on with such a batch.
using ResolveFor = std::function<ResolvedConfig(const std::optional<ResumedBatch>& batch)>;

// Nothing: the run is finished, which has been said. UserError where it would go on but has left no checkpoint; errors
// as of find_resume_point().
std::optional<ResumeSearch> search_resume_point(const CommandLine& line, const ResolveFor& resolve);

}  // namespace zt
