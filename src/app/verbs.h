// The verbs besides train and prove. Each has a command line of its own and a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>

namespace zt {

struct Verb {
  const char* name;
  const char* help;  // one line, for zerotrain --help
  // `argv[0]` is the verb. Returns the exit code; errors as UserError and RunError.
  int (*run)(int argc, const char* const* argv);
};

std::span<const Verb> verbs();
const Verb* find_verb(const char* name);  // null: there is none of that name

// Parses a verb's command line. False: its help was asked for and has been printed. UserError.
bool parse_verb(CLI::App& app, int argc, const char* const* argv);

// What is generated from the command lines, completion and the manual, sees each one as its verb builds it: `build` (a
// verb, or the parser of zerotrain's own line) comes to the point where it would parse, `visit` gets the app there, and
// nothing is parsed or done.
void visit_command_line(const std::function<void()>& build, const std::function<void(const CLI::App&)>& visit);
bool is_shown_to_visitor(const CLI::App& app);  // for those who parse: true if it was only built to be looked at

// Checks of options: a whole number, or a finite one, in [least, most]. The message of a failure names the range.
CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());
CLI::Validator finite_number(double least, double most);
CLI::Validator seed_number();  // 64 bits without a sign
// A number of ranks that are started on this machine; `otherwise` is what can be done for more than that.
CLI::Validator local_ranks(const std::string& otherwise = "");

// Each in a file of its name.
int completion(int argc, const char* const* argv);
int compare(int argc, const char* const* argv);
int estimate(int argc, const char* const* argv);
int evaluate(int argc, const char* const* argv);
int generate(int argc, const char* const* argv);
int doctor(int argc, const char* const* argv);
int init(int argc, const char* const* argv);
int inspect(int argc, const char* const* argv);
int report(int argc, const char* const* argv);
int replay(int argc, const char* const* argv);
int export_weights(int argc, const char* const* argv);  // export_import.cpp
int import_weights(int argc, const char* const* argv);
int tokenize(int argc, const char* const* argv);

}  // namespace zt
