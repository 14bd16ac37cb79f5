// Config text to one tree of values that knows where each value came from.
//
// Read tolerantly: //, # and /* */ comments, trailing commas. Everything else is JSON; a syntax error is told with
// file, line, column, the line itself and a caret. A key given twice in one file is an error.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/problems.h"
#include "core/json.h"

namespace zt {

using Json = nlohmann::ordered_json;

struct Origin {
  std::string text;            // "gpt.json:12" or "--set"
  std::filesystem::path base;  // relative paths of inputs given there start here
  std::string written{};       // a number, true, false or null as it stands there; empty: another value, or unknown
};

struct ConfigTree {
  Json json = Json::object();
  std::map<std::string, Origin> origins;  // by key path, "optimizer.params.lr"

  // Of the key, else of the nearest section around it; null when there is none.
  const Origin* origin_of(const std::string& path) const;
  const Json* find(const std::string& path) const;
  void erase_origins_below(const std::string& path);  // the key itself included
};

std::string join_path(const std::string& section, const std::string& key);
std::vector<std::string> split_path(const std::string& path);
inline bool is_auto(const Json& value) { return value.is_string() && value.get_ref<const std::string&>() == "auto"; }

// Comments and trailing commas become blanks; every other character keeps its position.
std::string blank_comments(const std::string& text, const std::string& name);

// `name` stands in messages; throws ConfigError.
ConfigTree read_config_text(const std::string& text, const std::string& name, const std::filesystem::path& base);
ConfigTree read_config_file(const std::string& file, const std::filesystem::path& current_directory);

// Lays `later` over `tree`, key by key. A section whose "type" changes is replaced whole; "auto" never replaces a
// value.
void merge_config(ConfigTree& tree, const ConfigTree& later);

struct Assignment {  // of --set
  std::string path{};
  Json value{};
  std::map<std::string, std::string> written{};  // as in Origin, by key path
};
// "a.b.c=VALUE": VALUE is JSON, or else a string.
Assignment parse_assignment(const std::string& text);
// Replaces the value of one key; throws ConfigError when something on the way is not a section.
void apply_assignment(ConfigTree& tree, const Assignment& assignment, const std::filesystem::path& current_directory);

}  // namespace zt
