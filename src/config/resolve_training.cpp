// Rules of the optimizer.
#include "config/resolver.h"

namespace zt {

void Resolver::resolve_optimizer() {
  const Json* section = tree_.find("optimizer");
  const bool has_section = section != nullptr && section->is_object();
  const std::string lr = "optimizer.params.lr";
  set_auto(lr, 5e-5);
  const bool adagrad = is("optimizer.type", "Adagrad");
  const bool muon = is("optimizer.type", "Muon");
  set_auto("optimizer.params.betas", Json::array({0.9, muon ? 0.95 : 0.999}));
  set_auto("optimizer.params.eps", adagrad || muon ? 1e-10 : 1e-8);
  set_auto("optimizer.params.weight_decay", 0.0);
  if (!checked_.selected.contains("optimizer.type")) return;
  if (!has_section) {
    values_[lr] = 3e-4;
    notice("optimizer", "none given, so AdamW with lr 3e-4");
  } else if (!given(lr) && !checked_.wrong.contains(lr)) {
    values_[lr] = muon ? 0.02 : adagrad ? 1e-2 : 1e-3;
    notice(lr, muon ? "0.02 by default" : adagrad ? "1e-2 by default" : "1e-3 by default");
  }
  if (has_section && !given("optimizer.type")) notice("optimizer.type", "AdamW by default");
  const bool schedule_sets_rate =
      checked_.selected.contains("scheduler.type") && !is("scheduler.type", "WarmupCosineLR");
  if (known({lr.c_str()}) && get<double>(lr) == 0.0 && !schedule_sets_rate) {
    notice(lr, "0: no weight will change");
  }
  const std::string mode = "optimizer.params.adam_w_mode";
  if (is("optimizer.type", "Adam") && !given(mode) && !checked_.wrong.contains(mode)) {
    notice("optimizer.type",
           "\"Adam\" decays weights as AdamW does, as in DeepSpeed; \"adam_w_mode\": false asks for L2");
  }
  if (is("optimizer.type", "AdamW") && known({mode.c_str()}) && !get<bool>(mode)) {
    problem(mode, "found false, but AdamW is the decoupled form: use \"type\": \"Adam\" for L2, or remove the key");
  }
  const std::string least = "optimizer.params.min_coeff";
  const std::string most = "optimizer.params.max_coeff";
  if (is("optimizer.type", "Lamb") && known({least.c_str(), most.c_str()}) && get<double>(least) > get<double>(most)) {
    problem(least, "found " + shown(least) + ", above max_coeff " + shown(most) + ": lower it");
  }
  resolve_momentum();
  resolve_rates_of_muon(schedule_sets_rate);
  resolve_excluded_decay();
}

// Both are multiples of lr for a schedule, which moves lr.
void Resolver::resolve_rates_of_muon(bool schedule_sets_rate) {
  const std::string lr = "optimizer.params.lr";
  if (!is("optimizer.type", "Muon") || !known({lr.c_str()})) return;
  for (const std::string path : {"optimizer.params.muon_lr", "optimizer.params.adam_lr"}) {
    if (checked_.wrong.contains(path)) continue;
    if (!given(path)) {
      const bool of_others = path == "optimizer.params.adam_lr" && !given(lr) && !schedule_sets_rate;
      values_[path] = of_others ? Json(3e-4) : values_[lr];
      if (of_others) notice(path, "3e-4 by default");
    } else if (get<double>(lr) == 0.0 && get<double>(path) > 0.0) {
      problem(path, "found " + shown(path) + " beside lr 0, and is kept as a multiple of it: give lr above 0, as 1");
    }
  }
}

void Resolver::resolve_momentum() {
  const std::string nesterov = "optimizer.params.nesterov";
  const std::string dampening = "optimizer.params.dampening";
  if (!is("optimizer.type", "SGD") || !known({nesterov.c_str(), dampening.c_str(), "optimizer.params.momentum"}))
    return;
  const bool without_momentum = get<double>("optimizer.params.momentum") == 0.0;
  const bool damped = get<double>(dampening) != 0.0;
  if (get<bool>(nesterov) && (without_momentum || damped)) {
    problem(nesterov, "true needs momentum above 0 and dampening 0: give \"momentum\": 0.9" +
                          std::string(damped ? " and no dampening" : "") + ", or set it to false");
  } else if (damped && without_momentum) {
    notice(dampening, "has no effect: it dampens what enters the momentum, and momentum is 0");
  }
}

void Resolver::resolve_excluded_decay() {
  const std::string exclude = "optimizer.params.weight_decay_exclude";
  if (!known({exclude.c_str(), "optimizer.params.weight_decay"}) || values_[exclude].empty()) return;
  if (get<double>("optimizer.params.weight_decay") == 0.0) {
    notice(exclude, "has no effect: weight_decay is 0");
    return;
  }
  for (const Json& kind : values_[exclude]) {
    if (kind == "layer_norm" && is("model.type", "mlp")) notice(exclude, "an mlp has no \"layer_norm\" to exclude");
  }
}

}  // namespace zt
