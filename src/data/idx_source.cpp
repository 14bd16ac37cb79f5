// Images and their classes from IDX files. Bytes stay bytes in memory; a sample is converted when it is asked for.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>

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

// The files of images and labels that belong together, with the keys that name them.
struct Pair {
  std::string images_key, images_path, labels_key, labels_path;
  std::optional<IdxFile> images, labels;  // none: not opened, and told
};

// Opens the files and collects what is wrong with them, to be told together.
class Opener {
 public:
  explicit Opener(const Settings& settings)
      : mlp_(settings.model.mlp), is_fp16_(computes_in_fp16(settings)), batch_(settings.batch.train) {}

  Pair open(const std::string& images_key, const std::string& images_path, const std::string& labels_key,
            const std::string& labels_path) {
    Pair pair{images_key, images_path, labels_key, labels_path, {}, {}};
    pair.images = read(images_key, images_path);
    pair.labels = read(labels_key, labels_path);
    return pair;
  }

  // `training`: the training pair, of which a validation pair must be of the same kind; null: this is it.
  void check(const Pair& pair, const Pair* training) {
    if (pair.images && pair.labels && are_exchanged(*pair.images, *pair.labels)) {
      return fault(join(pair.images_key, " and ", pair.labels_key, " are exchanged: ", shown_path(pair.images_path),
                        " (", pair.images->description(), ") has one dimension, as labels have, and ",
                        shown_path(pair.labels_path), " (", pair.labels->description(), ") has ",
                        pair.labels->dimensions().size(), ", as images have; exchange the two paths"));
    }
    if (pair.images) check_images(pair, training);
    if (pair.labels) check_labels(*pair.labels, pair.labels_key, pair.labels_path);
    if (pair.images && pair.labels && pair.images->items() != pair.labels->items()) {
      fault(join(origin_of(pair.labels_key, pair.labels_path), " has ", counted(pair.labels->items(), "label"),
                 ", but ", pair.images_key, " ", shown_path(pair.images_path), " has ",
                 counted(pair.images->items(), "image"), "; name two files that belong together"));
    }
    if (training == nullptr && pair.images && pair.images->items() < batch_) {
      fault(join("train_batch_size: ", batch_, " samples make one step, but ", file_name(pair.images_path),
                 " has only ", counted(pair.images->items(), "image"), "; set train_batch_size to ",
                 at_most(pair.images->items())));
    }
  }

  void fault(const std::string& text) { faults_ += (faults_.empty() ? "" : "\n") + text; }
  void throw_if_faulty() const {
    if (!faults_.empty()) throw UserError(faults_);
  }

 private:
  std::optional<IdxFile> read(const std::string& path_key, const std::string& path) {
    try {
      return IdxFile(path, path_key);
    } catch (const UserError& error) {
      fault(error.what());
      return std::nullopt;
    }
  }

  static bool are_exchanged(const IdxFile& images, const IdxFile& labels) {
    return images.dimensions().size() == 1 && labels.dimensions().size() > 1;
  }

  void check_images(const Pair& pair, const Pair* training) {
    const IdxFile& images = *pair.images;
    const std::string origin = origin_of(pair.images_key, pair.images_path);
    const std::int64_t values = images.values_per_item();
    if (training != nullptr && training->images) {
      if (values != training->images->values_per_item()) {
        fault(join(origin, " (", images.description(), ") has images of ", counted(values, "value"), ", but ",
                   training->images_key, " ", shown_path(training->images_path), " (", training->images->description(),
                   ") has images of ", training->images->values_per_item(), "; both must be of one size"));
      }
    } else if (values != mlp_.layers.front()) {
      if (images.dimensions().size() == 1) {
        fault(join(origin, " (", images.description(),
                   ") has one dimension, as labels have; name the file of the images"));
      } else {
        fault(join("model.layers: the first entry is ", mlp_.layers.front(), ", but an image of ", pair.images_key, " ",
                   shown_path(pair.images_path), " (", images.description(), ") has ", counted(values, "value"),
                   "; set it to ", values));
      }
    }
    constexpr auto fp32_largest = static_cast<double>(std::numeric_limits<float>::max());
    const std::int64_t wrong = images.first_beyond(is_fp16_ ? fp16_largest : fp32_largest);
    if (wrong < 0) return;
    const double value = images.value(wrong);
    const std::string place =
        join(origin, ": image ", wrong / values, " (from 0) has at position ", wrong % values, " (from 0) ");
    if (std::abs(value) <= fp32_largest) {
      fault(join(place, shown(value),
                 ", beyond 65504, the largest that fp16 holds; scale the images, or train in bf16 ",
                 "(bf16.enabled instead of fp16)"));
    } else {
      fault(join(place, "a value that is infinite, not a number or more than fp32 holds; clean the data"));
    }
  }

