// The command line of zerotrain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/trace_file.h"

namespace zt {

struct CommandLine {
  std::string verb = "train";
  std::vector<std::string> configs;
  std::vector<std::string> sets;       // KEY.PATH=VALUE
  int ranks = 0;                       // --ranks; 0: not given
  std::vector<int> rank_list, stages;  // prove: --ranks 1,2,4 --stages 0,1,2,3
  int steps = 4;                       // prove: --steps
  bool json = false;                   // tables as JSON
  bool as_is = false;                  // prove: sums in 16 bits stay so
  std::optional<std::string> output;   // --output
  bool resume = false, overwrite = false;
  std::string resume_from;       // --resume PATH; empty: the output directory
  bool resume_previous = false;  // from the checkpoint before the newest
  bool elastic = false;          // --elastic: go on with one rank less when one is lost
  bool dry_run = false, print_config = false;
  bool traces = false;                      // --trace
  std::optional<TracedSteps> traced_steps;  // that it names
  int world_size = 0;                       // --world-size, for --dry-run
  bool quiet = false, verbose = false;
};

constexpr const char* summary_of_prove = "runs the config for a few steps over ranks and stages and compares";

// Empty if the command line asked for help or the version, which have then been printed. Throws UserError.
std::optional<CommandLine> parse_command_line(int argc, const char* const* argv);

}  // namespace zt
