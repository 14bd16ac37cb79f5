// Reads the files of tests/golden/, which scripts/golden/make_golden.py writes (and describes): a line of JSON, then
// raw little-endian numbers.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/json.h"

namespace zt::golden {

class GoldenFile {
 public:
  // `name` without folder or ending: "gpt". The folder is tests/golden, or what the environment's ZEROTRAIN_GOLDEN
  // says.
  explicit GoldenFile(const std::string& name) {
    const char* other = std::getenv("ZEROTRAIN_GOLDEN");
    const std::filesystem::path folder = other != nullptr
                                             ? std::filesystem::path(other)
                                             : std::filesystem::path(ZEROTRAIN_SOURCE_DIR) / "tests" / "golden";
    path_ = (folder / (name + ".golden")).string();
    std::ifstream file(path_, std::ios::binary);
    std::string line;
    if (!file || !std::getline(file, line)) throw std::runtime_error("cannot read " + path_);
    header_ = nlohmann::json::parse(line);
    data_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }

  // All but the numbers: "model", "runs", "steps", "distance", or "cases" of the schedules.
  const nlohmann::json& header() const { return header_; }

  bool has(const std::string& name) const { return header_.at("tensors").contains(name); }
  std::vector<std::int64_t> shape(const std::string& name) const {
    return entry(name).at("shape").get<std::vector<std::int64_t>>();
  }
  // Names that start with `prefix`, without it, in the order of names: names("initial/") are the weights.
  std::vector<std::string> names(const std::string& prefix = {}) const {
    std::vector<std::string> found;
    for (const auto& item : header_.at("tensors").items()) {
      if (item.key().starts_with(prefix)) found.push_back(item.key().substr(prefix.size()));
    }
    return found;
  }

  // Row-major values; the tensor must have that very dtype.
  std::vector<float> floats(const std::string& name) const { return values<float>(name, "float32"); }
  std::vector<double> doubles(const std::string& name) const { return values<double>(name, "float64"); }
  std::vector<std::int32_t> integers(const std::string& name) const { return values<std::int32_t>(name, "int32"); }

 private:
  const nlohmann::json& entry(const std::string& name) const {
    if (!has(name)) throw std::runtime_error(path_ + " has no tensor " + name);
    return header_.at("tensors").at(name);
  }

  template <typename T>
  std::vector<T> values(const std::string& name, const std::string& dtype) const {
    const nlohmann::json& tensor = entry(name);
    if (tensor.at("dtype") != dtype) throw std::runtime_error(path_ + ": " + name + " is not " + dtype);
    std::size_t count = 1;
    for (const std::int64_t dimension : shape(name)) count *= static_cast<std::size_t>(dimension);
    const auto offset = tensor.at("offset").get<std::size_t>();
    if (offset + count * sizeof(T) > data_.size()) throw std::runtime_error(path_ + ": cut short at " + name);
    std::vector<T> result(count);
    if (count > 0) std::memcpy(result.data(), data_.data() + offset, count * sizeof(T));
    return result;
  }

  std::string path_;
  nlohmann::json header_;
  std::vector<char> data_;
};

}  // namespace zt::golden
