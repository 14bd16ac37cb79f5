// manifest.json: what a checkpoint consists of (docs/checkpoints.md has the format). It is written last and ends in a
// checksum of its own, so a directory with a manifest that checks out is a whole checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/json.h"
#include "optim/early_stopping.h"
#include "optim/progress.h"

namespace zt {

inline constexpr const char* weights_kind = "weights";
inline constexpr const char* manifest_name = "manifest.json";

// A run of elements of one tensor as it lies in a file, there under the name NAME#OFFSET.
struct CheckpointPiece {
  int tensor = 0;  // index in Manifest::tensors
  std::int64_t offset = 0, count = 0;
  DType dtype = DType::f32;
  std::uint64_t checksum = 0;  // XXH3-64 of its bytes
};

// One safetensors file: pieces of one kind, "weights" or a moment's name.
struct CheckpointFile {
  std::string name, kind;
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;  // XXH3-64 of the whole file
  std::vector<CheckpointPiece> pieces;
};

struct CheckpointTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  bool trained = true;           // has moments
  std::optional<int> moments{};  // how many of the manifest's it keeps, the first ones; without a value all
  std::int64_t count() const;
};

// A file of a tokenizer's definition, to encode and decode without the data that the run was trained on.
struct CheckpointTokenizer {
  std::string name, file;  // as in data.tokenizer; in the checkpoint's directory
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;
};

struct Manifest {
  std::string program;  // that wrote it
  std::int64_t step = 0;
  int world_size = 1;
  int stage = 0;
  std::string precision;
  TrainingProgress progress;
  EarlyStoppingState early_stopping;
  std::optional<double> loss, validation_loss;  // as far as they are known and finite
  std::optional<std::int64_t> evaluated;        // step of the last evaluation, 0: none yet; not every writer tells it
  std::uint64_t weights_checksum = 0;           // as in summary.json
  std::int64_t data_samples = 0;                // of the training data: an epoch
  std::vector<std::string> moments;             // names; empty: no optimizer state is held
  std::vector<CheckpointTensor> tensors;
  std::optional<CheckpointTokenizer> tokenizer;
  nlohmann::ordered_json config;  // resolved
  std::vector<CheckpointFile> files;

  const CheckpointFile* find(std::string_view file) const;
  int tensor_index(std::string_view name) const;  // -1: none of that name
  std::vector<std::string> kinds() const;         // weights, then the moments
  // Whether weights or a moment are held of a tensor, by its index.
  bool holds(std::string_view kind, std::size_t tensor) const;
  std::int64_t bytes() const;  // of all files
};

std::string manifest_text(const Manifest& manifest);
// Everything is checked that the text alone can tell: the checksum, that every element of every kind is in exactly one
// piece, that names of files stay in the directory. RunError with `path` and what is wrong.
Manifest parse_manifest(std::string_view text, const std::string& path);

// One rank's files, on their way to the rank that writes the manifest.
std::string files_text(const std::vector<CheckpointFile>& files);
std::vector<CheckpointFile> parse_files(std::string_view text, const std::string& path);

}  // namespace zt
