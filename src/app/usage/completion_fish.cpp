#include "app/usage/completion.h"

namespace zt {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string argument_of(const OptionUsage& option) {
  switch (option.kind) {
    case ArgumentKind::none: return "";
    // Without -r an option may stand alone, and fish takes its value for an argument: then files are offered for that.
    case ArgumentKind::file:
    case ArgumentKind::path: return option.may_lack_argument ? " -F" : " -r -F";
    case ArgumentKind::directory: return " -x -a '(__fish_complete_directories (commandline -ct))'";
    case ArgumentKind::choice: return " -x -a " + quoted(joined(option.choices, " "));
    case ArgumentKind::key_value: return " -x -a '(__zerotrain_set)'";
    case ArgumentKind::other: return option.may_lack_argument ? "" : " -x";
  }
  return "";
}

}  // namespace

std::string fish_completion(const std::vector<CommandUsage>& commands, const std::vector<KeyUsage>& keys) {
  std::vector<std::string> verbs;
  for (const CommandUsage& command : commands) {
    if (!command.verb.empty()) verbs.push_back(command.verb);
  }
  std::string text =
      "# Completion of zerotrain for fish, written by \"zerotrain completion fish\".\n\n"
      "# Whether the verb is the one named; \"\": none, which is a training.\n"
      "function __zerotrain_verb_is\n"
      "  set -l words (commandline -opc)\n"
      "  set -l verb ''\n"
      "  contains -- \"$words[2]\" " +
      joined(verbs, " ") +
      "; and set verb $words[2]\n"
      "  test \"$verb\" = \"$argv[1]\"\n"
      "end\n\n"
      "function __zerotrain_is_first\n"
      "  test (count (commandline -opc)) -eq 1\n"
      "end\n\n"
      "# KEY=VALUE: keys, then the values of the key that stands there.\n"
      "function __zerotrain_set\n"
      "  set -l typed (string replace -r -- '^(--set=|-s)' '' (commandline -ct))\n"
      "  set -l key (string split -m 1 = -- $typed)[1]\n"
      "  if not string match -q -- '*=*' $typed\n"
      "    printf '%s\\t%s\\n'";
  for (const KeyUsage& key : keys) text += " \\\n      " + key.key + "= " + quoted(first_sentence(key.help));
  text += "\n    return\n  end\n  switch $key\n";
  for (const KeyUsage& key : keys) {
    if (key.values.empty() && !key.is_path) continue;
    text += "    case " + key.key + "\n";
    if (!key.values.empty()) text += "      printf \"$key=%s\\n\" " + joined(key.values, " ") + "\n";
    if (key.is_path) {
      text +=
          "      for path in (__fish_complete_path (string split -m 1 = -- $typed)[2])\n"
          "        echo $key=$path\n"
          "      end\n";
    }
  }
  text += "  end\nend\n\ncomplete -c zerotrain -f\n";
  for (const auto& [verb, summary] : verb_summaries(commands))
    text += "complete -c zerotrain -n __zerotrain_is_first -a " + verb + " -d " + quoted(summary) + "\n";
  for (const CommandUsage& command : commands) {
    const std::string start = "complete -c zerotrain -n \"__zerotrain_verb_is '" + command.verb + "'\"";
    for (const OptionUsage& option : command.options) {
      if (option.names.empty()) continue;
      text += start;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += argument_of(option) + " -d " + quoted(first_sentence(option.help)) + "\n";
    }
    if (const OptionUsage* position = position_of(command); position != nullptr && !command.verb.empty())
      text += start +
              (position->kind == ArgumentKind::choice ? " -a " + quoted(joined(position->choices, " "))
                                                      : std::string(" -F")) +
              "\n";
  }
  return text;
}

}  // namespace zt
