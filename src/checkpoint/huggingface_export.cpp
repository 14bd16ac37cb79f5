// Writing.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "checkpoint/huggingface.h"
#include "checkpoint/huggingface_config.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/transposed.h"
#include "core/files.h"
#include "core/json.h"

namespace zt {
namespace {

// The tensors of one safetensors file, as indices into the model's.
struct Shard {
  std::vector<std::size_t> tensors;
  std::int64_t bytes = 0;
  std::string name;
};

std::vector<Shard> shards_of(const std::vector<WeightSource::Tensor>& tensors, const HuggingfaceExport& options) {
  std::vector<Shard> shards(1);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = tensors[i].count() * static_cast<std::int64_t>(size_of(options.dtype));
    if (shards.back().bytes > 0 && shards.back().bytes + bytes > options.largest_file) shards.emplace_back();
    shards.back().tensors.push_back(i);
    shards.back().bytes += bytes;
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    char name[64] = "model.safetensors";
    if (shards.size() > 1) std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    shards[i].name = name;
  }
  return shards;
}

std::string stored_name(const WeightSource::Tensor& tensor) {
  const HuggingfaceName theirs = huggingface_name(tensor.name);
  return (theirs.has_prefix ? "transformer." : "") + theirs.name;
}

std::vector<std::int64_t> stored_shape(const WeightSource::Tensor& tensor) {
  std::vector<std::int64_t> shape = tensor.shape;
  if (huggingface_name(tensor.name).transposed) std::swap(shape.at(0), shape.at(1));
  return shape;
}

// Appends a tensor in the library's layout and the file's format.
void append_tensor(SafetensorsWriter& writer, const WeightSource& source, std::size_t from, DType dtype) {
  const WeightSource::Tensor& tensor = source.tensors()[from];
  const bool transposed = huggingface_name(tensor.name).transposed;
  constexpr std::int64_t piece = 1 << 20;  // elements
  std::vector<float> values(static_cast<std::size_t>(std::min(piece, tensor.count())));
  const ReadFloats read = [&](std::int64_t first, std::int64_t count, float* out) {
    source.read(from, first, count, out);
    refuse_not_finite(source, tensor, first, out, count);
  };
  for (std::int64_t first = 0; first < tensor.count(); first += piece) {
    const std::int64_t count = std::min(piece, tensor.count() - first);
    if (transposed) {
      read_transposed(read, tensor.shape[1], tensor.shape[0], first, count, values.data());
    } else {
      read(first, count, values.data());
    }
    from_floats(values.data(), count, dtype, values.data());
    writer.append(values.data(), count * static_cast<std::int64_t>(size_of(dtype)));
  }
}

nlohmann::ordered_json index_of(const std::vector<Shard>& shards, const std::vector<WeightSource::Tensor>& tensors) {
  nlohmann::ordered_json index;
  std::int64_t bytes = 0;
  for (const Shard& shard : shards) bytes += shard.bytes;
  index["metadata"]["total_size"] = bytes;
  for (const Shard& shard : shards) {
    for (const std::size_t tensor : shard.tensors) index["weight_map"][stored_name(tensors[tensor])] = shard.name;
  }
  return index;
}

}  // namespace

std::vector<std::string> export_huggingface(const WeightSource& source, const ModelSettings& model,
                                            const std::string& directory, const HuggingfaceExport& options) {
  const nlohmann::ordered_json config = huggingface_config(model, options.dtype, options.end_of_text);
  const std::vector<WeightSource::Tensor> tensors = tensors_of(model);
  const std::vector<std::size_t> places = match_tensors(tensors, source);
  NewDirectory folder(directory);
  std::vector<std::string> written;
  const auto write_text = [&](const std::string& name, const std::string& text) {
    write_file_atomically(folder.path(name), text);
    written.push_back(name);
  };
  write_text("config.json", config.dump(2) + "\n");
  nlohmann::ordered_json generation;
  generation["bos_token_id"] = config["bos_token_id"];
  generation["eos_token_id"] = config["eos_token_id"];
  write_text("generation_config.json", generation.dump(2) + "\n");
  for (const NamedText& file : options.tokenizer_files) write_text(file.name, file.text);

  const std::vector<Shard> shards = shards_of(tensors, options);
  for (const Shard& shard : shards) {
    std::vector<TensorToWrite> table;
    for (const std::size_t i : shard.tensors) {
      table.push_back({stored_name(tensors[i]), stored_type(options.dtype), stored_shape(tensors[i])});
    }
    SafetensorsWriter writer(folder.path(shard.name), table, {{"format", "pt"}});
    for (const std::size_t i : shard.tensors) append_tensor(writer, source, places[i], options.dtype);
    writer.finish();
    written.push_back(shard.name);
  }
  if (shards.size() > 1) write_text("model.safetensors.index.json", index_of(shards, tensors).dump(2) + "\n");
  folder.finish();
  return written;
}

}  // namespace zt
