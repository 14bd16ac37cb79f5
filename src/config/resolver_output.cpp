// Resolved values to JSON in the order of the table, and to the structs that the program reads.
#include "config/resolver.h"

namespace zt {

Json Resolver::to_json() const {
  Json json = Json::object();
  for (const Key& key : key_table()) {
    if (!applies(key)) continue;
    // A run without a schedule has no keys of one.
    if (key.path == "scheduler.type" && !values_.contains(key.path)) json["scheduler"] = nullptr;
    const auto value = values_.find(key.path);
    if (value == values_.end()) continue;
    Json* node = &json;
    for (const std::string& name : split_path(key.path)) node = &(*node)[name];
    *node = value->second;
  }
  return json;
}

namespace {

DType dtype_of(bool fp16, bool bf16) { return fp16 ? DType::f16 : bf16 ? DType::bf16 : DType::f32; }

}  // namespace

Settings Resolver::to_settings() const {
  Settings s;
  const auto integer = [&](const std::string& path) { return get<std::int64_t>(path); };
  const auto real = [&](const std::string& path) { return get<double>(path); };
  const auto flag = [&](const std::string& path) { return get<bool>(path); };
  const auto word = [&](const std::string& path) { return get<std::string>(path); };
  // "auto" (not known yet) and null (none) are 0 in the structs.
  const auto integer_or_0 = [&](const std::string& path) { return known({path.c_str()}) ? integer(path) : 0; };

  s.model.type = word("model.type");
  if (s.model.type == "gpt") {
    GptSettings& gpt = s.model.gpt;
    gpt.n_layer = integer("model.n_layer");
    gpt.n_head = integer("model.n_head");
    gpt.n_embd = integer("model.n_embd");
    gpt.n_positions = integer("model.n_positions");
    gpt.vocab_size = integer_or_0("model.vocab_size");
    gpt.n_inner = integer("model.n_inner");
    gpt.activation_function = word("model.activation_function");
    gpt.bias = flag("model.bias");
    gpt.tie_word_embeddings = flag("model.tie_word_embeddings");
    gpt.embd_pdrop = real("model.embd_pdrop");
    gpt.resid_pdrop = real("model.resid_pdrop");
    gpt.attn_pdrop = real("model.attn_pdrop");
    gpt.layer_norm_epsilon = real("model.layer_norm_epsilon");
    gpt.initializer_range = real("model.initializer_range");
  } else {
    s.model.mlp.layers = get<std::vector<std::int64_t>>("model.layers");
    s.model.mlp.activation = word("model.activation");
    s.model.mlp.bias = flag("model.bias");
    s.model.mlp.loss = word("model.loss");
  }

  s.data.type = word("data.type");
  if (s.data.type == "text" || s.data.type == "csv") {
    s.data.path = word("data.path");
    s.data.validation_fraction = real("data.validation_fraction");
    s.data.split_seed = static_cast<std::uint64_t>(integer("data.split_seed"));
  }
  if (s.data.type == "text") {
    s.data.format = word("data.format");
    s.data.tokenizer = word("data.tokenizer");
  } else if (s.data.type == "csv") {
    for (const Json& column : values_.at("data.target")) {
      ColumnName& target = s.data.target.emplace_back();
      if (column.is_string()) {
        target.name = column.get<std::string>();
      } else {
        target.number = column.get<std::int64_t>();
      }
    }
    s.data.header = flag("data.header");
    s.data.normalize = flag("data.normalize");
    s.data.delimiter = word("data.delimiter");
  } else if (s.data.type == "idx") {
    const auto word_or_empty = [&](const std::string& path) {
      return known({path.c_str()}) ? word(path) : std::string();
    };
    s.data.images = word("data.images");
    s.data.labels = word("data.labels");
    s.data.validation_images = word_or_empty("data.validation_images");
    s.data.validation_labels = word_or_empty("data.validation_labels");
  } else {
    s.data.task = word("data.task");
    s.data.samples = integer("data.samples");
  }

  s.batch.train = integer("train_batch_size");
  s.batch.micro = integer("train_micro_batch_size_per_gpu");
  s.batch.accumulation = integer("gradient_accumulation_steps");

  s.optimizer.type = word("optimizer.type");
  s.optimizer.learning_rate = real("optimizer.params.lr");
  s.optimizer.weight_decay = real("optimizer.params.weight_decay");
  if (s.optimizer.type == "SGD") {
    s.optimizer.momentum = real("optimizer.params.momentum");
    s.optimizer.dampening = real("optimizer.params.dampening");
    s.optimizer.nesterov = flag("optimizer.params.nesterov");
    s.optimizer.decoupled_decay = false;
  } else {
    const auto betas = get<std::vector<double>>("optimizer.params.betas");
    s.optimizer.beta1 = betas[0];
    s.optimizer.beta2 = betas[1];
    s.optimizer.epsilon = real("optimizer.params.eps");
    s.optimizer.decoupled_decay = flag("optimizer.params.adam_w_mode");
  }

  if (values_.contains("scheduler.type")) {
    s.scheduler.type = word("scheduler.type");
    s.scheduler.warmup_num_steps = integer("scheduler.params.warmup_num_steps");
    s.scheduler.warmup_type = word("scheduler.params.warmup_type");
    s.scheduler.total_num_steps = integer_or_0("scheduler.params.total_num_steps");
    if (s.scheduler.type == "WarmupCosineLR") {
      s.scheduler.warmup_min_ratio = real("scheduler.params.warmup_min_ratio");
      s.scheduler.cos_min_ratio = real("scheduler.params.cos_min_ratio");
    } else {
      s.scheduler.warmup_min_lr = real("scheduler.params.warmup_min_lr");
      s.scheduler.warmup_max_lr = real("scheduler.params.warmup_max_lr");
    }
  }

  s.dtype = dtype_of(flag("fp16.enabled"), flag("bf16.enabled"));
  s.loss_scale.loss_scale = real("fp16.loss_scale");
  s.loss_scale.initial_scale_power = integer("fp16.initial_scale_power");
  s.loss_scale.loss_scale_window = integer("fp16.loss_scale_window");
  s.loss_scale.hysteresis = integer("fp16.hysteresis");
  s.loss_scale.consecutive_hysteresis = flag("fp16.consecutive_hysteresis");
  s.loss_scale.min_loss_scale = real("fp16.min_loss_scale");
  s.grad_accum_dtype = word("data_types.grad_accum_dtype");
  s.gradient_clipping = real("gradient_clipping");
  s.steps_per_print = integer("steps_per_print");
  s.wall_clock_breakdown = flag("wall_clock_breakdown");

  s.zero.stage = static_cast<int>(integer("zero_optimization.stage"));
  s.zero.max_live_parameters = integer("zero_optimization.stage3_max_live_parameters");
  s.zero.prefetch_bucket_size = integer("zero_optimization.stage3_prefetch_bucket_size");
  s.zero.param_persistence_threshold = integer("zero_optimization.stage3_param_persistence_threshold");

  s.training.max_steps = integer("training.max_steps");
  s.training.max_epochs = integer_or_0("training.max_epochs");
  s.training.seed = static_cast<std::uint64_t>(integer("training.seed"));
  s.training.eval_interval = integer("training.eval_interval");
  s.training.eval_steps = integer("training.eval_steps");
  s.training.checkpoint_interval = integer("training.checkpoint_interval");
  s.training.checkpoints_to_keep = integer("training.checkpoints_to_keep");
  s.training.output_dir = word("training.output_dir");
  s.training.sample_prompt = word("training.sample_prompt");
  s.training.local_accumulation = word("training.gradient_accumulation_order") == "local";
  s.checkpoint_every = integer("activation_checkpointing.every");

  s.device.type = word("device.type");
  s.device.threads = static_cast<int>(integer_or_0("device.threads"));
  s.device.communicator = word("device.communicator");
  s.device.ranks_per_node = static_cast<int>(integer_or_0("device.ranks_per_node"));
  s.device.instruction_set = word("device.instruction_set");
  return s;
}

}  // namespace zt
