#include "app/usage/completion.h"

namespace zt {

namespace {

// Within single quotes, in a description of _arguments and _describe.
std::string described(const std::string& text) {
  std::string result;
  for (const char c : first_sentence(text)) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      if (c == ':' || c == '[' || c == ']' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result;
}

std::string action_of(const OptionUsage& option) {
  switch (option.kind) {
    case ArgumentKind::file:
    case ArgumentKind::path: return "_files";
    case ArgumentKind::directory: return "_files -/";
    case ArgumentKind::choice: return "(" + joined(option.choices, " ") + ")";
    case ArgumentKind::key_value: return "_zerotrain_set";
    case ArgumentKind::none:
    case ArgumentKind::other: return " ";
  }
  return " ";
}

// ":FILE:_files", or nothing for a flag.
std::string argument_of(const OptionUsage& option) {
  if (option.kind == ArgumentKind::none) return "";
  return (option.may_lack_argument ? "::" : ":") + described(option.argument) + ":" + action_of(option);
}

std::string specifications_of(const CommandUsage& command, const std::string& indent) {
  std::string text;
  const auto add = [&](const std::string& specification) { text += " \\\n" + indent + "'" + specification + "'"; };
  for (const OptionUsage& option : command.options) {
    for (const std::string& name : option.names) {
      const bool is_long = name.starts_with("--") && option.kind != ArgumentKind::none;
      add("*" + name + (is_long ? "=" : "") + "[" + described(option.help) + "]" + argument_of(option));
    }
  }
  if (const OptionUsage* position = position_of(command))
    add("*:" + described(position->position) + ":" + action_of(*position));
  return text;
}

}  // namespace

std::string zsh_completion(const std::vector<CommandUsage>& commands, const std::vector<KeyUsage>& keys) {
  std::string text =
      "#compdef zerotrain\n"
      "# Completion of zerotrain for zsh, written by \"zerotrain completion zsh\".\n\n"
      "_zerotrain_set() {\n"
      "  local key=${PREFIX%%=*}\n"
      "  if ! compset -P 1 '*='; then\n"
      "    local -a keys\n"
      "    keys=(\n";
  for (const KeyUsage& key : keys) text += "      '" + key.key + ":" + described(key.help) + "'\n";
  text +=
      "    )\n"
      "    _describe -t keys key keys -S '=' -M 'r:|.=* r:|=*'\n"
      "    return\n"
      "  fi\n"
      "  case $key in\n";
  for (const KeyUsage& key : keys) {
    const std::string words = joined(key.values, " ");
    if (key.is_path) {
      text += "    " + key.key + ") " + (words.empty() ? "" : "compadd -- " + words + "; ") + "_files ;;\n";
    } else if (!words.empty()) {
      text += "    " + key.key + ") compadd -- " + words + " ;;\n";
    } else {
      text += "    " + key.key + ") _message '" + described(key.allowed) + "' ;;\n";
    }
  }
  text +=
      "  esac\n"
      "}\n\n"
      "_zerotrain() {\n"
      "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
      "    local -a verbs\n"
      "    verbs=(\n";
  for (const auto& [verb, summary] : verb_summaries(commands))
    text += "      '" + verb + ":" + described(summary) + "'\n";
  text +=
      "    )\n"
      "    _describe -t verbs verb verbs\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n";
  for (const CommandUsage& command : commands) {
    if (command.verb.empty()) continue;
    text += "    " + command.verb + ")\n      shift words\n      (( CURRENT-- ))\n      _arguments -S" +
            specifications_of(command, "        ") + "\n      ;;\n";
  }
  return text + "    *)\n      _arguments -S" + specifications_of(commands.front(), "        ") +
         "\n      ;;\n  esac\n}\n\n"
         // Loaded by name, the file is the function's body; read by hand, it only registers.
         "if [[ $funcstack[1] == _zerotrain ]]; then\n  _zerotrain \"$@\"\nelse\n  compdef _zerotrain zerotrain\nfi\n";
}

}  // namespace zt
