// Ranks as processes of one machine, forked from one parent: the memory that they share is made before the fork.
// How they are started, watched and ended is the launcher's business (app/launcher.h).
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/control_block.h"

namespace zt {

class ProcessGroup {
 public:
  // In the parent, before forking.
  ProcessGroup(int ranks, int ranks_per_node);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // In the child that is to be `rank`, once.
  std::unique_ptr<Communicator> join(int rank);
  // In the parent, when all children have been forked: lets go of what only they need.
  void forked();

  // Slot = rank.
  ControlBlock& block() { return *block_; }

 private:
  int ranks_;
  int ranks_per_node_;
  std::shared_ptr<ControlBlock> block_;
  // sockets_[a][b]: a's end of the connection of ranks a and b of different (pretended) nodes, else -1.
  std::vector<std::vector<int>> sockets_;
};

}  // namespace zt
