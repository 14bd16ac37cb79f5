#include "app/verbs.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "core/errors.h"

namespace zt {

std::span<const Verb> verbs() {
  static constexpr std::array table = {
      Verb{"inspect", "what a checkpoint holds, and whether it is whole", inspect},
      Verb{"tokenize", "token files from text, or a vocabulary trained on it", tokenize},
  };
  return table;
}

const Verb* find_verb(const char* name) {
  for (const Verb& verb : verbs()) {
    if (std::strcmp(verb.name, name) == 0) return &verb;
  }
  return nullptr;
}

bool parse_verb(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UserError(std::string(error.what()) + "\nSee " + app.get_name() + " --help.");
  }
  return true;
}

}  // namespace zt
