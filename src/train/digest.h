// Fingerprints of what a run holds, for runs to be compared step by step and for copies to be held against each other.
#pragma once

#include <cstdint>

#include "train/session.h"

namespace zt {

struct Digest {
  std::uint64_t weights = 0;  // as in summary.json
  std::uint64_t moments = 0;  // the same of the optimizer's moments
};

// Equal at every stage and number of ranks that hold the same values. All ranks, no step unread.
Digest digest_of(Session& session);

// At stages 0 to 2 every rank holds all parameters that it computes with. RunError on all ranks where one holds others
// than the rest: names the rank and the first such tensor. Nothing at stage 3. All ranks, no step unread.
void require_equal_copies(Session& session);

}  // namespace zt
