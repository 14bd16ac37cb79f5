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

// Every rank runs `work`, which must not communicate; if it threw on any rank, all ranks fail together with a
// UserError that has the message of the lowest such rank (named, unless all failed alike).
void all_or_none(Communicator& communicator, const std::function<void()>& work);

}  // namespace zt
