// Config files in a directory of their own, and what resolving them says.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/resolve.h"

namespace zt::testing {

class ConfigDirectory {
 public:
  ConfigDirectory() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("zerotrain-config-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~ConfigDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ConfigDirectory(const ConfigDirectory&) = delete;
  ConfigDirectory& operator=(const ConfigDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Returns the name, relative to the directory.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return name;
  }
  ResolveOptions options() const {
    ResolveOptions options;
    options.current_directory = path_;
    return options;
  }

 private:
  std::filesystem::path path_;
};

inline const char* tiny_gpt() {
  return R"({ "model": { "type": "gpt", "n_layer": 2, "n_head": 2, "n_embd": 64, "n_positions": 32,
                         "vocab_size": 256 },
  "data": { "type": "synthetic", "task": "tokens" }, "train_batch_size": 8, "training": { "max_steps": 4 } })";
}

inline const char* tiny_mlp() {
  return R"({ "model": { "type": "mlp", "layers": [8, 16, 1] }, "data": { "type": "synthetic" },
  "train_batch_size": 8, "training": { "max_steps": 4 } })";
}

// A config of the texts, laid over each other in order as a.json, b.json, ...
inline ResolvedConfig resolve_texts(const std::vector<std::string>& texts, const std::vector<std::string>& sets = {},
                                    int world_size = 1, bool bf16_is_fast = false) {
  const ConfigDirectory directory;
  std::vector<std::string> files;
  for (const std::string& text : texts) {
    files.push_back(directory.write(std::string(1, static_cast<char>('a' + files.size())) + ".json", text));
  }
  ResolveOptions options = directory.options();
  options.bf16_is_fast = bf16_is_fast;
  return resolve_config(files, sets, world_size, options);
}

// The message, or "accepted".
inline std::string refusal_of(const std::vector<std::string>& texts, const std::vector<std::string>& sets = {},
                              int world_size = 1) {
  try {
    resolve_texts(texts, sets, world_size);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// Whether one of the lines has these words in it.
inline bool contains(const std::vector<std::string>& lines, const std::string& words) {
  for (const std::string& line : lines) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

inline Settings settings_of(const std::vector<std::string>& texts, const std::vector<std::string>& sets = {},
                            int world_size = 1) {
  return resolve_texts(texts, sets, world_size).settings;
}

}  // namespace zt::testing
