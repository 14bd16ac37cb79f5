// For bash 4.3 and later; needs nothing of the package bash-completion.
#include "app/usage/completion.h"

namespace zt {

namespace {

// What stands in a case of the generated _zerotrain_kind.
std::string kind_text(const OptionUsage& option) {
  switch (option.kind) {
    case ArgumentKind::none: return "";
    case ArgumentKind::file: return "file";
    case ArgumentKind::directory: return "directory";
    case ArgumentKind::path: return "file";
    case ArgumentKind::choice: return "choice " + joined(option.choices, " ");
    case ArgumentKind::key_value: return "set";
    case ArgumentKind::other: return "other";
  }
  return "";
}

// REPLY: "--config --set ..." of a verb.
std::string options_function(const std::vector<CommandUsage>& commands) {
  std::string text = "_zerotrain_options() {\n  case $1 in\n";
  for (const CommandUsage& command : commands) {
    std::vector<std::string> names;
    for (const OptionUsage& option : command.options)
      names.insert(names.end(), option.names.begin(), option.names.end());
    text += "    \"" + command.verb + "\") REPLY=\"" + joined(names, " ") + "\" ;;\n";
  }
  return text + "    *) REPLY= ;;\n  esac\n}\n\n";
}

// REPLY: what follows an option of a verb, or stands without one (option "").
std::string kind_function(const std::vector<CommandUsage>& commands) {
  std::string text = "_zerotrain_kind() {\n  case \"$1 $2\" in\n";
  for (const CommandUsage& command : commands) {
    for (const OptionUsage& option : command.options) {
      if (option.kind == ArgumentKind::none || option.names.empty()) continue;
      std::string names;
      for (const std::string& name : option.names)
        names += (names.empty() ? "\"" : " | \"") + command.verb + " " + name + "\"";
      text += "    " + names + ") REPLY=\"" + kind_text(option) + "\" ;;\n";
    }
    if (const OptionUsage* position = position_of(command))
      text += "    \"" + command.verb + " \") REPLY=\"" + kind_text(*position) + "\" ;;\n";
  }
  return text + "    *) REPLY= ;;\n  esac\n}\n\n";
}

// REPLY: the values of a key, "<path>" among them where a path is one.
std::string values_function(const std::vector<KeyUsage>& keys) {
  std::string text = "_zerotrain_values() {\n  case $1 in\n";
  for (const KeyUsage& key : keys) {
    std::vector<std::string> values = key.values;
    if (key.is_path) values.emplace_back("<path>");
    if (!values.empty()) text += "    " + key.key + ") REPLY=\"" + joined(values, " ") + "\" ;;\n";
  }
  return text + "    *) REPLY= ;;\n  esac\n}\n\n";
}

constexpr const char* functions = R"bash(# KEY=VALUE: a key, section by section, then its values.
_zerotrain_set() {
  local key rest candidate
  local -A seen=()
  if [[ $1 == *=* ]]; then
    key=${1%%=*}
    _zerotrain_values "$key"
    if [[ $REPLY == *"<path>"* ]]; then
      mapfile -t COMPREPLY < <(compgen -f -- "${1#*=}")
      compopt -o filenames 2>/dev/null
      REPLY=${REPLY%"<path>"}
    fi
    while read -r candidate; do
      if [[ -n $candidate ]]; then COMPREPLY+=("$candidate"); fi
    done < <(compgen -W "$REPLY" -- "${1#*=}")
    COMPREPLY=("${COMPREPLY[@]/#/"$key="}")
    return
  fi
  for key in $_zerotrain_keys; do
    [[ $key == "$1"* ]] || continue
    rest=${key#"$1"}
    candidate=$key=
    if [[ $rest == *.* ]]; then candidate=$1${rest%%.*}.; fi
    if [[ -z ${seen[$candidate]-} ]]; then COMPREPLY+=("$candidate"); fi
    seen[$candidate]=1
  done
  compopt -o nospace 2>/dev/null
}

_zerotrain() {
  local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} current="" verb="" previous typed kind before REPLY
  local -a words
  read -r -a words <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${words[-1]}
    unset "words[-1]"
  fi
  COMPREPLY=()
  if [[ " $_zerotrain_verbs " == *" ${words[1]-} "* ]]; then verb=${words[1]-}; fi
  typed=$current
  previous=${words[-1]-}
  if [[ $current == --*=* ]]; then
    previous=${current%%=*}
    typed=${current#*=}
  fi
  REPLY=
  if [[ $previous == -* ]]; then _zerotrain_kind "$verb" "$previous"; fi
  kind=$REPLY
  if [[ $current == -* && $current != --*=* ]]; then
    kind=options
  elif [[ -z $kind && ${#words[@]} -le 1 ]]; then
    kind=verbs
  elif [[ -z $kind ]]; then
    _zerotrain_kind "$verb" ""
    kind=$REPLY
  fi
  case $kind in
    verbs) mapfile -t COMPREPLY < <(compgen -W "$_zerotrain_verbs train" -- "$typed") ;;
    options)
      _zerotrain_options "$verb"
      mapfile -t COMPREPLY < <(compgen -W "$REPLY" -- "$typed")
      ;;
    "choice "*) mapfile -t COMPREPLY < <(compgen -W "${kind#choice }" -- "$typed") ;;
    file)
      mapfile -t COMPREPLY < <(compgen -f -- "$typed")
      compopt -o filenames 2>/dev/null
      ;;
    directory)
      mapfile -t COMPREPLY < <(compgen -d -- "$typed")
      compopt -o filenames 2>/dev/null
      ;;
    set) _zerotrain_set "$typed" ;;
  esac
  # Readline's word begins behind the last "=", unless that was taken from COMP_WORDBREAKS.
  if [[ $COMP_WORDBREAKS == *=* ]]; then
    before=${typed%"${typed##*=}"}
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
  elif [[ $current != "$typed" ]]; then
    COMPREPLY=("${COMPREPLY[@]/#/"${current%"$typed"}"}")
  fi
}

complete -F _zerotrain zerotrain
)bash";

}  // namespace

std::string bash_completion(const std::vector<CommandUsage>& commands, const std::vector<KeyUsage>& keys) {
  std::vector<std::string> names, verbs;
  for (const KeyUsage& key : keys) names.push_back(key.key);
  for (const CommandUsage& command : commands) {
    if (!command.verb.empty()) verbs.push_back(command.verb);
  }
  return "# Completion of zerotrain for bash, written by \"zerotrain completion bash\".\n\n_zerotrain_verbs=\"" +
         joined(verbs, " ") + "\"\n_zerotrain_keys=\"\n" + joined(names, "\n") + "\"\n\n" + options_function(commands) +
         kind_function(commands) + values_function(keys) + functions;
}

}  // namespace zt
