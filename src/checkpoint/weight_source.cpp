#include "checkpoint/weight_source.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/errors.h"
#include "core/shape_text.h"
#include "data/message_text.h"

namespace zt {
namespace {

// The first few of a list, and how many more there are.
class ShortList {
 public:
  void add(const std::string& text) {
    ++count_;
    if (count_ > longest) return;
    if (!text_.empty()) text_ += ", ";
    text_ += text;
  }
  bool empty() const { return count_ == 0; }
  std::string text() const {
    return count_ > longest ? text_ + " and " + std::to_string(count_ - longest) + " more" : text_;
  }

 private:
  static constexpr std::size_t longest = 6;
  std::string text_;
  std::size_t count_ = 0;
};

bool has_vocabulary_rows(const std::string& name) { return name == "wte.weight" || name == "lm_head.weight"; }

}  // namespace

std::vector<WeightSource::Tensor> tensors_of(const std::vector<UnitSpec>& units) {
  std::vector<WeightSource::Tensor> tensors;
  for (const UnitSpec& unit : units) {
    for (const TensorSpec& tensor : unit.tensors) tensors.push_back({tensor.name, tensor.shape});
  }
  return tensors;
}

std::vector<std::size_t> match_tensors(const std::vector<WeightSource::Tensor>& model, const WeightSource& source) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < source.tensors().size(); ++i) places.emplace(source.tensors()[i].name, i);
  std::vector<std::size_t> found;
  std::vector<bool> is_used(source.tensors().size(), false);
  ShortList missing, unknown, different;
  std::int64_t rows_of_model = 0, rows_of_source = 0;
  for (const WeightSource::Tensor& tensor : model) {
    const auto place = places.find(tensor.name);
    if (place == places.end()) {
      missing.add(tensor.name);
      continue;
    }
    const WeightSource::Tensor& other = source.tensors()[place->second];
    is_used[place->second] = true;
    found.push_back(place->second);
    if (other.shape == tensor.shape) continue;
    if (has_vocabulary_rows(tensor.name) && other.shape.size() == 2 && other.shape[1] == tensor.shape[1]) {
      rows_of_model = tensor.shape[0];
      rows_of_source = other.shape[0];
    } else {
      different.add(tensor.name + " (" + shape_as_list(tensor.shape) + " in the model, " + shape_as_list(other.shape) +
                    " there)");
    }
  }
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    if (!is_used[i]) unknown.add(shown(source.tensors()[i].name, 120));
  }
  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back("it has not: " + missing.text());
  if (!unknown.empty()) parts.push_back("the model has not: " + unknown.text());
  if (!different.empty()) parts.push_back("of other shapes are: " + different.text());
  if (rows_of_model != rows_of_source) {
    parts.push_back("the model's vocabulary has " + std::to_string(rows_of_model) + " entries, that of the weights " +
                    std::to_string(rows_of_source) +
                    ": use the tokenizer that they were trained with, and its vocab_size");
  }
  if (parts.empty()) return found;
  std::string text = source.description() + " does not fit the model";
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? ": " : "; ") + parts[i];
  throw UserError(text);
}

void refuse_not_finite(const WeightSource& source, const WeightSource::Tensor& tensor, std::int64_t first,
                       const float* values, std::int64_t count) {
  const float* wrong = std::find_if(values, values + count, [](float value) { return !std::isfinite(value); });
  if (wrong == values + count) return;
  throw UserError(source.description() + ": element " + std::to_string(first + (wrong - values)) + " of " +
                  tensor.name + " is " + (std::isnan(*wrong) ? "not a number" : "infinite") +
                  ", so the model computes nothing: take weights from before it broke");
}

}  // namespace zt
