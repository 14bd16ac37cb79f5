#include "config/resolver.h"

#include <algorithm>
#include <cmath>

namespace zt {

Resolver::Resolver(const ConfigTree& tree, int world_size, const ResolveOptions& options, Problems& problems,
                   std::vector<std::string>& notices)
    : tree_(tree),
      world_size_(world_size),
      options_(options),
      problems_(problems),
      notices_(notices),
      checked_(check_keys(tree, options.current_directory, problems, notices)) {
  values_ = checked_.given;
  for (const Key& key : key_table()) {
    if (key.fallback && applies(key) && !checked_.wrong.contains(key.path)) values_.emplace(key.path, *key.fallback);
  }
}

bool Resolver::applies(const Key& key) const {
  if (key.kind == KeyKind::notice || key.kind == KeyKind::alias || key.kind == KeyKind::old_form) return false;
  if (key.type == KeyType::section) return false;
  if (key.kind == KeyKind::refused && !key.fallback) return false;
  const std::string selector = selector_of(key.path);
  if (selector.empty()) return true;
  const auto selected = checked_.selected.find(selector);
  if (selected == checked_.selected.end()) return false;
  return key.types.empty() || std::find(key.types.begin(), key.types.end(), selected->second) != key.types.end();
}

bool Resolver::is(const std::string& selector, const std::string& type) const {
  const auto selected = checked_.selected.find(selector);
  return selected != checked_.selected.end() && selected->second == type;
}

bool Resolver::known(std::initializer_list<const char*> paths) const {
  return std::all_of(paths.begin(), paths.end(), [&](const char* path) {
    const auto value = values_.find(path);
    return value != values_.end() && !value->second.is_null() && !is_auto(value->second);
  });
}

bool Resolver::differs_from_default(const std::string& path) const {
  const auto value = checked_.given.find(path);
  if (value == checked_.given.end()) return false;
  const auto row = std::find_if(key_table().begin(), key_table().end(),
                                [&](const Key& key) { return key.path == path && applies(key); });
  return row == key_table().end() || !row->fallback || *row->fallback != value->second;
}

bool Resolver::holds_auto(const std::string& path) const {
  const auto value = values_.find(path);
  return value != values_.end() && is_auto(value->second);
}

void Resolver::set_auto(const std::string& path, const Json& value, const std::string& why) {
  if (!holds_auto(path)) return;
  values_[path] = value;
  notice(path, "\"auto\" is " + value.dump() + (why.empty() ? "" : ", " + why));
}

std::string Resolver::shown(const std::string& path) const {
  const auto origin = tree_.origins.find(path);
  if (given(path) && origin != tree_.origins.end() && !origin->second.written.empty()) return origin->second.written;
  return values_.at(path).dump();
}

std::string Resolver::where(const std::string& path) const {
  const Origin* origin = tree_.origin_of(path);
  return origin == nullptr ? "" : origin->text;
}

void Resolver::problem(const std::string& path, const std::string& text) {
  problems_.push_back({path, where(path), text});
}

void Resolver::notice(const std::string& path, const std::string& text) {
  const std::string origin = tree_.find(path) == nullptr ? "" : where(path);
  notices_.push_back((origin.empty() ? "" : origin + ": ") + path + ": " + text);
}

void Resolver::apply_rules() {
  take_pretrained_model();
  resolve_batch();
  resolve_precision();
  resolve_loss_scale();
  resolve_model();
  resolve_data();
  resolve_optimizer();
  resolve_scheduler();
  resolve_zero();
  resolve_guards();
  resolve_rest();
}

void Resolver::resolve_model() {
  const bool is_open = comes_with_weights("model.n_embd") || comes_with_weights("model.n_head");
  if (is("model.type", "gpt") && known({"model.n_embd", "model.n_head"})) {
    const auto width = get<std::int64_t>("model.n_embd");
    const auto heads = get<std::int64_t>("model.n_head");
    if (width % heads != 0 && !is_open) {
      std::int64_t below = std::min(heads, width);
      while (width % below != 0) --below;
      std::int64_t above = heads;
      while (above <= width && width % above != 0) ++above;
      problem("model.n_head", "found " + std::to_string(heads) + ", which does not divide model.n_embd " +
                                  std::to_string(width) + "; the nearest that do: " + std::to_string(below) +
                                  (above <= width ? " and " + std::to_string(above) : ""));
    }
    if (values_.contains("model.n_inner") && values_["model.n_inner"].is_null()) values_["model.n_inner"] = 4 * width;
  }
  if (is("model.type", "mlp") && known({"model.layers", "model.loss"})) {
    const auto outputs = get<std::vector<std::int64_t>>("model.layers").back();
    if (get<std::string>("model.loss") == "cross_entropy" && outputs < 2) {
      problem("model.layers",
              "the last entry is 1, but with model.loss \"cross_entropy\" the outputs are classes: at "
              "least 2, or use \"mse\"");
    }
  }
}

void Resolver::resolve_zero() {
  std::int64_t width = 0;
  if (is("model.type", "gpt") && known({"model.n_embd"})) width = get<std::int64_t>("model.n_embd");
  if (is("model.type", "mlp") && known({"model.layers"})) {
    const auto layers = get<std::vector<std::int64_t>>("model.layers");
    width = *std::max_element(layers.begin(), layers.end());
  }
  if (width > 0) {
    const auto wide = static_cast<double>(width);
    set_auto("zero_optimization.stage3_prefetch_bucket_size", static_cast<std::int64_t>(0.9 * wide * wide),
             "0.9 x width squared");
    set_auto("zero_optimization.stage3_param_persistence_threshold", 10 * width, "10 x width");
  }
  if (known({"zero_optimization.stage"}) && get<std::int64_t>("zero_optimization.stage") == 3 &&
      !given("zero_optimization.stage3_param_persistence_threshold") &&
      known({"zero_optimization.stage3_param_persistence_threshold"})) {
    notice("zero_optimization.stage3_param_persistence_threshold",
           "0 by default, everything is sharded (DeepSpeed: 100000)");
  }
}

// "cpu" is where a run on the CPU has everything; a GPU would have to move it, which it does not.
void Resolver::check_offload() {
  for (const char* part : {"offload_optimizer", "offload_param"}) {
    const std::string key = std::string("zero_optimization.") + part + ".device";
    if (!known({key.c_str()}) || checked_.wrong.contains("device.type") || get<std::string>(key) != "cpu") continue;
    const bool is_auto_device = holds_auto("device.type");
    if (is_auto_device ? !options_.expects_gpu : get<std::string>("device.type") == "cpu") {
      notice(key, "has no effect: on the CPU everything rests in the host's memory");
    } else {
      problem(key, "found \"cpu\", but on a GPU" + std::string(is_auto_device ? " (device.type is \"auto\")" : "") +
                       " this version keeps everything in the GPU's memory: set it to \"none\" or remove the section "
                       "(more ranks or a higher stage lower the memory of each), or set device.type to \"cpu\"");
    }
  }
}

void Resolver::tell_accumulation_order() {
  const std::string key = "training.gradient_accumulation_order";
  const std::string stage_key = "zero_optimization.stage";
  const std::string steps_key = "gradient_accumulation_steps";
  if (!known({key.c_str(), stage_key.c_str(), steps_key.c_str()}) || get<std::string>(key) != "local") return;
  if (get<std::int64_t>(stage_key) > 1) {
    notice(key, "\"local\" has no effect at stage " + shown(stage_key) +
                    ", which holds a slice of the sums and so reduces gradients in every micro-step, in global order; "
                    "stages 0 and 1 can add up locally");
  } else if (get<std::int64_t>(steps_key) == 1) {
    notice(key, "\"local\" has no effect: gradient_accumulation_steps is 1, so there is nothing to add up");
  } else if (given("communication_data_type") && known({"communication_data_type", "data_types.grad_accum_dtype"}) &&
             values_["communication_data_type"] != values_["data_types.grad_accum_dtype"]) {
    notice("communication_data_type", "gradients are made in " + shown("communication_data_type") + ", but with " +
                                          key +
                                          " \"local\" it is their sums that are sent, in "
                                          "data_types.grad_accum_dtype " +
                                          get<std::string>("data_types.grad_accum_dtype"));
  }
}

void Resolver::tell_idle_keys() {
  if (is("model.type", "gpt") && is("data.type", "synthetic") && differs_from_default("training.sample_prompt")) {
    notice("training.sample_prompt", "has no effect: synthetic tokens stand for no text");
  }
  if (known({"training.checkpoint_in_background", "training.checkpoint_interval"}) &&
      get<bool>("training.checkpoint_in_background") && get<std::int64_t>("training.checkpoint_interval") == 0) {
    notice("training.checkpoint_in_background",
           "has no effect: training.checkpoint_interval is 0, so checkpoints are written on a signal alone");
  }
  if (differs_from_default("training.eval_steps") && known({"training.eval_interval"}) &&
      get<std::int64_t>("training.eval_interval") == 0) {
    notice("training.eval_steps", "has no effect: training.eval_interval is 0, so nothing is evaluated");
  }
  const std::string ops = "comms_logger.prof_ops";
  if (is_true("comms_logger.enabled") && known({"comms_logger.prof_all", ops.c_str()})) {
    const bool names_none = values_[ops].empty();
    if (is_true("comms_logger.prof_all") && !names_none) {
      notice(ops, "has no effect: comms_logger.prof_all is true, so all kinds of collectives are logged");
    } else if (!is_true("comms_logger.prof_all") && names_none) {
      notice("comms_logger.enabled", "has no effect: prof_all is false and prof_ops names no collective");
    }
  }
  const std::string every = "activation_checkpointing.every";
  if (is("model.type", "mlp")) set_auto(every, 0, "an mlp has no blocks");
  if (!known({every.c_str()}) || get<std::int64_t>(every) == 0) return;
  if (is("model.type", "mlp")) notice(every, "has no effect: an mlp has no blocks");
  if (is("model.type", "gpt") && known({"model.n_layer"}) &&
      get<std::int64_t>(every) > get<std::int64_t>("model.n_layer")) {
    notice(every, "has no effect: every k-th block is recomputed, and model.n_layer is " + shown("model.n_layer"));
  } else if (is("model.type", "gpt") && known({"model.n_layer"}) &&
             get<std::int64_t>("model.n_layer") < 2 * get<std::int64_t>(every)) {
    notice(every, "costs time and saves no memory: of the " + shown("model.n_layer") +
                      " blocks only one is recomputed, and recomputed blocks share the memory of one; a smaller number "
                      "recomputes more");
  }
}

void Resolver::check_device() {
  if (!known({"device.type"})) return;
  const bool cpu = get<std::string>("device.type") == "cpu";
  if (known({"device.communicator"})) {
    const auto communicator = get<std::string>("device.communicator");
    const bool for_gpus = communicator == "nccl" || communicator == "staged";
    if (cpu && for_gpus) {
      problem("device.communicator",
              "found " + shown("device.communicator") +
                  ", which is for GPUs, and device.type is \"cpu\"; use \"shared\" or \"mpi\", or "
                  "leave it \"auto\"");
    } else if (!cpu && !for_gpus && get<std::string>("device.type") == "cuda") {
      problem("device.communicator",
              "found " + shown("device.communicator") +
                  ", which is for CPUs, and device.type is \"cuda\"; use \"nccl\" or \"staged\", or "
                  "leave it \"auto\"");
    }
  }
  if (!cpu) return;
  for (const char* key : {"device.tf32", "device.gelu_epilogue"}) {
    if (known({key}) && get<bool>(key)) notice(key, "has no effect: device.type is \"cpu\"");
  }
}

namespace {

// Outputs start at the current directory, whichever file names them; without a path in the run's own.
std::string monitor_directory(const std::string& section, const std::string& given, const std::string& output_dir,
                              const std::filesystem::path& current_directory) {
  const std::filesystem::path base = given.empty() ? output_dir + "/" + section : given;
  return (current_directory / base).lexically_normal().string();
}

}  // namespace

void Resolver::resolve_rest() {
  if (known({"prescale_gradients", "gradient_predivide_factor"}) && get<bool>("prescale_gradients") &&
      differs_from_default("gradient_predivide_factor")) {
    notice("gradient_predivide_factor", "has no effect: prescale_gradients divides by everything before the sum");
  }
  set_auto("gradient_clipping", 1.0);
  if (!given("gradient_clipping") && !checked_.wrong.contains("gradient_clipping")) {
    notice("gradient_clipping", "0 by default, off (newer versions of DeepSpeed: 1.0)");
  }
  for (const std::string section : {"csv_monitor", "tensorboard"}) {
    const std::string path = section + ".output_path", name = section + ".job_name";
    if (!is_true(section + ".enabled") || !known({path.c_str(), name.c_str(), "training.output_dir"})) continue;
    values_[path] = monitor_directory(section, get<std::string>(path), get<std::string>("training.output_dir"),
                                      options_.current_directory);
    const auto folder = get<std::string>(name);
    if (folder.empty() || folder == "." || folder == ".." || folder.find('/') != std::string::npos) {
      problem(name, "found " + shown(name) + "; allowed: the name of a folder, without /");
    }
  }
  if (is_true("flops_profiler.enabled") && known({"flops_profiler.output_file"}) &&
      values_["flops_profiler.output_file"].is_string()) {
    values_["flops_profiler.output_file"] =
        (options_.current_directory / get<std::string>("flops_profiler.output_file")).lexically_normal().string();
  }
  check_device();
  check_offload();
  tell_accumulation_order();
  tell_idle_keys();
  if (is("model.type", "mlp") && known({"training.sample_prompt"}) &&
      !get<std::string>("training.sample_prompt").empty()) {
    notice("training.sample_prompt", "has no effect: an mlp generates no text");
  }
}

}  // namespace zt
