#include "checkpoint/load_state.h"

#include <algorithm>

#include "checkpoint/stored_type.h"
#include "comm/agree.h"
#include "core/errors.h"
#include "core/shape_text.h"
#include "zero/finish_step.h"
#include "zero/held_state.h"

namespace zt {

namespace {

constexpr std::int64_t staging_elements = std::int64_t{1} << 18;

class StateReader {
 public:
  StateReader(Engine& engine, StateStore& states, const NativeCheckpoint& checkpoint,
              const std::vector<std::string>& moments)
      : engine_(engine),
        states_(states),
        checkpoint_(checkpoint),
        moments_(moments),
        staging_(engine.context().device.allocate_host(2 * 4 * staging_elements, "checkpoint staging")) {
    for (const TensorPlace& place : engine.context().layout.tensors())
      index_.push_back(checkpoint.manifest().tensor_index(place.name));
  }

  void load(int kind, const std::string& name) const {
    Device& device = engine_.context().device;
    auto* const values = staging_.as<float>();
    void* const raw = values + staging_elements;
    visit_updated_state(engine_, states_, kind, [&](const StateRun& run) {
      const int tensor = index_[static_cast<std::size_t>(run.tensor)];
      if (kind != held_weights && (!checkpoint_.has(name, tensor) || !has_all_moments(run.tensor))) return;
      auto* to = static_cast<std::byte*>(run.values.data);
      for (std::int64_t done = 0; done < run.values.count; done += staging_elements) {
        const std::int64_t count = std::min(staging_elements, run.values.count - done);
        checkpoint_.read(name, tensor, run.offset + done, count, values);
        from_floats(values, count, run.values.dtype, raw);
        const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(run.values.dtype));
        device.copy(Stream::compute, to, raw, bytes);
        device.synchronize(Stream::compute);
        to += bytes;
      }
    });
  }

 private:
  // One that was not trained so far has no moments yet, and Muon keeps fewer of some. Where one is missing all start
  // anew: Adam's mean of before over a mean of squares that begins at 0 would make steps of many times the learning
  // rate. (A maximum, AMSGrad's, may begin alone.)
  bool has_all_moments(int tensor) const {
    const TensorPlace& place = engine_.context().layout.tensor(tensor);
    for (std::size_t moment = 0; moment < moments_.size(); ++moment) {
      if (!moments_[moment].starts_with("max_") && states_.keeps(static_cast<int>(moment), place) &&
          !checkpoint_.has(moments_[moment], index_[static_cast<std::size_t>(tensor)]))
        return false;
    }
    return true;
  }

  Engine& engine_;
  StateStore& states_;
  const NativeCheckpoint& checkpoint_;
  const std::vector<std::string>& moments_;
  Buffer staging_;
  std::vector<int> index_;  // by the layout's tensors: the checkpoint's
};

}  // namespace

void require_same_tensors(const Layout& layout, const NativeCheckpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  std::string differences;
  int told = 0;
  const auto tell = [&](const std::string& difference) {
    if (++told <= 5) differences += "\n  " + difference;
  };
  for (const TensorPlace& place : layout.tensors()) {
    const int index = manifest.tensor_index(place.name);
    if (index < 0) {
      tell(place.name + ": " + shape_text(place.shape) + " in the config, missing in the checkpoint");
      continue;
    }
    const auto& shape = manifest.tensors[static_cast<std::size_t>(index)].shape;
    if (shape != place.shape) {
      tell(place.name + ": " + shape_text(place.shape) + " in the config, " + shape_text(shape) + " in the checkpoint");
    }
  }
  for (const CheckpointTensor& tensor : manifest.tensors) {
    const auto& places = layout.tensors();
    if (std::none_of(places.begin(), places.end(), [&](const auto& place) { return place.name == tensor.name; }))
      tell(tensor.name + ": " + shape_text(tensor.shape) + " in the checkpoint, missing in the config");
  }
  if (told == 0) return;
  if (told > 5) differences += "\n  and " + std::to_string(told - 5) + " more";
  throw UserError(checkpoint.directory() + " holds another model than the config describes:" + differences);
}

namespace {

// Which of a moment's tensors were trained before, but without it.
std::string tensors_without(const Layout& layout, const StateStore& states, const NativeCheckpoint& checkpoint,
                            int moment, const std::string& name) {
  std::string first;
  int count = 0;
  for (const TensorPlace& place : layout.tensors()) {
    const int tensor = checkpoint.manifest().tensor_index(place.name);
    const bool is_kept = is_trained(place.segment) && states.keeps(moment, place);
    const bool was_trained = checkpoint.manifest().tensors[static_cast<std::size_t>(tensor)].trained;
    if (!is_kept || !was_trained || checkpoint.has(name, tensor)) continue;
    if (count++ == 0) first = place.name;
  }
  if (count == 0) return "";
  return first + (count > 1 ? " and " + std::to_string(count - 1) + " more" : "");
}

}  // namespace

std::vector<std::string> load_state(Engine& engine, StateStore& states, const NativeCheckpoint& checkpoint,
                                    const std::vector<std::string>& moments) {
  Communicator& communicator = engine.context().communicator;
  all_or_none(communicator, [&] { require_same_tensors(engine.context().layout, checkpoint); });
  all_or_none<RunError>(communicator, [&] { checkpoint.verify(communicator.rank(), communicator.size()); });
  std::vector<std::string> missing;
  all_or_none<RunError>(communicator, [&] {
    const StateReader loader(engine, states, checkpoint, moments);
    loader.load(held_weights, weights_kind);
    for (std::size_t moment = 0; moment < moments.size(); ++moment) {
      if (checkpoint.has(moments[moment])) {
        const auto kind = static_cast<int>(moment);
        loader.load(kind, moments[moment]);
        const std::string without = tensors_without(engine.context().layout, states, checkpoint, kind, moments[moment]);
        if (!without.empty()) missing.push_back(moments[moment] + " of " + without);
      } else {
        missing.push_back(moments[moment]);
      }
    }
  });
  publish_weights(engine, states);
  return missing;
}

}  // namespace zt
