// The verbs besides train and prove. Each has a command line of its own and a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
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

// Checks of options: a whole number, or a finite one, in [least, most]. The message of a failure names the range.
CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());
CLI::Validator finite_number(double least, double most);
CLI::Validator seed_number();  // 64 bits without a sign

// Each in a file of its name.
int compare(int argc, const char* const* argv);
int estimate(int argc, const char* const* argv);
int evaluate(int argc, const char* const* argv);
int generate(int argc, const char* const* argv);
int inspect(int argc, const char* const* argv);
int report(int argc, const char* const* argv);
int replay(int argc, const char* const* argv);
int export_weights(int argc, const char* const* argv);  // export_import.cpp
int import_weights(int argc, const char* const* argv);
int tokenize(int argc, const char* const* argv);

}  // namespace zt
