#include "config/resolve.h"

#include <algorithm>

#include "config/keys.h"
#include "config/resolver.h"

namespace zt {
namespace {

// --set takes old names of keys, too.
void use_new_name(Assignment& assignment) {
  for (const Key& key : key_table()) {
    if (key.kind != KeyKind::alias) continue;
    if (assignment.path == key.path || assignment.path.starts_with(key.path + ".")) {
      assignment.path = key.text + assignment.path.substr(key.path.size());
      return;
    }
  }
}

ConfigTree read_all(const std::vector<std::string>& files, const std::vector<std::string>& sets,
                    const std::filesystem::path& current_directory, Problems& problems,
                    std::vector<std::string>& notices) {
  ConfigTree tree;
  std::string unreadable;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const ConfigError& error) {
      unreadable += (unreadable.empty() ? "" : "\n") + std::string(error.what());
    }
  };
  for (const std::string& file : files) {
    attempt([&] {
      ConfigTree next = read_config_file(file, current_directory);
      replace_old_forms(next, problems, notices);
      merge_config(tree, next);
    });
  }
  for (const std::string& set : sets) {
    attempt([&] {
      Assignment assignment = parse_assignment(set);
      use_new_name(assignment);
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
  if (files.empty() && sets.empty()) {
    throw ConfigError("no config is given: name a JSON file with --config FILE");
  }
  Problems problems;
  ResolvedConfig result;
  ConfigTree tree = read_all(files, sets, options.current_directory, problems, result.notices);
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
  return result;
}

void settle(ResolvedConfig& config, const LateValues& values) {
  Settings& settings = config.settings;
  if (values.vocab_size && settings.model.type == "gpt") {
    settings.model.gpt.vocab_size = *values.vocab_size;
    config.json["model"]["vocab_size"] = *values.vocab_size;
  }
  Json& device = config.json["device"];
  if (values.threads) device["threads"] = settings.device.threads = *values.threads;
  if (values.communicator) device["communicator"] = settings.device.communicator = *values.communicator;
  if (values.ranks_per_node) device["ranks_per_node"] = settings.device.ranks_per_node = *values.ranks_per_node;
  if (values.instruction_set) device["instruction_set"] = settings.device.instruction_set = *values.instruction_set;
}

}  // namespace zt
