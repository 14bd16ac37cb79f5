// The table of keys: every key of a config, what it may hold, its default and its help, and what becomes of it here.
// Checking, defaults, suggestions and the help text all come from it.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/json_reader.h"
#include "config/problems.h"
#include "core/spelling.h"

namespace zt {

enum class KeyType {
  section,
  boolean,
  integer,  // 64 bits; 5e8 and 2.0 count
  number,
  string,
  choice,
  path,  // made absolute
  integers,
  numbers,
  strings,
  columns,  // names or numbers (from 1) of columns of a table; one may stand without a list
  anything  // not looked into
};

enum class KeyKind {
  used,
  notice,   // known to DeepSpeed, without effect here: accepted, with one line that says why
  refused,  // promises what is not done here: an error that says what to use, unless it asks for nothing
  alias,    // an old name
  old_form  // an old switch: true stands for a value of another key, false for nothing
};

struct Key {
  std::string path;
  KeyType type = KeyType::anything;
  KeyKind kind = KeyKind::used;
  std::string help;
  std::string text;  // notice: why it has no effect; refused: what to use; alias, old_form: path of the new name

  std::optional<Json> fallback;  // default; none: required, or computed from other keys
  bool needed = false, may_be_auto = false, may_be_null = false;
  double minimum = -std::numeric_limits<double>::infinity(), maximum = std::numeric_limits<double>::infinity();
  bool minimum_excluded = false, maximum_excluded = false;
  std::size_t shortest = 0, longest = std::numeric_limits<std::size_t>::max();  // of lists
  std::vector<std::string> choices;  // of a choice, besides a number, or the elements of a list of strings
  bool any_case = false;
  std::vector<std::pair<std::string, std::string>> not_here;  // known choices that are refused, and what to use
  std::string other_choices;                                  // what to use in place of any other choice
  std::vector<std::pair<std::string, std::string>> meanings;  // words for a number, and what to write for them
  std::vector<std::string> types;  // only when the section's `type` is one of these; empty: always
  std::vector<Json> quiet;         // values that need no notice, or are not refused
  std::optional<Json> stands_for;  // old_form: what true means for the new key

  Key& standard(Json value) { return fallback = std::move(value), *this; }
  Key& or_auto() { return may_be_auto = true, *this; }
  Key& or_null() { return may_be_null = true, *this; }
  Key& required() { return needed = true, *this; }
  Key& at_least(double value) { return minimum = value, *this; }
  Key& at_most(double value) { return maximum = value, *this; }
  Key& above(double value) { return minimum = value, minimum_excluded = true, *this; }
  Key& below(double value) { return maximum = value, maximum_excluded = true, *this; }
  Key& length(std::size_t least, std::size_t most) { return shortest = least, longest = most, *this; }
  Key& one_of(std::vector<std::string> words) { return choices = std::move(words), *this; }
  Key& in_any_case() { return any_case = true, *this; }
  Key& refusing(std::string choice, std::string use) {
    return not_here.emplace_back(std::move(choice), std::move(use)), *this;
  }
  Key& meaning(std::string word, std::string number) {
    return meanings.emplace_back(std::move(word), std::move(number)), *this;
  }
  Key& others(std::string use) { return other_choices = std::move(use), *this; }
  Key& only_for(std::vector<std::string> names) { return types = std::move(names), *this; }
  Key& unless(std::vector<Json> values) { return quiet = std::move(values), *this; }
};

Key used_key(KeyType type, std::string path, std::string help);
Key notice_key(KeyType type, std::string path, std::string help, std::string why);
Key refused_key(KeyType type, std::string path, std::string help, std::string use);
Key alias_key(std::string path, std::string new_path);
Key old_form_key(std::string path, std::string new_path, Json value);

// Rows by part; key_table() joins them.
void add_own_keys(std::vector<Key>& table);
void add_data_keys(std::vector<Key>& table);  // called by add_own_keys
void add_general_keys(std::vector<Key>& table);
void add_precision_keys(std::vector<Key>& table);
void add_optimizer_keys(std::vector<Key>& table);
void add_scheduler_keys(std::vector<Key>& table);
void add_zero_keys(std::vector<Key>& table);
void add_other_sections(std::vector<Key>& table);

const std::vector<Key>& key_table();

// The key whose value decides which rows apply: "model.type" for "model.n_layer"; empty if none does.
std::string selector_of(const std::string& path);

std::string number_text(double value);         // whole numbers without a point
std::string describe_allowed(const Key& key);  // "an integer from 1"
std::string key_help();                        // the whole table, a key a line

// Old names and forms become the new ones, zero_optimization: true becomes a section. Done to each file before merging.
void replace_old_forms(ConfigTree& tree, Problems& problems, std::vector<std::string>& notices);

// Of train_batch_size and of what it is made of.
constexpr std::int64_t largest_batch = 1000000000;

struct CheckedValues {
  std::map<std::string, Json> given;            // by key path, in the type of the table; "auto" stays
  std::set<std::string> wrong;                  // keys with a mistake: rules across keys leave them alone
  std::map<std::string, std::string> selected;  // "model.type" -> "gpt"; absent when missing or wrong
};
// `current_directory` is where a path starts that no origin is known for.
CheckedValues check_keys(const ConfigTree& tree, const std::filesystem::path& current_directory, Problems& problems,
                         std::vector<std::string>& notices);

// The choice that a name used elsewhere stands for, "float16" for "fp16"; empty: none.
std::string choice_meant(const std::string& word, const std::vector<std::string>& choices);
// What another type of the same section calls a key: model.activation_function of an mlp's model.activation.
std::string counterpart_of(const std::string& path);

// Suggestions, for tests too. `section` empty: the top level.
std::string suggest_key(const std::string& section, const std::string& key,
                        const std::map<std::string, std::string>& selected);

}  // namespace zt
