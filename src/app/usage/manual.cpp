#include "app/usage/manual.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "app/usage/completion.h"
#include "app/version.h"

namespace zt {

namespace {

constexpr std::size_t widest = 76;  // signs of a line of text: lines up to 80 are asked for

// A word as it is to be read: no escapes, hyphens that can be copied.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

// A line of text must not begin like a request.
std::string as_line(const std::string& text) {
  return text.starts_with('.') || text.starts_with('\'') ? "\\&" + text : text;
}

// Running text: a sentence begins a line, as the macros ask for.
std::string paragraph(const std::string& text) {
  std::string result, line;
  const auto end_line = [&] {
    if (!line.empty()) result += as_line(line) + "\n";
    line.clear();
  };
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::string shown = escaped(word);
    if (line.size() + shown.size() + 1 > widest) end_line();
    line += (line.empty() ? "" : " ") + shown;
    if (word.find_last_of(".?!") == word.size() - 1) end_line();
  }
  end_line();
  return result;
}

std::string sentence(const std::string& text) {
  const bool ends = text.ends_with('.') || text.ends_with('?') || text.empty();
  return paragraph(text + (ends ? "" : "."));
}

// An argument of a macro: quoted where the macros would look at it.
std::string argument(const std::string& text) { return "\"" + escaped(text) + "\""; }

// Lines that begin with blanks are shown as they are, the others are text.
std::string footer_text(const std::string& footer) {
  std::string result;
  bool literal = false;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const bool is_literal = line.starts_with("  ");
    if (is_literal != literal) result += is_literal ? ".Bd -literal\n" : ".Ed\n";
    if (!is_literal && !line.empty()) result += ".Pp\n" + paragraph(line);
    if (is_literal) result += as_line(escaped(line.substr(2))) + "\n";
    literal = is_literal;
  }
  return result + (literal ? ".Ed\n" : "");
}

std::string heading_of(const OptionUsage& option) {
  std::string text = ".It";
  for (const std::string& name : option.names) {
    text += (&name == &option.names.front() ? "" : " ,");
    text += " Fl " + escaped(name.substr(1));
  }
  if (option.names.empty()) text += " Ar " + argument(option.position);
  if (!option.names.empty() && !option.argument.empty()) text += " Ar " + argument(option.argument);
  return text + "\n";
}

std::string options_of(const CommandUsage& command) {
  std::string text = ".Bl -tag -width Ds\n";
  for (const OptionUsage& option : command.options) {
    text += heading_of(option) + sentence(option.help);
    if (option.names.empty() && !option.choices.empty()) text += sentence("One of " + joined(option.choices, ", "));
    if (option.is_required) text += "Required.\n";
    if (!option.fallback.empty()) text += sentence("Default: " + option.fallback);
  }
  return text + ".El\n";
}

std::string synopsis_of(const CommandUsage& command) {
  std::string text = ".Nm\n";
  if (!command.verb.empty()) text += ".Cm " + command.verb + "\n";
  bool has_more = false;
  for (const OptionUsage& option : command.options) {
    if (option.is_required && !option.names.empty()) {
      text += ".Fl " + escaped(option.names.back().substr(1)) + " Ar " + argument(option.argument) + "\n";
    } else if (!option.names.empty()) {
      has_more = true;
    }
  }
  if (command.verb.empty()) {
    return ".Nm\n.Op Cm train\n.Fl \\-config Ar FILE\n.Op Ar options\n";
  }
  if (has_more) text += ".Op Ar options\n";
  if (const OptionUsage* position = position_of(command); position != nullptr && position->names.empty())
    text += ".Ar " + argument(position->position) + (position->takes_several ? " ...\n" : "\n");
  return text;
}

