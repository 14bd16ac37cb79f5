// What comms_logger tells: how long collectives took, by kind and size of message (docs/outputs.md).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "device/activity.h"

namespace zt {

// Calls that make up one row.
struct CollectiveGroup {
  CollectiveKind kind{};
  // What they are for, where that is to be told: the innermost activity, the pass or end of a step that it is part of
  // (step: none), the number of its unit (-1: it is of none).
  Activity activity = Activity::step, pass = Activity::step;
  std::int64_t unit = -1;
  std::int64_t message = 0;  // bytes of the tensor, of all ranks' slices together
  auto operator<=>(const CollectiveGroup&) const = default;
};

struct CollectiveSum {
  std::int64_t calls = 0;
  std::int64_t sent = 0;  // bytes, by this rank
  double seconds = 0.0;
};

// As many entries as there are sizes (and, where it is told, purposes) of messages, however long a run is.
using CollectiveSums = std::map<CollectiveGroup, CollectiveSum>;

// Bytes whose rate can be held against that of the wire, whatever the number of ranks: of an all_reduce, which
// reduces and gathers, 2 (N-1)/N of the message; of a broadcast all of it; of the others what a rank sends, (N-1)/N of
// the message where slices are alike. 0 with one rank.
double bus_bytes(const CollectiveGroup& group, const CollectiveSum& sum, int ranks);

struct CommsTableContext {
  int ranks = 1;
  bool tells_purpose = false;
  std::vector<std::string> units{};  // names by number
};
std::vector<std::string> comms_table(const CollectiveSums& sums, std::int64_t steps, const CommsTableContext& context);
// Of a single call, in `step`.
std::string call_line(std::int64_t step, const CollectiveGroup& group, const CollectiveSum& call,
                      const CommsTableContext& context);

}  // namespace zt
