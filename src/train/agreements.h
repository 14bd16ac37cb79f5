// What the ranks of a run find out about each other before and while they train.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "device/cpu/instruction_set.h"

namespace zt {

// How this rank stands to the others of its machine.
struct Neighbours {
  int on_machine = 1;        // ranks of this machine, this one included
  int index_on_machine = 0;  // of those, how many come before this one
  int sharing_cores = 1;     // of those, the ones that may run on exactly the same cores
};

// All ranks call it.
Neighbours find_neighbours(Communicator& communicator);

// The lowest instruction set among the ranks (and the one asked for, or "auto"): results depend on it. It is set as
// this process's limit. All ranks call it.
cpu::InstructionLevel agree_on_instruction_set(Communicator& communicator, const std::string& asked);

// A stop signal (or 0: none) as a vote that can be added up over ranks, and the signal that such a sum asks for.
std::int64_t vote_for(int signal);
int signal_of(std::int64_t votes);

}  // namespace zt
