#include "config/resolve.h"

#include <algorithm>

#include "config/keys.h"
#include "config/resolver.h"

namespace zt {
namespace {

bool is_at_or_below(const std::string& path, const std::string& section) {
  return path.starts_with(section) && (path.size() == section.size() || path[section.size()] == '.');
}

// --set takes old names of keys, too, but not both names of one key.
class NewNames {
 public:
  NewNames(Problems& problems, std::vector<std::string>& notices) : problems_(problems), notices_(notices) {}

  // False: the assignment is to be left out, which has been told.
  bool use(Assignment& assignment) {
    std::string old_name;
    for (const Key& key : key_table()) {
      if (key.kind != KeyKind::alias || !is_at_or_below(assignment.path, key.path)) continue;
      old_name = key.path;
      const auto renamed = [&](const std::string& path) { return key.text + path.substr(key.path.size()); };
      assignment.path = renamed(assignment.path);
      std::map<std::string, std::string> written;
      for (const auto& [path, text] : assignment.written) written.emplace(renamed(path), text);
      assignment.written = std::move(written);
      break;
    }
    for (const auto& [path, other] : seen_) {
      if (other == old_name || !(is_at_or_below(path, assignment.path) || is_at_or_below(assignment.path, path)))
        continue;
      const std::string& name = old_name.empty() ? other : old_name;
      problems_.push_back(
          {name, "--set", "an old name of " + new_name_of(name) + ", which is given too: remove one of them"});
      return false;
    }
    seen_.emplace_back(assignment.path, old_name);
    if (!old_name.empty()) notices_.push_back("--set: " + old_name + " is an old name of " + new_name_of(old_name));
    return true;
  }

 private:
  static std::string new_name_of(const std::string& old_name) {
    for (const Key& key : key_table()) {
      if (key.kind == KeyKind::alias && key.path == old_name) return key.text;
    }
    return old_name;
  }

  Problems& problems_;
  std::vector<std::string>& notices_;
  std::vector<std::pair<std::string, std::string>> seen_;  // path assigned to, and the old name that was written
};

ConfigTree read_all(const std::vector<std::string>& files, const std::vector<std::string>& sets,
                    const ResolveOptions& options, Problems& problems, std::vector<std::string>& notices) {
  const std::filesystem::path& current_directory = options.current_directory;
  ConfigTree tree;
  std::string unreadable;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const ConfigError& error) {
      unreadable += (unreadable.empty() ? "" : "\n") + std::string(error.what());
    }
  };
  if (options.base) {
    for (const auto& [key, value] : options.base->items())
      attempt([&, &name = key, &section = value] { apply_assignment(tree, {name, section}, current_directory); });
    for (auto& [path, origin] : tree.origins) origin.text = "the checkpoint's config";
  }
  for (const std::string& file : files) {
    attempt([&] {
      ConfigTree next = read_config_file(file, current_directory);
      replace_old_forms(next, problems, notices);
      merge_config(tree, next);
    });
  }
  NewNames names(problems, notices);
  for (const std::string& set : sets) {
    attempt([&] {
      Assignment assignment = parse_assignment(set);
      if (!names.use(assignment)) return;
      apply_assignment(tree, assignment, current_directory);
      replace_old_forms(tree, problems, notices);
    });
  }
  // What cannot be read cannot be checked: these come alone.
  if (!unreadable.empty()) throw ConfigError(unreadable);
  return tree;
}

}  // namespace

ResolvedConfig resolve_config(const std::vector<std::string>& files, const std::vector<std::string>& sets,
                              int world_size, const ResolveOptions& options) {
  if (files.empty() && sets.empty() && !options.base) {
    throw ConfigError("no config is given: name a JSON file with --config FILE");
  }
  Problems problems;
  ResolvedConfig result;
  ConfigTree tree = read_all(files, sets, options, problems, result.notices);
  const Json* training = tree.find("training");
  // Where it is no section the check says so.
  if (training == nullptr || training->is_null() || training->is_object()) {
    if (options.output_dir) {
      apply_assignment(tree, {"training.output_dir", *options.output_dir}, options.current_directory);
      tree.origins["training.output_dir"].text = "--output";
    } else if (tree.find("training.output_dir") == nullptr) {
      const std::string stem = files.empty() ? "run" : std::filesystem::path(files.front()).stem().string();
      apply_assignment(tree, {"training.output_dir", "runs/" + stem}, options.current_directory);
      tree.erase_origins_below("training.output_dir");
    }
  }
  Resolver resolver(tree, world_size, options, problems, result.notices);
  resolver.apply_rules();
  throw_if_any(problems);
  result.settings = resolver.to_settings();
  result.json = resolver.to_json();
  result.left_open = resolver.left_open();
  result.memory_limit = resolver.memory_limit();
  return result;
}

void settle(ResolvedConfig& config, const LateValues& values) {
  Settings& settings = config.settings;
  if (values.vocab_size && settings.model.type == "gpt") {
    settings.model.gpt.vocab_size = *values.vocab_size;
    config.json["model"]["vocab_size"] = *values.vocab_size;
  }
  Json& device = config.json["device"];
  if (values.device_type) device["type"] = settings.device.type = *values.device_type;
  if (values.threads) device["threads"] = settings.device.threads = *values.threads;
  if (values.communicator) device["communicator"] = settings.device.communicator = *values.communicator;
  if (values.ranks_per_node) device["ranks_per_node"] = settings.device.ranks_per_node = *values.ranks_per_node;
  if (values.instruction_set) device["instruction_set"] = settings.device.instruction_set = *values.instruction_set;
}

}  // namespace zt
