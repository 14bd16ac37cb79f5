// The verb completion, and what the shells' scripts share.
#include "app/usage/completion.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/verbs.h"

namespace zt {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string first_sentence(const std::string& text) {
  std::size_t end = text.find(". ");
  if (end == std::string::npos && text.ends_with('.')) end = text.size() - 1;
  return text.substr(0, end);
}

std::vector<std::pair<std::string, std::string>> verb_summaries(const std::vector<CommandUsage>& commands) {
  std::vector<std::pair<std::string, std::string>> summaries = {{"train", "trains what the config says (the default)"}};
  for (const CommandUsage& command : commands) {
    if (!command.verb.empty()) summaries.emplace_back(command.verb, command.summary);
  }
  return summaries;
}

const OptionUsage* position_of(const CommandUsage& command) {
  for (const OptionUsage& option : command.options) {
    if (!option.position.empty()) return &option;
  }
  return nullptr;
}

int completion(int argc, const char* const* argv) {
  CLI::App app(
      "Prints a script by which a shell completes zerotrain's verbs and options, files, and after --set the keys of a "
      "config and their values. An installed zerotrain has put them where the shells look.",
      "zerotrain completion");
  app.footer(
      "Examples:\n"
      "  source <(zerotrain completion bash)\n"
      "  zerotrain completion bash > ~/.local/share/bash-completion/completions/zerotrain\n"
      "  zerotrain completion zsh > ~/.zfunc/_zerotrain      (a folder of fpath, before compinit)\n"
      "  zerotrain completion fish > ~/.config/fish/completions/zerotrain.fish");
  std::string shell;
  app.add_option("shell", shell, "Whose script")->check(CLI::IsMember({"bash", "zsh", "fish"}))->required();
  if (!parse_verb(app, argc, argv)) return 0;
  const auto script = shell == "bash" ? bash_completion : shell == "zsh" ? zsh_completion : fish_completion;
  std::fputs(script(command_usages(), key_usages()).c_str(), stdout);
  return 0;
}

}  // namespace zt
