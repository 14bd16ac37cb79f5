// Start-up work that may fail on some ranks and not on others.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "core/errors.h"

namespace zt {

// An error that all ranks know of: rank 0 throws it, the others PeerFailed, so that it is said once.
template <typename Error>
[[noreturn]] void fail_together(Communicator& communicator, const std::string& message) {
  if (communicator.rank() != 0) throw PeerFailed(0, message);
  throw Error(message);
}

// Every rank runs `work`, which must not communicate. Returns what went wrong on the lowest rank on which it threw (the
// rank named, unless all failed alike), the same text on all ranks; empty: nothing did.
std::string first_failure(Communicator& communicator, const std::function<void()>& work);

// If work fails on any rank, all ranks fail together: with a UserError before the first step, a RunError later.
template <typename Error = UserError>
void all_or_none(Communicator& communicator, const std::function<void()>& work) {
  const std::string failure = first_failure(communicator, work);
  if (!failure.empty()) fail_together<Error>(communicator, failure);
}

}  // namespace zt
