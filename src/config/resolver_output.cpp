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

SpikeAction spike_action_of(const std::string& word) {
  return word == "skip" ? SpikeAction::skip : word == "stop" ? SpikeAction::stop : SpikeAction::off;
}

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

  s.model.freeze = get<std::vector<std::string>>("model.freeze");
  if (known({"model.pretrained"})) s.model.pretrained = word("model.pretrained");

  s.data.type = word("data.type");
  if (s.data.type == "text" || s.data.type == "csv") {
    s.data.path = word("data.path");
    s.data.validation_fraction = real("data.validation_fraction");
    s.data.split_seed = static_cast<std::uint64_t>(integer("data.split_seed"));
  }
  if (s.data.type == "text") {
    s.data.format = word("data.format");
    s.data.tokenizer = word("data.tokenizer");
  } else if (s.data.type == "tokens") {
    const auto word_or_empty = [&](const char* path) { return known({path}) ? word(path) : std::string(); };
    s.data.train = word("data.train");
    s.data.validation = word_or_empty("data.validation");
    s.data.format = word_or_empty("data.format");
    s.data.tokenizer = word_or_empty("data.tokenizer");
    s.data.documents_apart = word("data.documents") == "apart";
    s.data.end_of_text = known({"data.end_of_text"}) ? integer("data.end_of_text") : -1;
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

  s.optimizer = optimizer_settings();
  if (values_.contains("scheduler.type")) s.scheduler = scheduler_settings();

  s.loss_scale.loss_scale = real("fp16.loss_scale");
  s.loss_scale.initial_scale_power = integer("fp16.initial_scale_power");
  s.loss_scale.loss_scale_window = integer("fp16.loss_scale_window");
  s.loss_scale.hysteresis = integer("fp16.hysteresis");
  s.loss_scale.consecutive_hysteresis = flag("fp16.consecutive_hysteresis");
  s.loss_scale.min_loss_scale = real("fp16.min_loss_scale");
  s.loss_scale.on_overflow = word("fp16.on_overflow") == "retry" ? OnOverflow::retry : OnOverflow::skip;
  s.bf16_check_grad_overflow = flag("bf16.check_grad_overflow");
  set_precision(s);
  s.gradient_clipping = real("gradient_clipping");
  s.gradient_predivide_factor = real("gradient_predivide_factor");
  s.prescale_gradients = get<bool>("prescale_gradients");
  s.steps_per_print = integer("steps_per_print");
  s.wall_clock_breakdown = flag("wall_clock_breakdown");

  s.zero.stage =
      known({"zero_optimization.stage"}) ? static_cast<int>(integer("zero_optimization.stage")) : stage_left_open;
  s.zero.max_live_parameters = integer("zero_optimization.stage3_max_live_parameters");
  s.zero.prefetch_bucket_size = integer("zero_optimization.stage3_prefetch_bucket_size");
  s.zero.param_persistence_threshold = integer("zero_optimization.stage3_param_persistence_threshold");

  s.training.max_steps = integer("training.max_steps");
  s.training.max_epochs = integer_or_0("training.max_epochs");
  s.training.seed = static_cast<std::uint64_t>(integer("training.seed"));
  s.training.eval_interval = integer("training.eval_interval");
  s.training.eval_steps = integer("training.eval_steps");
  s.training.early_stopping.patience = integer("training.early_stopping.patience");
  s.training.early_stopping.min_delta = real("training.early_stopping.min_delta");
  s.training.spike_guard.action = spike_action_of(word("training.spike_guard.action"));
  s.training.spike_guard.deviations = real("training.spike_guard.deviations");
  s.training.spike_guard.window = integer("training.spike_guard.window");
  s.training.checkpoint_interval = integer("training.checkpoint_interval");
  s.training.checkpoints_to_keep = integer("training.checkpoints_to_keep");
  s.training.checkpoint_in_background = flag("training.checkpoint_in_background");
  s.training.digest_interval = integer("training.digest_interval");
  s.training.output_dir = word("training.output_dir");
  s.training.sample_prompt = word("training.sample_prompt");
  s.training.report_delay = get<std::int64_t>("training.report_delay");
  s.training.fast_communication = word("training.communication_order") == "fast";
  s.training.accumulation_order =
      word("training.gradient_accumulation_order") == "local" ? AccumulationOrder::local : AccumulationOrder::global;
  s.checkpoint_every = integer_or_0("activation_checkpointing.every");

  s.device.type = word("device.type");
  s.device.threads = static_cast<int>(integer_or_0("device.threads"));
  s.device.communicator = word("device.communicator");
  s.device.ranks_per_node = static_cast<int>(integer_or_0("device.ranks_per_node"));
  s.device.instruction_set = word("device.instruction_set");
  s.device.tf32 = get<bool>("device.tf32");
  s.device.gelu_epilogue = get<bool>("device.gelu_epilogue");
  return s;
}

LeftOpen Resolver::left_open() const {
  LeftOpen open;
  const std::string every = "activation_checkpointing.every";
  open.stage = holds_auto("zero_optimization.stage");
  open.recomputation = is("model.type", "gpt") && (holds_auto(every) || (open.stage && !given(every)));
  const auto has_number = [&](const char* key) { return given(key) && !is_auto(checked_.given.at(key)); };
  open.micro_batch = open.any() && !options_.resumed && !has_number("train_micro_batch_size_per_gpu") &&
                     !has_number("gradient_accumulation_steps");
  return open;
}

std::int64_t Resolver::memory_limit() const {
  return known({"device.memory_limit"}) ? get<std::int64_t>("device.memory_limit") : 0;
}

}  // namespace zt
