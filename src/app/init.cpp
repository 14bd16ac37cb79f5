// Writes a config to begin with.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "app/init/starter.h"
#include "app/verbs.h"
#include "comm/mpi.h"
#include "core/errors.h"
#include "core/files.h"
#include "core/json.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

// Nothing, or a JSON object: not the data that the config is for.
bool is_config(const std::string& path) {
  constexpr std::uintmax_t largest = 1 << 20;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size > largest) return false;
  if (size == 0) return true;
  std::ifstream file(path, std::ios::binary);
  return nlohmann::json::parse(file, nullptr, false, true).is_object();
}

void check_output(const std::string& path, bool may_replace) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw UserError("--output " + path + " is a directory; name a file in it");
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error))
    throw UserError("--output " + path + ": there is no directory " + folder.string());
  if (!fs::exists(path, error)) return;
  if (!may_replace)
    throw UserError(path + " is there already: name another file with --output, or replace it with --force");
  if (!is_config(path))
    throw UserError(path + " is no config, and --force replaces configs alone: name another file with --output");
}

// As a word of a shell's line.
std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_./-+=@%,:").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

int init(int argc, const char* const* argv) {
  CLI::App app(
      "Writes a config, in which every key is explained, for a model and data of yours: a small GPT on text unless "
      "told "
      "otherwise. Data that are there are looked at, and the config is made to fit them. Asks nothing.",
      "zerotrain init");
  app.footer(
      "Examples:\n"
      "  zerotrain init --path book.txt                        a GPT on a text: gpt.json\n"
      "  zerotrain init --path table.csv --target price        an MLP on a table: mlp.json\n"
      "  zerotrain init --path mnist --size tiny               an MLP on images, in IDX files of that folder\n"
      "  zerotrain init --model gpt --data tokens --path train.bin --size gpt2 --output gpt2.json\n"
      "  zerotrain init --model mlp --data synthetic           data made up: to try things out\n\n"
      "Sizes of gpt: tiny (2 layers, 64 wide), small (4, 128), medium (6, 384), gpt2 (12, 768), gpt2-medium, "
      "gpt2-large, "
      "gpt2-xl. Of mlp: tiny (one hidden layer of 32), small (256 and 128), medium, large.");
  StarterRequest request;
  bool force = false;
  app.add_option("--model", request.model, "The model; without it: what the data are for, or gpt")
      ->check(CLI::IsMember({"gpt", "mlp"}));
  app.add_option("--data", request.data,
                 "The kind of data; without it: by the name of --path, or text for a gpt, synthetic for an mlp")
      ->check(CLI::IsMember({"text", "tokens", "idx", "csv", "synthetic"}));
  app.add_option("--size", request.size, "How large the model is, by a name that is explained below")
      ->check(CLI::IsMember(starter_sizes()))
      ->capture_default_str();
  app.add_option(
         "--path", request.path,
         "Where the data are: a file; a folder of IDX files or token files. Without it the config says where they "
         "are to be put")
      ->type_name("PATH");
  app.add_option("--target", request.target,
                 "csv: the column that is learned, by its name, or its number from 1; without it the last")
      ->type_name("COLUMN");
  app.add_option("-o,--output", request.output, "The config to write; without it gpt.json or mlp.json")
      ->type_name("FILE");
  app.add_flag("--force", force, "Replace the config that is there already");
  if (!parse_verb(app, argc, argv)) return 0;
  if (launched_by_mpi()) throw UserError("init is one process: start it without mpirun");
  const Starter starter = make_starter(request);
  check_output(starter.output, force);
  const std::string name = starter.output;
  const std::vector<std::string> head = {
      "A config of zerotrain: a " + starter.model + " on " + starter.data + " data, size " + request.size +
          ". Written by zerotrain init.",
      "  zerotrain --config " + shell_word(name) + " --dry-run       the plan: memory and communication",
      "  zerotrain --config " + shell_word(name) + "                 trains, on all cores; with --ranks N on N ranks",
      "All keys: docs/config.md, or the manual zerotrain(1). Paths count from this file's folder."};
  write_file_atomically(name, starter.config.text(head));
  std::printf("wrote %s\n", name.c_str());
  for (const std::string& line : starter.chosen) std::printf("  %s\n", line.c_str());
  if (!starter.data_are_there)
    std::printf("The data are not there yet: put them in place, or set the path in the config.\n");
  const std::string word = shell_word(name);
  std::printf("Next:\n  zerotrain --config %s --dry-run\n  zerotrain --config %s\n", word.c_str(), word.c_str());
  return 0;
}

}  // namespace zt
