// A checkpoint of zerotrain's own, open for reading. What a rank asks for is read piece by piece from the files that
// hold it, so no rank needs more memory than what it reads into.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace zt {

class NativeCheckpoint {
 public:
  // Reads and checks the manifest, and that the files are there in their sizes. RunError.
  explicit NativeCheckpoint(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  bool has(const std::string& kind) const { return kinds_.contains(kind); }
  bool has(const std::string& kind, int tensor) const {
    return manifest_.holds(kind, static_cast<std::size_t>(tensor));
  }

  // Elements [first, first + count) of a tensor as fp32, in its own order. RunError.
  void read(const std::string& kind, int tensor, std::int64_t first, std::int64_t count, float* out) const;

  // Reads every `stride`-th file from `first` on and compares its checksums: RunError with the file, and the tensor
  // where that can be told. Ranks share the work.
  void verify(int first = 0, int stride = 1) const;
  // The same of the files with weights, and of the tokenizer's; and verify_weights_checksum().
  void verify_weights() const;
  // Reads all weights: RunError where the manifest says another checksum of them than they have.
  void verify_weights_checksum() const;

  // The text that the tokenizer can be made from again; empty without one.
  std::string tokenizer_definition() const;

 private:
  struct Place {
    std::int64_t offset = 0, count = 0;  // elements of the tensor
    std::size_t file = 0;
    std::string name;  // in the file
  };
  using Places = std::vector<std::vector<Place>>;  // by tensor, in order of offset
  const SafetensorsFile& open(std::size_t file) const;
  void verify_file(const CheckpointFile& file) const;
  void verify_tokenizer() const;

  std::string directory_;
  Manifest manifest_;
  std::map<std::string, Places> kinds_;
  mutable std::vector<std::unique_ptr<SafetensorsFile>> open_;  // by file, as they are needed
  mutable std::size_t open_count_ = 0;
};

// The name of a piece within its file.
std::string piece_name(const std::string& tensor, std::int64_t offset);

// What a path on the command line names: a checkpoint, a run's directory or its `checkpoints` (the newest finished
// one). UserError where there is none.
std::string find_checkpoint(const std::string& path);

}  // namespace zt
