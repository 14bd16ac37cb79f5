#include "app/verbs.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "core/errors.h"

namespace zt {

std::span<const Verb> verbs() {
  static constexpr std::array table = {
      Verb{"compare", "where two runs or two checkpoints part: the first step, the first tensor", compare},
      Verb{"estimate", "memory, communication and time of a training at any stage and number of ranks", estimate},
      Verb{"generate", "text that a checkpoint's model writes", generate},
      Verb{"evaluate", "a checkpoint's loss on validation data", evaluate},
      Verb{"inspect", "what a checkpoint holds, and whether it is whole", inspect},
      Verb{"replay", "one step of a run again, to the bit, in one process", replay},
      Verb{"report", "what runs did, as one HTML page with figures or as text", report},
      Verb{"export", "writes weights in another program's format: Hugging Face, llm.c", export_weights},
      Verb{"import", "makes a checkpoint of another program's weights", import_weights},
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