  void check_labels(const IdxFile& labels, const std::string& key, const std::string& path) {
    const std::string origin = origin_of(key, path);
    if (labels.dimensions().size() != 1) {
      return fault(join(origin, " has ", labels.dimensions().size(), " dimensions (", labels.description(),
                        "); labels have one: name the file of the labels"));
    }
    if (!labels.holds_integers()) {
      return fault(join(origin, " holds ", labels.description(), "; labels are integers: name the file of the labels"));
    }
    const std::int64_t classes = mlp_.layers.back();
    std::int64_t first_wrong = -1, count = 0, smallest = 0, largest = 0;
    for (std::int64_t i = 0; i < labels.items(); ++i) {
      const std::int64_t label = labels.integer(i);
      smallest = std::min(smallest, label);
      largest = std::max(largest, label);
      if (label >= 0 && label < classes) continue;
      if (count++ == 0) first_wrong = i;
    }
    if (count == 0) return;
    fault(join(origin, ": label ", first_wrong, " (from 0) is ", labels.integer(first_wrong),
               count > 1 ? join(" (", count - 1, count == 2 ? " more is" : " more are", " wrong, too)") : std::string(),
               ": the last entry of model.layers, ", classes, ", allows classes 0 to ", classes - 1,
               largest >= classes ? join("; the largest label is ", largest, ": make that entry ", largest + 1) : "",
               smallest < 0 ? "; number the classes from 0 on" : ""));
  }

  const MlpSettings& mlp_;
  bool is_fp16_;
  std::int64_t batch_;
  std::string faults_;
};

}  // namespace

Dataset open_idx(const Settings& settings) {
  require_model(settings, "mlp", "idx");
  const DataSettings& data = settings.data;
  const MlpSettings& mlp = settings.model.mlp;
  if (mlp.loss != "cross_entropy") {
    throw UserError(
        join("model.loss: the labels of idx data are classes: use \"cross_entropy\", not \"", mlp.loss, "\""));
  }
  Opener opener(settings);
  Pair training = opener.open("data.images", data.images, "data.labels", data.labels);
  opener.check(training, nullptr);
  std::optional<Pair> validation;
  if (data.validation_images.empty() != data.validation_labels.empty()) {
    opener.fault("data.validation_images and data.validation_labels belong together: give both or neither");
  } else if (!data.validation_images.empty()) {
    validation =
        opener.open("data.validation_images", data.validation_images, "data.validation_labels", data.validation_labels);
    opener.check(*validation, &training);
  }
  opener.throw_if_faulty();

  Dataset dataset;
  const auto take = [&](Pair& pair) {
    dataset.bytes += pair.images->bytes() + pair.labels->bytes();
    return std::make_unique<IdxSource>(std::move(*pair.images), std::move(*pair.labels));
  };
  dataset.training = take(training);
  if (validation) dataset.validation = take(*validation);
  dataset.description =
      join(file_name(data.images), ": ", parts_in_words(dataset, "image"), " of ", counted(mlp.layers.front(), "value"),
           " in ", counted(mlp.layers.back(), "class", "classes"));
  return dataset;
}

}  // namespace zt
