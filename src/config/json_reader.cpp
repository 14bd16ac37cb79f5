#include "config/json_reader.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "config/json_scanner.h"

namespace zt {
namespace {

constexpr std::uintmax_t largest_config = 16U << 20U;  // bytes: more is another kind of file given by mistake

// For what was not read from a file (--set): every key below gets the same origin.
void set_origins(const Json& value, const std::string& path, const Origin& origin,
                 const std::map<std::string, std::string>& written, ConfigTree& tree) {
  Origin& own = tree.origins[path] = origin;
  if (const auto it = written.find(path); it != written.end()) own.written = it->second;
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items()) set_origins(inner, join_path(path, key), origin, written, tree);
}

void copy_origins(const ConfigTree& from, const std::string& path, ConfigTree& to) {
  to.erase_origins_below(path);
  for (auto it = from.origins.lower_bound(path); it != from.origins.end() && it->first.starts_with(path); ++it) {
    if (it->first.size() == path.size() || it->first[path.size()] == '.') to.origins[it->first] = it->second;
  }
}

bool same_name(const Json& a, const Json& b) {
  if (!a.is_string() || !b.is_string()) return a == b;
  const auto& left = a.get_ref<const std::string&>();
  const auto& right = b.get_ref<const std::string&>();
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);  // "adamw" and "AdamW" are one optimizer
  });
}

bool changes_type(const Json& earlier, const Json& later) {
  const auto old_type = earlier.find("type");
  const auto new_type = later.find("type");
  return old_type != earlier.end() && new_type != later.end() && !is_auto(*new_type) &&
         !same_name(*old_type, *new_type);
}

void merge_section(ConfigTree& tree, Json& section, const std::string& path, const ConfigTree& later,
                   const Json& later_section) {
  for (const auto& [key, value] : later_section.items()) {
    const std::string key_path = join_path(path, key);
    const auto existing = section.find(key);
    if (existing != section.end()) {
      if (is_auto(value)) continue;
      if (existing->is_object() && value.is_object() && !changes_type(*existing, value)) {
        merge_section(tree, *existing, key_path, later, value);
        continue;
      }
    }
    section[key] = value;
    copy_origins(later, key_path, tree);
  }
}

}  // namespace

const Origin* ConfigTree::origin_of(const std::string& path) const {
  std::string key = path;
  while (true) {
    if (const auto it = origins.find(key); it != origins.end()) return &it->second;
    // A section that --set made has no origin of its own, but its keys have.
    const auto below = origins.lower_bound(key + ".");
    if (below != origins.end() && below->first.starts_with(key + ".")) return &below->second;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) return nullptr;
    key.resize(dot);
  }
}

const Json* ConfigTree::find(const std::string& path) const {
  const Json* node = &json;
  for (const std::string& key : split_path(path)) {
    if (!node->is_object()) return nullptr;
    const auto it = node->find(key);
    if (it == node->end()) return nullptr;
    node = &*it;
  }
  return node;
}

void ConfigTree::erase_origins_below(const std::string& path) {
  std::erase_if(origins, [&](const auto& entry) {
    return entry.first.starts_with(path) && (entry.first.size() == path.size() || entry.first[path.size()] == '.');
  });
}

std::string join_path(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> keys;
  std::size_t start = 0;
  while (true) {
    const std::size_t dot = path.find('.', start);
    keys.push_back(path.substr(start, dot == std::string::npos ? dot : dot - start));
    if (dot == std::string::npos) return keys;
    start = dot + 1;
  }
}

std::string blank_comments(const std::string& text, const std::string& name) {
  std::string out = text;
  if (out.starts_with("\xef\xbb\xbf")) out.replace(0, 3, "   ");  // byte order mark
  const auto blank = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      if (out[i] != '\n' && out[i] != '\r') out[i] = ' ';
    }
  };
  // A comma waits here until the next sign says whether it is a trailing one.
  std::size_t comma = std::string::npos;
  char previous = '\0';
  std::size_t at = 0;
  while (at < out.size()) {
    const char c = out[at];
    const char next = at + 1 < out.size() ? out[at + 1] : '\0';
    if (c == '"') {
      for (++at; at < out.size() && out[at] != '"' && out[at] != '\n'; ++at) {
        if (out[at] == '\\' && at + 1 < out.size() && out[at + 1] != '\n') ++at;
      }
      ++at;
      previous = '"';
      comma = std::string::npos;
    } else if (c == '#' || (c == '/' && next == '/')) {
      const std::size_t end = std::min(out.find('\n', at), out.size());
      blank(at, end);
      at = end;
    } else if (c == '/' && next == '*') {
      const std::size_t end = out.find("*/", at + 2);
      if (end == std::string::npos) {
        throw ConfigError(describe_position(text, at, name, "this comment is not closed: */ is missing"));
      }
      blank(at, end + 2);
      at = end + 2;
    } else {
      if (c == ',') {
        const bool follows_value =
            previous != '\0' && previous != ',' && previous != '[' && previous != '{' && previous != ':';
        comma = follows_value ? at : std::string::npos;
        previous = c;
      } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
        if ((c == '}' || c == ']') && comma != std::string::npos) out[comma] = ' ';
        comma = std::string::npos;
        previous = c;
      }
      ++at;
    }
  }
  return out;
}

