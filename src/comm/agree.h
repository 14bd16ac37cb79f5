// Start-up work that may fail on some ranks and not on others.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace zt {

// Every rank runs `work`, which must not communicate; if it threw on any rank, all ranks throw a UserError with the
// message of the lowest such rank (named, unless all failed alike).
void all_or_none(Communicator& communicator, const std::function<void()>& work);

}  // namespace zt
