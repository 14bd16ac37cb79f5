#include "checkpoint/native_weights.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "checkpoint/checksum.h"
#include "checkpoint/native.h"
#include "checkpoint/new_directory.h"
#include "config/model_section.h"
#include "core/errors.h"
#include "core/files.h"
#include "core/shape_text.h"

namespace zt {
namespace {

class NativeWeights final : public WeightSource {
 public:
  explicit NativeWeights(const std::string& directory) : checkpoint_(directory) {
    const Manifest& manifest = checkpoint_.manifest();
    const auto section = manifest.config.find("model");
    if (section == manifest.config.end()) throw RunError(description() + " does not say what model it holds");
    try {
      model_ = model_of_section(*section);
    } catch (const UserError& error) {
      throw RunError(description() + ": " + error.what());
    }
    for (const CheckpointTensor& tensor : manifest.tensors) tensors_.push_back({tensor.name, tensor.shape});
  }

  const std::vector<Tensor>& tensors() const override { return tensors_; }
  const ModelSettings& model() const override { return model_; }
  std::string description() const override { return "the checkpoint " + checkpoint_.directory(); }
  void read(std::size_t tensor, std::int64_t first, std::int64_t count, float* out) const override {
    const std::lock_guard lock(mutex_);  // it opens files as they are needed
    checkpoint_.read(weights_kind, static_cast<int>(tensor), first, count, out);
  }
  void verify(int first, int stride) const override {
    checkpoint_.verify(first, stride);
    if (stride == 1) checkpoint_.verify_weights_checksum();
  }
  std::optional<StoredTokenizer> tokenizer() const override {
    if (!checkpoint_.manifest().tokenizer) return std::nullopt;
    StoredTokenizer tokenizer;
    tokenizer.name = checkpoint_.manifest().tokenizer->name;
    tokenizer.definition = checkpoint_.tokenizer_definition();
    return tokenizer;
  }

 private:
  NativeCheckpoint checkpoint_;
  ModelSettings model_;
  std::vector<Tensor> tensors_;
  mutable std::mutex mutex_;
};

}  // namespace

std::unique_ptr<WeightSource> open_native_weights(const std::string& path) {
  return std::make_unique<NativeWeights>(find_checkpoint(path));
}

void write_native_weights(const WeightSource& source, const std::string& directory, const std::string& program,
                          const std::optional<StoredTokenizer>& tokenizer) {
  const std::vector<WeightSource::Tensor> tensors = tensors_of(source.model());
  const std::vector<std::size_t> places = match_tensors(tensors, source);
  Manifest manifest;
  manifest.program = program;
  manifest.precision = "fp32";
  manifest.config["model"] = model_section(source.model());
  CheckpointFile file;
  file.name = "rank-00000.weights.safetensors";
  file.kind = weights_kind;
  TensorMetadata metadata = {
      {"format", "zerotrain"}, {"kind", weights_kind}, {"rank", "0"}, {"world_size", "1"}, {"step", "0"}};
  std::vector<TensorToWrite> table;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    manifest.tensors.push_back({tensors[i].name, tensors[i].shape, true});
    table.push_back({piece_name(tensors[i].name, 0), StoredType::f32, {tensors[i].count()}});
    metadata["shape." + tensors[i].name] = shape_as_list(tensors[i].shape);
    file.pieces.push_back({static_cast<int>(i), 0, tensors[i].count(), DType::f32, 0});
  }

  NewDirectory folder(directory);
  SafetensorsWriter writer(folder.path(file.name), table, metadata);
  constexpr std::int64_t piece = 1 << 20;  // elements
  std::vector<float> values(static_cast<std::size_t>(piece));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::int64_t first = 0; first < tensors[i].count(); first += piece) {
      const std::int64_t count = std::min(piece, tensors[i].count() - first);
      source.read(places[i], first, count, values.data());
      refuse_not_finite(source, tensors[i], first, values.data(), count);
      add_to_weights_checksum(manifest.weights_checksum, i, first,
                              std::span(values.data(), static_cast<std::size_t>(count)));
      writer.append(values.data(), count * static_cast<std::int64_t>(sizeof(float)));
    }
  }
  writer.finish();
  file.bytes = writer.bytes();
  file.checksum = writer.file_checksum();
  for (std::size_t i = 0; i < file.pieces.size(); ++i) file.pieces[i].checksum = writer.tensor_checksums().at(i);
  manifest.files.push_back(std::move(file));
  if (tokenizer) {
    manifest.tokenizer =
        CheckpointTokenizer{tokenizer->name, "tokenizer", static_cast<std::int64_t>(tokenizer->definition.size()),
                            checksum_of(tokenizer->definition)};
    write_file_atomically(folder.path("tokenizer"), tokenizer->definition);
  }
  // What it says of itself is read as anybody would before it counts.
  const std::string text = manifest_text(manifest);
  parse_manifest(text, folder.path(manifest_name));
  write_file_atomically(folder.path(manifest_name), text);
  folder.finish();
}

}  // namespace zt