ConfigTree read_config_text(const std::string& text, const std::string& name, const std::filesystem::path& base) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw ConfigError(name + ": the file is UTF-16: save it as UTF-8");
  }
  const std::string blanked = blank_comments(text, name);
  const ScanResult scanned = scan_json(blanked, text, name);
  throw_if_any(scanned.duplicates);
  ConfigTree tree;
  try {
    tree.json = Json::parse(blanked);
  } catch (const Json::exception& error) {  // what the scanner lets pass and the parser does not
    throw ConfigError(name + ": not JSON: " + error.what());
  }
  for (const auto& [path, line] : scanned.lines) {
    const auto written = scanned.written.find(path);
    tree.origins[path] = {name + ":" + std::to_string(line), base,
                          written == scanned.written.end() ? "" : written->second};
  }
  return tree;
}

ConfigTree read_config_file(const std::string& file, const std::filesystem::path& current_directory) {
  namespace fs = std::filesystem;
  const fs::path path = (current_directory / file).lexically_normal();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw ConfigError("config file " + file + " does not exist (looked for " + path.string() + ")");
  }
  if (fs::is_directory(status)) throw ConfigError("config file " + file + " is a directory: name a JSON file in it");
  if (fs::is_regular_file(status) && fs::file_size(path, error) > largest_config) {
    throw ConfigError("config file " + file + " is larger than 16 MiB: that is no config");
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.is_open() || stream.bad()) {
    throw ConfigError("config file " + file +
                      " cannot be read: " + (errno != 0 ? std::strerror(errno) : "input error"));
  }
  return read_config_text(text, file, path.parent_path());
}

void merge_config(ConfigTree& tree, const ConfigTree& later) { merge_section(tree, tree.json, "", later, later.json); }

Assignment parse_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw ConfigError("--set " + text + ": = is missing; write --set KEY.PATH=VALUE, as training.max_steps=100");
  }
  Assignment assignment;
  assignment.path = text.substr(0, equals);
  for (const std::string& key : split_path(assignment.path)) {
    if (key.empty()) {
      throw ConfigError("--set " + text + ": the key path \"" + assignment.path +
                        "\" has an empty part; write --set KEY.PATH=VALUE, as training.max_steps=100");
    }
  }
  const std::string value = text.substr(equals + 1);
  const std::size_t first = value.find_first_not_of(" \t\n\r");
  if (first == std::string::npos || std::string_view("{[\"").find(value[first]) == std::string_view::npos) {
    assignment.value = Json::parse(value, nullptr, false);
    if (assignment.value.is_discarded()) {
      assignment.value = value;
    } else {
      const std::size_t last = value.find_last_not_of(" \t\n\r");
      assignment.written[assignment.path] = value.substr(first, last + 1 - first);
    }
    return assignment;
  }
  const char bracket = value[first];
  Problems duplicates;
  try {
    const std::string blanked = blank_comments(value, "--set " + assignment.path);
    ScanResult scanned = scan_json_value(blanked, value, assignment.path);
    duplicates = std::move(scanned.duplicates);
    assignment.value = Json::parse(blanked);
    assignment.written = std::move(scanned.written);
  } catch (const std::exception& error) {
    throw ConfigError(std::string(error.what()) + "\n  --set: a value that starts with " + bracket +
                      " is read as JSON; in a shell, put it in single "
                      "quotes: '" +
                      assignment.path + "=" +
                      (bracket == '['   ? "[1, 2]"
                       : bracket == '{' ? "{\"key\": 1}"
                                        : "\"text\"") +
                      "'");
  }
  throw_if_any(duplicates);
  return assignment;
}

void apply_assignment(ConfigTree& tree, const Assignment& assignment, const std::filesystem::path& current_directory) {
  const std::vector<std::string> keys = split_path(assignment.path);
  Json* node = &tree.json;
  std::string path;
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    path = join_path(path, keys[i]);
    auto it = node->find(keys[i]);
    if (it == node->end() || it->is_null() || is_auto(*it)) {
      (*node)[keys[i]] = Json::object();
      it = node->find(keys[i]);
    }
    if (!it->is_object()) {
      throw ConfigError("--set " + assignment.path + ": " + path + " is " + it->dump() + ", not a section; set " +
                        path + " as a whole");
    }
    node = &*it;
  }
  (*node)[keys.back()] = assignment.value;
  tree.erase_origins_below(assignment.path);
  set_origins(assignment.value, assignment.path, {"--set", current_directory}, assignment.written, tree);
}

}  // namespace zt
