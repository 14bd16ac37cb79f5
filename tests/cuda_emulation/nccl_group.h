// A group of NCCL calls of one rank, as it runs on a stream.
#pragma once

#include <memory>
#include <vector>

#include "nccl_communicator.h"
#include "stream.h"

namespace zt::emulation {

// The operation does what it can each time it is advanced, so that a stream can be asked without blocking. Before each
// collective the ranks compare their signatures; before each letter, its count and type.
Operation group_operation(const std::shared_ptr<Communicator>& comm, std::vector<NcclCall> calls);

}  // namespace zt::emulation
