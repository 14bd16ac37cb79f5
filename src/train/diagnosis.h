// Why a step had values that are not finite: it is run again with every operation's output looked at.
#pragma once

#include <string>

#include "train/session.h"

namespace zt {

// Replays the step that was attempted last, multiplied by the loss scale `scale`, with the weights as they are. All
// ranks call it; the sentence names the first tensor, in order of micro-batches, and is the same on all ranks.
std::string diagnose_not_finite(Session& session, Device& device, double scale);

}  // namespace zt
