// Weights that lie somewhere: a checkpoint of ours or a file of another program, seen as our tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "model/parameter_access.h"

namespace zt {

// A tokenizer that came with weights.
struct StoredTokenizer {
  std::string name, definition;    // as make_tokenizer takes them (data/tokenizer.h); empty where there are files alone
  std::vector<std::string> files;  // paths, where it lies in files of its own: vocab.json, merges.txt ...
  std::optional<std::int64_t> end_of_text;  // the id that ends a text
};

class WeightSource {
 public:
  struct Tensor {
    std::string name{};  // as in model/gpt_units.cpp, model/mlp.cpp
    std::vector<std::int64_t> shape{};

    std::int64_t count() const {
      std::int64_t product = 1;
      for (const std::int64_t extent : shape) product *= extent;
      return product;
    }
  };

  WeightSource() = default;
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  virtual ~WeightSource() = default;

  virtual const std::vector<Tensor>& tensors() const = 0;
  // Elements [first, first + count) of tensors()[tensor] as fp32, row-major in our layout: weights of linear layers are
  // [outputs, inputs]. Threads may read at the same time. RunError where the file cannot be read. Takes no memory that
  // grows with the tensor.
  virtual void read(std::size_t tensor, std::int64_t first, std::int64_t count, float* out) const = 0;
  virtual const ModelSettings& model() const = 0;  // that they belong to
  // Compares the checksums of every `stride`-th of its files from `first` on, where it has such: ranks share the work.
  // RunError with the file that is damaged.
  virtual void verify(int /*first*/ = 0, int /*stride*/ = 1) const {}
  virtual std::string description() const = 0;  // "Hugging Face GPT-2 in runs/x"
  virtual std::optional<StoredTokenizer> tokenizer() const { return std::nullopt; }
};

// The tensors of a model of these settings (vocabulary included), in the order of its units.
std::vector<WeightSource::Tensor> tensors_of(const std::vector<UnitSpec>& units);
std::vector<WeightSource::Tensor> tensors_of(const ModelSettings& model);

// For every tensor of `model` its place in source.tensors(). UserError that lists what either side has and the other
// has not, and shapes that differ; where only the rows of the vocabulary differ, it says so.
std::vector<std::size_t> match_tensors(const std::vector<WeightSource::Tensor>& model, const WeightSource& source);

// UserError, with the element, if a value is not finite: `values` are those of `tensor` from element `first` on.
void refuse_not_finite(const WeightSource& source, const WeightSource::Tensor& tensor, std::int64_t first,
                       const float* values, std::int64_t count);

}  // namespace zt
