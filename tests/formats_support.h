// What the tests of other programs' formats share.
#pragma once

#include <cstring>
#include <iterator>
#include <map>

#include "checkpoint/huggingface.h"
#include "checkpoint/llmc_model.h"
#include "checkpoint/open_weights.h"
#include "checkpoint/safetensors.h"
#include "core/json.h"
#include "data_support.h"

namespace zt::testing {

inline std::string golden_path(const std::string& name) {
  return std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/formats/" + name;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

using NamedValues = std::map<std::string, std::vector<float>>;

inline NamedValues values_of(const WeightSource& source) {
  NamedValues values;
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    const WeightSource::Tensor& tensor = source.tensors()[i];
    std::vector<float>& to = values[tensor.name];
    to.resize(static_cast<std::size_t>(tensor.count()));
    source.read(i, 0, tensor.count(), to.data());
  }
  return values;
}

// The tensors of a safetensors file, as a test changes them.
struct LooseTensor {
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape{};
  std::string data{};
};
using LooseTensors = std::map<std::string, LooseTensor>;

inline LooseTensors read_tensors(const std::string& path) {
  const SafetensorsFile file(path);
  LooseTensors tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    LooseTensor& to = tensors[tensor.name];
    to.type = tensor.type;
    to.shape = tensor.shape;
    to.data.resize(static_cast<std::size_t>(tensor.bytes));
    file.read(tensor, 0, tensor.elements, to.data.data());
  }
  return tensors;
}

inline void write_tensors(const std::string& path, const LooseTensors& tensors) {
  std::vector<TensorToWrite> table;
  for (const auto& [name, tensor] : tensors) table.push_back({name, tensor.type, tensor.shape});
  SafetensorsWriter writer(path, table, {{"format", "pt"}});
  for (const auto& [name, tensor] : tensors) {
    writer.append(tensor.data.data(), static_cast<std::int64_t>(tensor.data.size()));
  }
  writer.finish();
}

// A copy of the golden gpt2/ that a test may change.
class LooseModel {
 public:
  LooseModel() : tensors(read_tensors(golden_path("gpt2/model.safetensors"))) {
    config = nlohmann::json::parse(content_of(golden_path("gpt2/config.json")));
  }
  std::unique_ptr<WeightSource> open() const {
    folder.write("config.json", config.dump());
    write_tensors(folder.path("model.safetensors"), tensors);
    return open_weights(folder.path());
  }
  std::string message() const {
    return message_of([&] { open(); });
  }

  TemporaryFolder folder;
  nlohmann::json config;
  LooseTensors tensors;
};

}  // namespace zt::testing
