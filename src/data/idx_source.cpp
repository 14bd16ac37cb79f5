// Images and their classes from IDX files. Bytes stay bytes in memory; a sample is converted when it is asked for.
#include <cassert>

#include "core/errors.h"
#include "data/idx_file.h"
#include "data/open.h"

namespace zt {
namespace {

class IdxSource final : public Source {
 public:
  IdxSource(IdxFile images, IdxFile labels) : images_(std::move(images)), labels_(std::move(labels)) {}

  SampleShape shape() const override { return {.token_targets = 1, .features = images_.values_per_item()}; }
  std::int64_t samples() const override { return images_.items(); }

  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples());
    images_.features(index, out.features);
    out.token_targets[0] = static_cast<std::int32_t>(labels_.integer(index));
  }

 private:
  IdxFile images_, labels_;
};

void check_images(const IdxFile& images, const std::string& key, const std::string& path, const MlpSettings& mlp) {
  if (images.values_per_item() != mlp.layers.front()) {
    throw UserError(join("model.layers: the first entry is ", mlp.layers.front(), ", but an image of ", key, " ", path,
                         " (", images.description(), ") has ", images.values_per_item(), " values; set it to ",
                         images.values_per_item()));
  }
  if (const std::int64_t wrong = images.first_not_finite(); wrong >= 0) {
    throw UserError(join(key, ": ", path, ": image ", wrong / images.values_per_item(), " (from 0) has at position ",
                         wrong % images.values_per_item(),
                         " a value that is infinite, not a number or more than fp32 holds; clean the data"));
  }
}

void check_labels(const IdxFile& labels, const std::string& key, const std::string& path, const MlpSettings& mlp) {
  if (labels.dimensions().size() != 1) {
    throw UserError(join(key, ": ", path, " has ", labels.dimensions().size(), " dimensions (", labels.description(),
                         "); labels have one. Are images and labels exchanged?"));
  }
  if (!labels.holds_integers()) {
    throw UserError(join(key, ": ", path, " holds ", labels.description(), "; labels are integers"));
  }
  const std::int64_t classes = mlp.layers.back();
  for (std::int64_t i = 0; i < labels.items(); ++i) {
    const std::int64_t label = labels.integer(i);
    if (label >= 0 && label < classes) continue;
    throw UserError(join(key, ": ", path, ": label ", i, " (from 0) is ", label,
                         ", but the last entry of model.layers, ", classes, ", allows classes 0 to ", classes - 1,
                         label < 0 ? "" : "; make it as large as there are classes"));
  }
}

std::unique_ptr<IdxSource> open_pair(const std::string& images_key, const std::string& images_path,
                                     const std::string& labels_key, const std::string& labels_path,
                                     const MlpSettings& mlp, std::int64_t& bytes) {
  IdxFile images(images_path, images_key);
  check_images(images, images_key, images_path, mlp);
  IdxFile labels(labels_path, labels_key);
  check_labels(labels, labels_key, labels_path, mlp);
  if (images.items() != labels.items()) {
    throw UserError(join(labels_key, ": ", labels_path, " has ", labels.items(), " labels, but ", images_key, " ",
                         images_path, " has ", images.items(), " images; name two files that belong together"));
  }
  bytes += images.bytes() + labels.bytes();
  return std::make_unique<IdxSource>(std::move(images), std::move(labels));
}

}  // namespace

Dataset open_idx(const Settings& settings) {
  require_model(settings, "mlp", "idx");
  const DataSettings& data = settings.data;
  const MlpSettings& mlp = settings.model.mlp;
  if (mlp.loss != "cross_entropy") {
    throw UserError(
        join("model.loss: the labels of idx data are classes: use \"cross_entropy\", not \"", mlp.loss, "\""));
  }
  if (data.validation_images.empty() != data.validation_labels.empty()) {
    throw UserError("data.validation_images and data.validation_labels belong together: give both or neither");
  }
  Dataset dataset;
  dataset.training = open_pair("data.images", data.images, "data.labels", data.labels, mlp, dataset.bytes);
  if (!data.validation_images.empty()) {
    dataset.validation = open_pair("data.validation_images", data.validation_images, "data.validation_labels",
                                   data.validation_labels, mlp, dataset.bytes);
  }
  require_one_step(settings, dataset.training->samples(),
                   join(file_name(data.images), " has only ", dataset.training->samples(), " images"));
  dataset.description = join(file_name(data.images), ": ", dataset.training->samples(), " training and ",
                             dataset.validation ? dataset.validation->samples() : 0, " validation images of ",
                             mlp.layers.front(), " values in ", mlp.layers.back(), " classes");
  return dataset;
}

}  // namespace zt
