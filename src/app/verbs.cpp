#include "app/verbs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/process.h"

namespace zt {

std::span<const Verb> verbs() {
  static constexpr std::array table = {
      Verb{"init", "writes a config with comments for a model and data of one's own", init},
      Verb{"doctor", "what this machine offers to a training, and what to change", doctor},
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
      Verb{"completion", "completion of the command line for bash, zsh and fish", completion},
  };
  return table;
}

const Verb* find_verb(const char* name) {
  for (const Verb& verb : verbs()) {
    if (std::strcmp(verb.name, name) == 0) return &verb;
  }
  return nullptr;
}

namespace {

// False where the text is not, all of it, a number that the type can hold.
template <typename Number>
bool reads_as(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && !text.empty();
}

std::string shortest(double number) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return {[least, most](std::string& text) -> std::string {
            std::int64_t number = 0;
            if (reads_as(text, number) && number >= least && number <= most) return "";
            const bool is_open = most == std::numeric_limits<std::int64_t>::max();
            return "\"" + text + "\" is not a whole number from " + std::to_string(least) +
                   (is_open ? " on" : " to " + std::to_string(most)) + "";
          },
          ""};
}

CLI::Validator finite_number(double least, double most) {
  return {[least, most](std::string& text) -> std::string {
            double number = 0.0;
            if (reads_as(text, number) && number >= least && number <= most) return "";
            return "\"" + text + "\" is not a number from " + shortest(least) + " to " + shortest(most);
          },
          ""};
}

CLI::Validator seed_number() {
  return {[](std::string& text) -> std::string {
            std::uint64_t number = 0;
            if (reads_as(text, number)) return "";
            return "\"" + text + "\" is not a whole number from 0 to " +
                   std::to_string(std::numeric_limits<std::uint64_t>::max());
          },
          ""};
}

CLI::Validator local_ranks(const std::string& otherwise) {
  return {[otherwise](std::string& text) -> std::string {
            // Far more ranks than cores only bring the machine to a standstill.
            const int cores = allowed_core_count();
            const std::int64_t most = std::max(64, 16 * cores);
            const std::string wrong = whole_number(1, most)(std::as_const(text));
            std::int64_t number = 0;
            if (wrong.empty() || !reads_as(text, number) || number < 1) return wrong;
            return wrong + ", the most that are started on " + std::to_string(cores) + " core(s)" + otherwise;
          },
          ""};
}

namespace {

thread_local const std::function<void(const CLI::App&)>* visitor = nullptr;
thread_local bool was_visited = false;

}  // namespace

void visit_command_line(const std::function<void()>& build, const std::function<void(const CLI::App&)>& visit) {
  struct Visit {
    explicit Visit(const std::function<void(const CLI::App&)>& visit) {
      visitor = &visit;
      was_visited = false;
    }
    ~Visit() { visitor = nullptr; }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
  } const guard(visit);
  build();
  if (!was_visited) throw std::logic_error("a command line was not shown before it was parsed");
}

bool is_shown_to_visitor(const CLI::App& app) {
  if (visitor == nullptr) return false;
  was_visited = true;
  (*visitor)(app);
  return true;
}

bool parse_verb(CLI::App& app, int argc, const char* const* argv) {
  if (is_shown_to_visitor(app)) return false;
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
