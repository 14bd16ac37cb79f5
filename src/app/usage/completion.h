// Completion of zerotrain's command line, as the script that a shell reads.
#pragma once

#include <string>
#include <vector>

#include "app/usage/command_usage.h"

namespace zt {

// For all three: verbs, their options, what these take, and for --set the keys of a config with the values that can be
// listed.
std::string bash_completion(const std::vector<CommandUsage>& commands, const std::vector<KeyUsage>& keys);
std::string zsh_completion(const std::vector<CommandUsage>& commands, const std::vector<KeyUsage>& keys);
std::string fish_completion(const std::vector<CommandUsage>& commands, const std::vector<KeyUsage>& keys);

// Shared by them.
std::string joined(const std::vector<std::string>& words, const std::string& between);
std::string first_sentence(const std::string& text);  // without its full stop
std::vector<std::pair<std::string, std::string>> verb_summaries(const std::vector<CommandUsage>& commands);
const OptionUsage* position_of(const CommandUsage& command);  // what stands without a name; null: nothing

}  // namespace zt
