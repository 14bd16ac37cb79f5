// The three ways in which a run ends early. main() catches them, prints one message on one rank and
// returns the exit code; nothing else in the program calls exit().
#pragma once

#include <stdexcept>
#include <string>

namespace zt {

// Found before the first step: command line, config, data, output directory, device. Exit code 2.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The run failed once it had begun. Exit code 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank has failed and has reported why, or is gone. The rank that receives this stays silent
// unless it is the one that noticed first (`rank` is then the lost one). Exit code 1.
class PeerFailed : public std::runtime_error {
 public:
  PeerFailed(int lost_rank, const std::string& what) : std::runtime_error(what), rank(lost_rank) {}
  int rank;
};

}  // namespace zt
