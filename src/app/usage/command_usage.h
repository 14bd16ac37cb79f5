// The command lines of zerotrain and of its verbs as tables, read from the very objects that parse them and print
// --help: what completion and the manual are made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zt {

enum class ArgumentKind : std::uint8_t {
  none,  // a flag
  file,
  directory,
  path,       // a file or a directory
  choice,     // one of OptionUsage::choices
  key_value,  // of the config: a.b.c=VALUE
  other       // a number, a text
};

struct OptionUsage {
  std::vector<std::string> names;  // "-c", "--config"; empty: it stands alone, without a name
  std::string position;            // its name where it may stand alone
  std::string argument;            // "FILE"; empty: a flag
  ArgumentKind kind = ArgumentKind::none;
  bool may_lack_argument = false;  // --resume [PATH]
  bool takes_several = false;      // --input a b c
  bool is_required = false;
  std::string help, fallback;  // fallback: its default, or empty
  std::vector<std::string> choices;
};

struct CommandUsage {
  std::string verb;     // "generate"; empty: zerotrain's own line, of train
  std::string summary;  // one line
  std::string description, footer;
  std::vector<OptionUsage> options;
};

std::vector<CommandUsage> command_usages();  // zerotrain's own comes first

// A config's keys that --set may give, in the order of their names; those of several types stand for all of them.
struct KeyUsage {
  std::string key, help, allowed, fallback;  // allowed: "an integer from 1"
  std::vector<std::string> values;           // that can be listed: words, few numbers, true and false, auto, null
  bool is_path = false;
};
std::vector<KeyUsage> key_usages();

}  // namespace zt