std::string keys_text() {
  std::string text =
      ".Sh KEYS OF A CONFIG\n" +
      paragraph(
          "A config is a JSON file, in which comments and trailing commas may stand; several are merged left to right. "
          "Keys at its top level and in the sections that DeepSpeed has are DeepSpeed's. On the command line a key is "
          "given as --set KEY=VALUE. Keys that DeepSpeed knows and that have no effect here are not listed.") +
      ".Bl -tag -width Ds\n";
  for (const KeyUsage& key : key_usages()) {
    text += ".It Ic " + key.key + "\n" + sentence(key.help) + sentence("Allowed: " + key.allowed);
    if (!key.fallback.empty()) text += sentence("Default: " + key.fallback);
  }
  return text + ".El\n";
}

// "November 30, 2026", of "2026-11-30".
std::string long_date(const std::string& date) {
  static constexpr std::array months = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};
  const auto number = [&](std::size_t first, std::size_t count) {
    return std::atoi(date.substr(first, count).c_str());
  };
  const int month = date.size() == 10 ? number(5, 2) : 0;
  if (month < 1 || month > 12) return date;
  return std::string(months.at(static_cast<std::size_t>(month - 1))) + " " + std::to_string(number(8, 2)) + ", " +
         date.substr(0, 4);
}

constexpr const char* last_sections = R"(.Sh ENVIRONMENT
.Bl -tag -width Ds
.It Ev ZEROTRAIN_CUDA_BACKEND
The file of the CUDA backend, where it is neither beside the program nor in
.Pa ../lib/zerotrain
beside its folder.
.It Ev ZEROTRAIN_NCCL
The file of NCCL, where libnccl.so.2 is in no folder of libraries.
.It Ev ZEROTRAIN_ALLOW_SHARED_GPU
Set to anything, ranks that share a GPU may use NCCL, where it can do that.
.It Ev CUDA_VISIBLE_DEVICES
Which GPUs a process sees.
.El
.Sh FILES
A run leaves in its output directory:
.Bl -tag -width Ds
.It Pa summary.json
What came of it: losses, memory, communication, throughput.
.It Pa metrics.jsonl
An object a step and evaluation.
.It Pa config.resolved.json
Every key and its value.
.It Pa train.log
What was said on the screen.
.It Pa checkpoints/
Where
.Ic training.checkpoint_interval
asks for them, or the run was stopped.
.El
.Sh EXIT STATUS
.Bl -tag -width Ds
.It 0
Done.
Of
.Cm compare
and
.Cm replay :
nothing differs.
.It 1
It failed once it had begun.
Of
.Cm compare ,
.Cm replay
and
.Cm prove :
something differs; of
.Cm doctor :
a problem would stop a run.
.It 2
Found before: a wrong command line or config,
data that are missing or do not fit.
.It 128 + the signal
Stopped by SIGINT, SIGTERM or SIGUSR1, with a checkpoint.
.El
.Sh SEE ALSO
The documentation beside the program, in
.Pa share/doc/zerotrain .
)";

}  // namespace

std::string manual_page(const std::vector<CommandUsage>& commands) {
  std::string text = ".\\\" Written by \"zerotrain --print-manual\" from the program's own help.\n.Dd " +
                     long_date(program_date()) + "\n.Dt ZEROTRAIN 1\n.Os \"zerotrain " + program_version() +
                     "\"\n.Sh NAME\n.Nm zerotrain\n.Nd train neural networks from one JSON file, sharded by ZeRO\n"
                     ".Sh SYNOPSIS\n";
  for (const CommandUsage& command : commands) text += synopsis_of(command);
  const CommandUsage& main = commands.front();
  text +=
      ".Sh DESCRIPTION\n" + sentence(main.description) +
      paragraph(
          "Models are GPTs and MLPs; parameters, gradients and optimizer states are sharded over ranks by the stages "
          "of ZeRO. Whatever the stage, the same config gives the same weights, to the last bit.") +
      ".Pp\nIts own options:\n" + options_of(main) + footer_text(main.footer) + ".Sh VERBS\n";
  for (const CommandUsage& command : commands) {
    if (command.verb.empty()) continue;
    text += ".Ss " + command.verb + "\n" + sentence(command.description) + options_of(command) +
            footer_text(command.footer);
  }
  return text + keys_text() + last_sections;
}

}  // namespace zt
