// Rows of numbers from a CSV file: features and targets, held as fp32.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>

#include "core/errors.h"
#include "data/csv_table.h"
#include "data/faults.h"
#include "data/open.h"

namespace zt {
namespace {

// Rows [rows, features] with values [rows, targets], or with classes [rows].
struct Rows {
  std::int64_t features = 0, targets = 0;  // targets 0: classes
  std::vector<float> feature_values, target_values;
  std::vector<std::int32_t> classes;

  std::int64_t count() const { return static_cast<std::int64_t>(feature_values.size()) / features; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(4 * (feature_values.size() + target_values.size() + classes.size()));
  }
};

class RowSource final : public Source {
 public:
  explicit RowSource(Rows rows) : rows_(std::move(rows)) {}

  SampleShape shape() const override {
    return {.token_targets = rows_.targets == 0 ? 1 : 0, .features = rows_.features, .value_targets = rows_.targets};
  }
  std::int64_t samples() const override { return rows_.count(); }

  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples());
    const auto copy = [&](const auto& from, auto to) {
      std::copy_n(from.begin() + index * static_cast<std::int64_t>(to.size()), to.size(), to.begin());
    };
    copy(rows_.feature_values, out.features);
    copy(rows_.target_values, out.value_targets);
    copy(rows_.classes, out.token_targets);
  }

 private:
  Rows rows_;
};

// What a feature is shifted and scaled by.
struct Normalization {
  double mean = 0.0, factor = 1.0;
  double operator()(double value) const { return (value - mean) * factor; }
};

// Mean 0 and deviation 1 over the training rows; a column that is constant there becomes 0 everywhere.
Normalization normalization_of(const CsvTable& table, std::size_t column, const std::vector<bool>& in_validation) {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -smallest;
  double sum = 0.0;
  std::int64_t count = 0;
  const auto for_training = [&](auto&& f) {
    for (std::int64_t row = 0; row < table.rows; ++row) {
      if (!in_validation[static_cast<std::size_t>(row)]) f(table.value(row, column));
    }
  };
  for_training([&](double value) {
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
    sum += value;
    ++count;
  });
  if (smallest == largest) return {.mean = smallest, .factor = 0.0};
  const double mean = sum / static_cast<double>(count);
  double squares = 0.0;
  for_training([&](double value) { squares += (value - mean) * (value - mean); });
  return {.mean = mean, .factor = 1.0 / std::sqrt(squares / static_cast<double>(count))};
}

// Throws UserError where a feature, as the model gets it, or a target of a regression is more than fp16 holds.
void require_fp16_range(const CsvTable& table, const std::vector<Normalization>& normalizations, bool classes,
                        const DataSettings& data) {
  struct Wrong {
    std::int64_t row;
    std::size_t column;
    double value;
    bool normalized;
  };
  std::vector<Wrong> wrong;
  bool features = false, targets = false;
  const auto check = [&](const Wrong& at) {
    if (std::abs(at.value) <= fp16_largest) return false;
    wrong.push_back(at);
    return true;
  };
  for (std::int64_t row = 0; row < table.rows; ++row) {
    for (std::size_t f = 0; f < table.features.size(); ++f) {
      const std::size_t column = table.features[f];
      features |= check({row, column, normalizations[f](table.value(row, column)), data.normalize});
    }
    for (const std::size_t column : table.targets) {
      if (!classes) targets |= check({row, column, table.value(row, column), false});
    }
  }
  if (wrong.empty()) return;
  std::vector<std::int64_t> rows;
  for (const Wrong& at : wrong) rows.push_back(at.row);
  const std::vector<std::int64_t> lines = lines_of_rows(data, rows);
  Faults faults;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    faults.add(join("line ", lines[i], ", ", table.column_name(wrong[i].column), " is ", shown(wrong[i].value),
                    wrong[i].normalized ? " once normalized" : ""));
  }
  std::string advice = features && !data.normalize ? "set data.normalize to true, " : "";
  advice += targets || data.normalize ? "give the columns a larger unit, " : "scale the columns, ";
  throw UserError(join(origin_of("data.path", data.path), " has ", counted(faults.count(), "value"),
                       " beyond 65504, the largest that fp16 holds; ", advice,
                       "or train in bf16 (bf16.enabled instead of fp16):", faults.list()));
}

// The training part or the validation part of a table.
Rows take_part(const CsvTable& table, const std::vector<bool>& in_validation, bool validation,
               const std::vector<Normalization>& normalizations, bool classes) {
  Rows rows;
  rows.features = static_cast<std::int64_t>(table.features.size());
  rows.targets = classes ? 0 : static_cast<std::int64_t>(table.targets.size());
  const auto count = static_cast<std::size_t>(std::ranges::count(in_validation, validation));
  rows.feature_values.reserve(count * table.features.size());
  (classes ? rows.classes.reserve(count) : rows.target_values.reserve(count * table.targets.size()));
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (in_validation[static_cast<std::size_t>(row)] != validation) continue;
    for (std::size_t f = 0; f < table.features.size(); ++f) {
      rows.feature_values.push_back(static_cast<float>(normalizations[f](table.value(row, table.features[f]))));
    }
    for (const std::size_t target : table.targets) {
      const double value = table.value(row, target);
      if (classes) {
        rows.classes.push_back(static_cast<std::int32_t>(value));
      } else {
        rows.target_values.push_back(static_cast<float>(value));
      }
    }
  }
  return rows;
}

}  // namespace

Dataset open_csv(const Settings& settings) {
  require_model(settings, "mlp", "csv");
  const DataSettings& data = settings.data;
  const MlpSettings& mlp = settings.model.mlp;
  const bool classes = mlp.loss == "cross_entropy";
  const std::string origin = origin_of("data.path", data.path);
  const CsvTable table = read_csv_table(data, classes ? std::optional(mlp.layers.back()) : std::nullopt);

  const auto features = static_cast<std::int64_t>(table.features.size());
  const auto targets = static_cast<std::int64_t>(table.targets.size());
  if (features != mlp.layers.front()) {
    throw UserError(join("model.layers: the first entry is ", mlp.layers.front(), ", but ", shown_path(data.path),
                         " has ", counted(features, "feature column"), " (", counted(features + targets, "column"),
                         " less ", targets, " of data.target); set it to ", features));
  }
  if (!classes && targets != mlp.layers.back()) {
    throw UserError(join("model.layers: the last entry is ", mlp.layers.back(), ", but data.target names ",
                         counted(targets, "column"), "; make the two equal"));
  }
  const std::vector<bool> in_validation = split_samples(settings, table.rows, origin, "row");
  std::vector<Normalization> normalizations(table.features.size());
  if (data.normalize) {
    for (std::size_t f = 0; f < table.features.size(); ++f) {
      normalizations[f] = normalization_of(table, table.features[f], in_validation);
    }
  }

  if (computes_in_fp16(settings)) require_fp16_range(table, normalizations, classes, data);

  Dataset dataset;
  const auto open_part = [&](bool validation) {
    Rows rows = take_part(table, in_validation, validation, normalizations, classes);
    dataset.bytes += rows.bytes();
    return std::make_unique<RowSource>(std::move(rows));
  };
  dataset.training = open_part(false);
  if (data.validation_fraction > 0.0) dataset.validation = open_part(true);
  dataset.description =
      join(file_name(data.path), ": ", parts_in_words(dataset, "row"), " of ", counted(features, "feature"),
           data.normalize ? " (normalized) and " : " (as they are) and ",
           classes ? join("a class of ", mlp.layers.back()) : counted(targets, "target"));
  return dataset;
}

}  // namespace zt
