#include "train/agreements.h"

#include <algorithm>
#include <array>

#include "core/process.h"

namespace zt {

Neighbours find_neighbours(Communicator& communicator) {
  const std::string machine = machine_name() + "\n";
  const std::string cores = allowed_cores();
  Neighbours neighbours{0, 0, 0};
  int rank = 0;
  for (const std::string& other : communicator.all_gather_strings(machine + cores)) {
    const bool comes_before = rank++ < communicator.rank();
    if (!other.starts_with(machine)) continue;
    ++neighbours.on_machine;
    if (comes_before) ++neighbours.index_on_machine;
    if (other.substr(machine.size()) == cores) ++neighbours.sharing_cores;
  }
  return neighbours;
}

cpu::InstructionLevel agree_on_instruction_set(Communicator& communicator, const std::string& asked) {
  cpu::InstructionLevel level = cpu::detected_instruction_level();
  if (const auto limit = cpu::instruction_level_from(asked)) level = std::min(level, *limit);
  for (const std::string& other : communicator.all_gather_strings(std::string(cpu::name_of(level)))) {
    level = std::min(level, cpu::instruction_level_from(other).value_or(level));
  }
  cpu::limit_instruction_set(level);
  return level;
}

namespace {
constexpr std::array<int, 4> stop_signals = {2, 15, 10, 1};  // SIGINT, SIGTERM, SIGUSR1, SIGHUP
constexpr int bits = 15;
}  // namespace

// Each signal has 15 bits of its own: 32767 ranks may vote for each. Of up to 262143 the sum still says that the run is
// to stop, all ranks the same, if by another of these signals.
std::int64_t vote_for(int signal) {
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    if (stop_signals.at(i) == signal) return std::int64_t{1} << (bits * i);
  }
  return 0;
}
int signal_of(std::int64_t votes) {
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    if ((votes >> (bits * i) & ((1 << bits) - 1)) != 0) return stop_signals.at(i);
  }
  return votes != 0 ? stop_signals.back() : 0;
}

}  // namespace zt
