#include "app/usage/command_usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "app/command_line.h"
#include "app/verbs.h"
#include "config/keys.h"
#include "core/json.h"

namespace zt {

namespace {

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == between) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

ArgumentKind kind_of(const std::string& argument) {
  static const std::map<std::string, ArgumentKind> kinds = {
      {"FILE", ArgumentKind::file},      {"FILE...", ArgumentKind::file},  {"DIR", ArgumentKind::directory},
      {"RUN", ArgumentKind::directory},  {"PATH", ArgumentKind::path},     {"[PATH]", ArgumentKind::path},
      {"PATH PATH", ArgumentKind::path}, {"DIR|FILE", ArgumentKind::path}, {"KEY=VALUE", ArgumentKind::key_value}};
  const auto kind = kinds.find(argument);
  return kind == kinds.end() ? ArgumentKind::other : kind->second;
}

OptionUsage usage_of(const CLI::Option& option) {
  OptionUsage usage;
  for (const std::string& name : option.get_snames()) usage.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) usage.names.push_back("--" + name);
  usage.help = option.get_description();
  usage.is_required = option.get_required();
  if (option.get_positional()) usage.position = option.get_name(true);
  if (option.get_items_expected_max() == 0) return usage;
  // "FILE", or with checks behind it: "TEXT:{fp32,bf16}".
  const std::string type = option.get_type_name();
  usage.argument = type.substr(0, type.find(':'));
  usage.kind = kind_of(usage.argument);
  if (const std::size_t list = type.find(":{"); list != std::string::npos && type.ends_with('}')) {
    usage.choices = parts_of(type.substr(list + 2, type.size() - list - 3), ',');
    usage.kind = ArgumentKind::choice;
    usage.argument.clear();
    for (const std::string& choice : usage.choices) usage.argument += (usage.argument.empty() ? "" : "|") + choice;
  }
  usage.may_lack_argument = option.get_expected_min() == 0;
  usage.takes_several = option.get_items_expected_max() > 1 && (usage.names.empty() || option.get_allow_extra_args());
  usage.fallback = option.get_default_str();
  return usage;
}

CommandUsage usage_of(const CLI::App& app) {
  CommandUsage usage;
  usage.description = app.get_description();
  usage.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) usage.options.push_back(usage_of(*option));  // those of no group are not shown
  }
  return usage;
}

// Words that a shell takes as they are.
bool is_plain(const std::string& word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
                              std::string::npos;
}

// Where these are few, as of a stage of ZeRO.
std::vector<std::string> numbers_of(const Key& key) {
  constexpr double most = 10.0;
  const bool is_bounded = key.type == KeyType::integer && std::isfinite(key.minimum) && std::isfinite(key.maximum);
  if (!is_bounded || key.maximum - key.minimum >= most) return {};
  std::vector<std::string> numbers;
  for (double number = key.minimum; number <= key.maximum; ++number) numbers.push_back(number_text(number));
  return numbers;
}

void add_value(KeyUsage& usage, const std::string& value) {
  if (is_plain(value) && std::find(usage.values.begin(), usage.values.end(), value) == usage.values.end())
    usage.values.push_back(value);
}

}  // namespace

std::vector<CommandUsage> command_usages() {
  std::vector<CommandUsage> usages(1);
  const std::array<const char*, 1> program = {"zerotrain"};
  visit_command_line([&] { static_cast<void>(parse_command_line(1, program.data())); },
                     [&](const CLI::App& app) { usages.front() = usage_of(app); });
  usages.front().summary = "trains";
  for (OptionUsage& option : usages.front().options) {
    if (option.position != "verb") continue;
    option.kind = ArgumentKind::choice;
    option.choices = {"train", "prove"};
  }
  const std::array<const char*, 2> prove = {"zerotrain", "prove"};
  visit_command_line([&] { static_cast<void>(parse_command_line(2, prove.data())); },
                     [&](const CLI::App& app) { usages.push_back(usage_of(app)); });
  usages.back().verb = "prove";
  usages.back().summary = summary_of_prove;
  for (const Verb& verb : verbs()) {
    const std::array<const char*, 1> name = {verb.name};
    visit_command_line([&] { verb.run(1, name.data()); },
                       [&](const CLI::App& app) { usages.push_back(usage_of(app)); });
    usages.back().verb = verb.name;
    usages.back().summary = verb.help;
  }
  return usages;
}

std::vector<KeyUsage> key_usages() {
  std::map<std::string, KeyUsage> by_name;
  for (const Key& key : key_table()) {
    if (key.kind != KeyKind::used || key.type == KeyType::section || !is_plain(key.path)) continue;
    const bool is_new = !by_name.contains(key.path);
    KeyUsage& usage = by_name[key.path];
    usage.key = key.path;
    const std::string help = key.help + (key.types.empty() ? "" : " (" + key.types.front() + ")");
    if (is_new) {
      usage.help = help;
      usage.allowed = describe_allowed(key);
      if (key.fallback) usage.fallback = key.fallback->dump();
    } else if (usage.help != help) {
      usage.help += "; " + help;
    }
    usage.is_path = usage.is_path || key.type == KeyType::path;
    if (key.type != KeyType::strings) {
      for (const std::string& choice : key.choices) add_value(usage, choice);
    }
    if (key.type == KeyType::boolean) {
      for (const char* value : {"true", "false"}) add_value(usage, value);
    }
    for (const std::string& number : numbers_of(key)) add_value(usage, number);
    if (key.may_be_auto) add_value(usage, "auto");
    if (key.may_be_null) add_value(usage, "null");
  }
  std::vector<KeyUsage> usages;
  for (auto& [name, usage] : by_name) usages.push_back(std::move(usage));
  return usages;
}

}  // namespace zt
