// Which ranks of a machine make a node, and how many cores there are for them.
#pragma once

#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

namespace zt {

// The ranks first ... last - 1 of the node that `rank` belongs to, when `ranks` ranks of a machine are cut into
// nodes of `ranks_per_node` (0: all on one; the last node may be smaller).
inline std::vector<int> ranks_of_node(int rank, int ranks, int ranks_per_node) {
  const int step = ranks_per_node <= 0 ? ranks : ranks_per_node;
  const int first = rank / step * step;
  std::vector<int> members;
  for (int p = first; p < std::min(first + step, ranks); ++p) members.push_back(p);
  return members;
}

// Cores that this thread may run on.
inline std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

inline std::string describe_nodes(int ranks, int ranks_per_node) {
  if (ranks_per_node <= 0 || ranks_per_node >= ranks) return "";
  return ", nodes of " + std::to_string(ranks_per_node) + " pretended";
}

}  // namespace zt
