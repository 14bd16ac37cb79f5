// What this machine offers to a training.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <sstream>

#include "app/doctor/probes.h"
#include "app/verbs.h"
#include "comm/mpi.h"
#include "core/json.h"

namespace zt {

namespace {

using probes::Finding;
using probes::Verdict;

const char* name_of(Verdict verdict) {
  static constexpr std::array names = {"ok", "note", "problem"};
  return names.at(static_cast<std::size_t>(verdict));
}

// Text from column 24 on, wrapped at 100.
std::string wrapped(const std::string& first, const std::string& text) {
  constexpr std::size_t widest = 100;
  std::string result, line = first;
  std::istringstream words(text);
  bool is_empty = true;
  for (std::string word; words >> word;) {
    if (!is_empty && line.size() + word.size() + 1 > widest) {
      result += line + "\n";
      line = std::string(23, ' ');
    }
    line += " " + word;
    is_empty = false;
  }
  return result + line + "\n";
}

void print_text(const std::vector<Finding>& findings) {
  int notes = 0, problems = 0;
  for (const Finding& finding : findings) {
    notes += finding.verdict == Verdict::note ? 1 : 0;
    problems += finding.verdict == Verdict::problem ? 1 : 0;
    std::array<char, 40> head{};
    std::snprintf(head.data(), head.size(), "%-8s %-14s", name_of(finding.verdict), finding.subject.c_str());
    std::fputs(wrapped(head.data(), finding.found).c_str(), stdout);
    if (!finding.advice.empty()) std::fputs(wrapped(std::string(21, ' ') + "->", finding.advice).c_str(), stdout);
  }
  const auto counted = [](int count, const char* thing) { return probes::count_text(count, thing); };
  std::printf("\n%s\n", problems > 0
                            ? (counted(problems, "problem") + " would stop a run; " + counted(notes, "note")).c_str()
                            : ("nothing would stop a run; " + counted(notes, "note")).c_str());
}

void print_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"verdict", name_of(finding.verdict)},
                    {"found", finding.found},
                    {"advice", finding.advice}});
  }
  std::puts(list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace

int doctor(int argc, const char* const* argv) {
  CLI::App app(
      "Looks at this machine, changes nothing, and says what a training would meet and what to change: cores and their "
      "binding, instruction sets, memory, MPI, GPUs, limits, disk. A note is about speed, size or safety; a problem "
      "would stop a run, and then 1 is returned.",
      "zerotrain doctor");
  app.footer(
      "Examples:\n"
      "  zerotrain doctor\n"
      "  mpirun -n 4 zerotrain doctor                 with the binding that the ranks of a run would have\n"
      "  docker run --rm zerotrain doctor             what a container gets of the machine");
  bool json = false;
  app.add_flag("--json", json, "A list of objects: subject, verdict (ok, note, problem), found, advice");
  if (!parse_verb(app, argc, argv)) return 0;
  if (launched_rank() != 0) return 0;  // one speaks for all
  const std::vector<Finding> findings = probes::examine(probes::this_machine());
  if (json) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  for (const Finding& finding : findings) {
    if (finding.verdict == Verdict::problem) return 1;
  }
  return 0;
}

}  // namespace zt
