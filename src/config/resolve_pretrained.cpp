// What model.pretrained means for the other keys of the model.
#include <algorithm>
#include <array>

#include "config/resolver.h"
#include "core/errors.h"

namespace zt {
namespace {

// Keys that weights do not depend on: how they are trained on is the config's matter.
constexpr std::array<const char*, 5> of_training = {"embd_pdrop", "resid_pdrop", "attn_pdrop", "initializer_range",
                                                    "loss"};

}  // namespace

bool Resolver::fits_pretrained(const std::string& key, const Json& theirs) const {
  if (std::ranges::find(of_training, key) != of_training.end()) return true;
  const Json& ours = values_.at("model." + key);
  if (key == "n_inner" && ours.is_null()) {
    const auto width = values_.find("model.n_embd");
    return width == values_.end() || !width->second.is_number() || theirs == 4 * width->second.get<std::int64_t>();
  }
  return ours == theirs;
}

bool Resolver::comes_with_weights(const std::string& path) const {
  return known({"model.pretrained"}) && !options_.pretrained_model && (!given(path) || holds_auto(path));
}

void Resolver::take_pretrained_model() {
  const std::string pretrained = "model.pretrained";
  if (!options_.pretrained_model || !known({pretrained.c_str()}) || !checked_.selected.contains("model.type")) return;
  PretrainedModel model;
  try {
    model = options_.pretrained_model(get<std::string>(pretrained));
  } catch (const UserError& error) {
    return problem(pretrained, error.what());
  }
  const auto type = model.section.at("type").get<std::string>();
  if (!is("model.type", type)) {
    if (model.is_of_resumed_run) return;
    return problem("model.type", "found \"" + checked_.selected.at("model.type") + "\", but " + model.description +
                                     ", which model.pretrained names, has a model of type \"" + type + "\"");
  }
  std::string taken;
  for (const auto& [key, theirs] : model.section.items()) {
    const std::string path = "model." + key;
    if (key == "type" || checked_.wrong.contains(path)) continue;
    if (!given(path) || holds_auto(path)) {
      values_[path] = theirs;
      taken += (taken.empty() ? "" : ", ") + key + " " + theirs.dump();
    } else if (!model.is_of_resumed_run && !fits_pretrained(key, theirs)) {
      problem(path, "found " + shown(path) + ", but " + model.description + ", which " + pretrained + " names, has " +
                        theirs.dump() + ": leave the key out, or take other weights");
    }
  }
  if (!taken.empty()) notice(pretrained, "as in " + model.description + ": " + taken);
}

}  // namespace zt
