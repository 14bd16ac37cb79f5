// Configs that are accepted: what is read, how files are merged, what "auto" and defaults become.
#include <cmath>
#include <cstdlib>

#include "catch_compat.h"
#include "config/keys.h"
#include "config_support.h"

using namespace zt;
using namespace zt::testing;

TEST_CASE("comments and trailing commas are read over, also where they look like text") {
  const std::string text =
      "\xef\xbb\xbf// first\r\n{ # second\r\n \"a\": \"// not # a /* comment\", /* third\n , } */\n"
      " \"b\": [1, 2, ], \"c\\\"d\": {\"e\": 5e8,},\n}  // last";
  const Json json = read_config_text(text, "x", ".").json;
  CHECK(json["a"] == "// not # a /* comment");
  CHECK(json["b"] == Json::array({1, 2}));
  CHECK(json["c\"d"]["e"] == 5e8);
  const std::string blanked = blank_comments(text, "x");
  CHECK(blanked.size() == text.size());
  CHECK(blanked.find("second") == std::string::npos);
}

TEST_CASE("integers may be written as DeepSpeed files do") {
  const Settings s = settings_of({tiny_gpt(), R"({"zero_optimization": {"stage": 3.0,
      "stage3_max_live_parameters": 1e14, "stage3_prefetch_bucket_size": 1.000000e+09}, "steps_per_print": 9999999999})"});
  CHECK(s.zero.stage == 3);
  CHECK(s.zero.max_live_parameters == 100000000000000);
  CHECK(s.zero.prefetch_bucket_size == 1000000000);
  CHECK(s.steps_per_print == 9999999999);
}

TEST_CASE("keys with an underscore in front and $schema are passed by") {
  CHECK(refusal_of({tiny_gpt(), R"({"$schema": "x", "_note": {"a": [1]}, "training": {"_": 3}})"}) == "accepted");
}

TEST_CASE("later files win key by key, auto never does, a changed type replaces its section") {
  Settings s = settings_of({tiny_gpt(), R"({"optimizer": {"type": "Adam", "params": {"lr": 0.5, "eps": 1e-6}}})",
                            R"({"optimizer": {"type": "adam", "params": {"lr": "auto", "weight_decay": 0.25}},
                                "train_batch_size": "auto", "training": {"max_steps": 9}})"});
  CHECK(s.optimizer.type == "Adam");
  CHECK(s.optimizer.learning_rate == 0.5);
  CHECK(s.optimizer.epsilon == 1e-6);
  CHECK(s.optimizer.weight_decay == 0.25);
  CHECK(s.batch.train == 8);
  CHECK(s.training.max_steps == 9);

  s = settings_of({tiny_gpt(), R"({"optimizer": {"type": "Adam", "params": {"lr": 0.5, "eps": 1e-6}}})",
                   R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.5}}})"});
  CHECK(s.optimizer.type == "SGD");
  CHECK(s.optimizer.learning_rate == 1e-3);
  CHECK(s.optimizer.momentum == 0.5);

  s = settings_of({tiny_gpt(), tiny_mlp(), R"({"data": {"task": "regression"}})"});
  CHECK(s.model.type == "mlp");
  CHECK(s.model.mlp.layers == std::vector<std::int64_t>{8, 16, 1});

  // A number after an "auto" counts.
  s = settings_of({tiny_gpt(), R"({"gradient_clipping": "auto"})", R"({"gradient_clipping": 0.5})"});
  CHECK(s.gradient_clipping == 0.5);
}

TEST_CASE("zero is zero, and a rate of zero is told") {
  const ResolvedConfig config = resolve_texts({tiny_gpt(), R"({"optimizer": {"params": {"lr": -0.0}}})"});
  CHECK_FALSE(std::signbit(config.settings.optimizer.learning_rate));
  CHECK(contains(config.notices, "optimizer.params.lr: 0: no weight will change"));
  CHECK_FALSE(contains(resolve_texts({tiny_gpt(), R"({"optimizer": {"params": {"lr": 0}},
      "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1}}})"})
                           .notices,
                       "no weight"));
  const ResolvedConfig old = resolve_texts({tiny_gpt()}, {"bfloat16.enabled=true"});
  CHECK(contains(old.notices, "--set: bfloat16 is an old name of bf16"));
}

TEST_CASE("--set takes JSON or a string, and creates sections") {
  const Settings s = settings_of(
      {tiny_gpt()}, {"zero_optimization.stage=2", "training.sample_prompt=To be = not", "optimizer.type=adamw",
                     "optimizer.params.betas=[0.8, 0.9]", "training.max_steps=5e1", "bfloat16.enabled=true"});
  CHECK(s.zero.stage == 2);
  CHECK(s.training.sample_prompt == "To be = not");
  CHECK(s.optimizer.type == "AdamW");
  CHECK(s.optimizer.beta1 == 0.8);
  CHECK(s.training.max_steps == 50);
  CHECK(s.precision.preset == "bf16");
  // A text needs no quotes there, and keeps its spelling.
  CHECK(settings_of({tiny_gpt()}, {"training.sample_prompt=4.20"}).training.sample_prompt == "4.20");
  CHECK(settings_of({tiny_gpt()}, {"training.sample_prompt=true"}).training.sample_prompt == "true");
  CHECK(settings_of({tiny_gpt()}, {"training.output_dir=5"}).training.output_dir.ends_with("/5"));
  CHECK(settings_of({tiny_gpt()}, {"zero_optimization=true"}).zero.stage == 1);
  CHECK(settings_of({tiny_gpt()}, {"train_batch_size=auto", "train_micro_batch_size_per_gpu=3"}).batch.train == 3);
}

TEST_CASE("relative inputs start at the file that names them, outputs at the current directory") {
  const ConfigDirectory directory;
  const std::string text =
      R"({"model": {"type": "gpt"}, "data": {"type": "text", "path": "../in.txt"},
      "train_batch_size": 1, "training": {"output_dir": "out"}})";
  const std::string file = directory.write("configs/a.json", text);
  const std::string here = directory.path().string();
  ResolvedConfig config = resolve_config({file}, {}, 1, directory.options());
  CHECK(config.settings.data.path == here + "/in.txt");
  CHECK(config.settings.training.output_dir == here + "/out");

  config = resolve_config({file}, {"data.path=x.txt", "data.tokenizer=characters"}, 1, directory.options());
  CHECK(config.settings.data.path == here + "/x.txt");
  CHECK(config.settings.data.tokenizer == "characters");

  ResolveOptions options = directory.options();
  options.output_dir = "elsewhere";
  CHECK(resolve_config({file}, {}, 1, options).settings.training.output_dir == here + "/elsewhere");
  CHECK(settings_of({tiny_gpt()}).training.output_dir.ends_with("/runs/a"));
}

TEST_CASE("any two batch keys give the third") {
  const std::string base =
      std::string(tiny_mlp()).replace(std::string(tiny_mlp()).find("\"train_batch_size\": 8,"), 22, "");
  struct Row {
    const char* text;
    int ranks;
    std::int64_t train, micro, steps;
  };
  for (
      const Row& row : std::vector<Row>{
          {R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})", 2, 24,
           3, 4},
          {R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 3})", 2, 24, 3, 4},
          {R"({"train_batch_size": 24, "gradient_accumulation_steps": 4})", 2, 24, 3, 4},
          {R"({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})", 2, 24, 3, 4},
          {R"({"train_batch_size": 24})", 2, 24, 12, 1},
          {R"({"train_micro_batch_size_per_gpu": 3})", 2, 6, 3, 1},
          {R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": "auto"})", 2,
           24, 3, 4},
          {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": "auto"})",
           4, 12, 3, 1},
      }) {
    INFO(row.text);
    const BatchSettings batch = settings_of({base, row.text}, {}, row.ranks).batch;
    CHECK(batch.train == row.train);
    CHECK(batch.micro == row.micro);
    CHECK(batch.accumulation == row.steps);
  }
}

TEST_CASE("auto is resolved and told") {
  const ResolvedConfig config = resolve_texts({tiny_gpt(), R"({
      "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
      "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto",
                    "warmup_num_steps": "auto", "total_num_steps": "auto"}},
      "gradient_clipping": "auto", "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"},
      "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
                            "stage3_param_persistence_threshold": "auto"}})"});
  const Settings& s = config.settings;
  CHECK(s.optimizer.learning_rate == 5e-5);
  CHECK(s.optimizer.beta2 == 0.999);
  CHECK(s.scheduler.warmup_max_lr == 5e-5);
  CHECK(s.scheduler.total_num_steps == 4);
  CHECK(s.gradient_clipping == 1.0);
  CHECK(s.zero.prefetch_bucket_size == 3686);  // 0.9 * 64 * 64
  CHECK(s.zero.param_persistence_threshold == 640);
  CHECK(s.precision.preset == "fp32");
  for (const char* key : {"optimizer.params.lr: \"auto\" is 5e-05", "total_num_steps: \"auto\" is 4",
                          "gradient_clipping: \"auto\" is 1.0", "bf16.enabled: \"auto\" is false"}) {
    INFO(key);
    CHECK(contains(config.notices, key));
  }
}

TEST_CASE("auto precision is bf16 where the device is fast at it") {
  const auto dtype = [](const char* text, bool fast) {
    return resolve_texts({tiny_gpt(), text}, {}, 1, fast).settings.precision.preset;
  };
  CHECK(dtype(R"({"bf16": {"enabled": "auto"}})", true) == "bf16");
  CHECK(dtype(R"({"bf16": {"enabled": "auto"}})", false) == "fp32");
  CHECK(dtype(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}})", true) == "bf16");
  CHECK(dtype(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": true}})", true) == "fp16");
  CHECK(dtype(R"({"bf16": {"enabled": true}, "fp16": {"enabled": "auto"}})", false) == "bf16");
  CHECK(dtype(R"({"fp16": {"enabled": "auto"}})", true) == "fp32");
}

TEST_CASE("defaults are those of the table, and those that DeepSpeed moved are told") {
  ResolvedConfig config =
      resolve_texts({tiny_gpt(), R"({"fp16": {"enabled": true}, "zero_optimization": {"stage": 3}})"});
  CHECK(config.settings.loss_scale.initial_scale_power == 32);
  CHECK(config.settings.gradient_clipping == 0.0);
  CHECK(config.settings.optimizer.type == "AdamW");
  CHECK(config.settings.optimizer.learning_rate == 3e-4);
  CHECK(config.settings.model.gpt.n_inner == 256);
  for (const char* words : {"optimizer: none given, so AdamW with lr 3e-4", "initial_scale_power: 32 by default",
                            "gradient_clipping: 0 by default", "stage3_param_persistence_threshold: 0 by default"}) {
    INFO(words);
    CHECK(contains(config.notices, words));
  }
  config = resolve_texts({tiny_gpt(), R"({"optimizer": {"type": "Adam"}})"});
  CHECK(config.settings.optimizer.decoupled_decay);
  CHECK(contains(config.notices, "optimizer.params.lr: 1e-3 by default"));
  CHECK(contains(config.notices, "decays weights as AdamW does"));
  CHECK_FALSE(settings_of({tiny_gpt(), R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})"})
                  .optimizer.decoupled_decay);
}

TEST_CASE("what cannot act is told") {
  const auto notices = [](const char* text) { return resolve_texts({tiny_gpt(), text}).notices; };
  CHECK(contains(notices(R"({"fp16": {"enabled": false, "on_overflow": "retry"}})"),
                 "on_overflow: has no effect: fp16 is not enabled"));
  const char* hysteresis = R"({"fp16": {"enabled": true, "on_overflow": "retry", "hysteresis": 4}})";
  CHECK(contains(notices(hysteresis), "fp16.hysteresis: 1 with fp16.on_overflow \"retry\""));
  CHECK(settings_of({tiny_gpt(), hysteresis}).loss_scale.hysteresis == 1);
  CHECK_FALSE(contains(notices(R"({"fp16": {"enabled": true, "on_overflow": "retry"}})"), "hysteresis"));
  CHECK(contains(notices(R"({"training": {"spike_guard": {"action": "skip", "window": 4}}})"),
                 "window: 4 applied steps must be seen first, and training.max_steps is 4"));
  CHECK_FALSE(contains(notices(R"({"training": {"spike_guard": {"action": "skip", "window": 3}}})"), "window"));
  CHECK(contains(notices(R"({"training": {"eval_interval": 2, "early_stopping": {"patience": 2}}})"),
                 "patience: cannot end this run early: training.max_steps leaves 2 evaluation(s)"));
  CHECK_FALSE(
      contains(notices(R"({"training": {"eval_interval": 2, "early_stopping": {"patience": 1}}})"), "patience"));
}

TEST_CASE("keys that nothing reads in this run are told, and no others") {
  struct Row {
    const char* text;
    const char* words;
    bool told = true;
  };
  const auto check = [](const char* base, const Row& row) {
    INFO(row.text);
    CHECK(contains(resolve_texts({base, row.text}).notices, row.words) == row.told);
  };
  for (const Row& row : std::vector<Row>{
           {R"({"training": {"sample_prompt": "x"}})", "sample_prompt: has no effect: synthetic tokens"},
           {R"({"training": {"checkpoint_in_background": true}})", "checkpoint_in_background: has no effect"},
           {R"({"training": {"eval_steps": 3}})", "eval_steps: has no effect: training.eval_interval is 0"},
           {R"({"training": {"eval_steps": 3, "eval_interval": 2}})", "eval_steps", false},
           {R"({"activation_checkpointing": {"every": 3}})", "every: has no effect: every k-th block"},
           {R"({"activation_checkpointing": {"every": 2}})", "every: costs time and saves no memory"},
           {R"({"activation_checkpointing": {"every": 2}})", "every: has no effect", false},
           {R"({"zero_optimization": {"stage": 1, "stage3_prefetch_bucket_size": 9}})", "stage3", false},
           {R"({"training": {"gradient_accumulation_order": "local"}, "zero_optimization": {"stage": 2},
                "gradient_accumulation_steps": 4})",
            "training.gradient_accumulation_order: \"local\" has no effect at stage 2, which holds a slice of the "
            "sums"},
           {R"({"training": {"gradient_accumulation_order": "local"}, "zero_optimization": {"stage": 1}})",
            "\"local\" has no effect: gradient_accumulation_steps is 1"},
           {R"({"training": {"gradient_accumulation_order": "local"}, "gradient_accumulation_steps": 4})",
            "gradient_accumulation_order", false},
           {R"({"training": {"gradient_accumulation_order": "local"}, "gradient_accumulation_steps": 4,
                "bf16": {"enabled": true}})",
            "communication_data_type", false},
           {R"({"training": {"gradient_accumulation_order": "local"}, "gradient_accumulation_steps": 4,
                "bf16": {"enabled": true}, "communication_data_type": "bf16"})",
            "communication_data_type: gradients are made in \"bf16\", but with training.gradient_accumulation_order "
            "\"local\" it is their sums that are sent, in data_types.grad_accum_dtype fp32"},
           {R"({"training": {"gradient_accumulation_order": "local"}, "gradient_accumulation_steps": 4,
                "bf16": {"enabled": true}, "communication_data_type": "bf16",
                "data_types": {"grad_accum_dtype": "bf16"}})",
            "communication_data_type", false},
           {R"({"scheduler": {}})", "scheduler: has no effect: it is empty, so the rate is constant"},
           {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}}})",
            "warmup_num_steps: 5 is more than training.max_steps 4: the run ends within the warm-up"},
           {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4}}})", "within the warm-up", false},
           {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1,
                "cycle_first_step_size": 9223372036854775807}}})",
            "the cycle takes more than 64 bits count steps"},
       }) {
    check(tiny_gpt(), row);
  }
  check(tiny_mlp(), {R"({"activation_checkpointing": {"every": 1}})", "every: has no effect: an mlp has no blocks"});
}

TEST_CASE("sums over several micro-batches are kept in fp32 unless told otherwise") {
  const auto sum = [](const char* text) { return settings_of({tiny_gpt(), text}).precision.grad_accum_dtype; };
  CHECK(sum(R"({"bf16": {"enabled": true}})") == "bf16");
  CHECK(sum(R"({"bf16": {"enabled": true}, "gradient_accumulation_steps": 2})") == "fp32");
  CHECK(sum(R"({"bf16": {"enabled": true}, "gradient_accumulation_steps": 2,
                "data_types": {"grad_accum_dtype": "bf16"}})") == "bf16");
}

TEST_CASE("a key without effect gives one notice that says why") {
  const ResolvedConfig config = resolve_texts({tiny_gpt(), R"({
    "zero_optimization": {"stage": 1, "overlap_comm": true},
    "activation_checkpointing": {"partition_activations": true, "profile": false},
    "wandb": {"enabled": true, "project": "p"}, "aio": {"thread_count": 2, "block_size": 4}})"});
  for (const char* words : {"b.json:2: zero_optimization.overlap_comm: has no effect", "wandb.enabled: has no effect",
                            "partition_activations: has no effect: it switches nothing on", "aio: has no effect",
                            "aio.thread_count is an old name of aio.intra_op_parallelism"}) {
    INFO(words);
    CHECK(contains(config.notices, words));
  }
  CHECK_FALSE(contains(config.notices, "profile"));
}

TEST_CASE("what is refused passes in silence when it is switched off") {
  const ResolvedConfig config = resolve_texts({tiny_gpt(), R"({"gradient_clipping": 1, "optimizer": {"type": "AdamW",
      "params": {"lr": 1, "amsgrad": false}}, "amp": {"enabled": false, "opt_level": "O1"},
      "elasticity": {"enabled": false, "min_gpus": 2}, "curriculum_learning": {}, "wandb": {"enabled": false},
      "sparse_gradients": false, "comms_logger": {"enabled": false, "verbose": false}, "scheduler": null,
      "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}, "offload_param": null,
          "cpu_offload": false, "zero_hpz_partition_size": 1, "mics_shard_size": -1, "zeropp_loco_param": null},
      "training": {"checkpoint_interval": 0}, "model": {"pretrained": null, "freeze": []}})"});
  CHECK(config.notices.empty());
}

TEST_CASE("old forms are understood") {
  ResolvedConfig config = resolve_texts({tiny_gpt(), R"({"zero_optimization": true, "bfloat16": {"enabled": true}})"});
  CHECK(config.settings.zero.stage == 1);
  CHECK(config.settings.precision.preset == "bf16");
  CHECK(contains(config.notices, "zero_optimization: true is an old form"));
  CHECK(contains(config.notices, "b.json:1: bfloat16 is an old name of bf16"));
  CHECK(settings_of({tiny_gpt(), R"({"zero_optimization": false})"}).zero.stage == 0);
  config = resolve_texts({tiny_gpt(), R"({"zero_optimization": {"stage": 3, "max_live_parameters": 7}})"});
  CHECK(config.settings.zero.max_live_parameters == 7);
}

TEST_CASE("the printed config has no auto, and read again gives the same") {
  const std::vector<std::vector<std::string>> configs = {
      {tiny_gpt()},
      {tiny_mlp()},
      {tiny_gpt(), R"({"fp16": {"enabled": true, "loss_scale": 128}, "zero_optimization": {"stage": 3},
          "training": {"max_steps": 90},
          "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10}},
          "optimizer": {"type": "Adam", "params": {"lr": 1.25e-5, "adam_w_mode": false}}})"},
      {tiny_mlp(), R"({"bf16": {"enabled": true}, "optimizer": {"type": "SGD", "params": {"momentum": 0.9}},
          "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_num_steps": 3}}})"},
      {tiny_gpt(), R"({"optimizer": {"type": "Adagrad", "params": {"lr": 1, "initial_accumulator_value": 0.5}},
          "gradient_clipping": 1, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto", "warmup_num_steps": 4}}})"},
      {tiny_gpt(), R"({"optimizer": {"type": "AdamW", "params": {"lr": 1, "amsgrad": true, "weight_decay": 0.1,
          "weight_decay_exclude": ["bias"]}}, "training": {"max_steps": 90},
          "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.5, "cycle_max_lr": "auto",
          "cycle_first_step_size": "auto", "cycle_second_step_size": "auto"}}})"},
      {tiny_gpt(), R"({"optimizer": {"type": "Lamb", "params": {"max_coeff": 0.5, "eps_inside_sqrt": true}}})"},
      {tiny_gpt(), R"({"optimizer": {"type": "Muon", "params": {"muon_lr": 0.1, "weight_decay": 0.5}}})"},
      {tiny_gpt(), R"({"optimizer": {"type": "Lion", "params": {"lr": 1e-4, "betas": [0.95, 0.98]}}})"},
      {R"({"model": {"type": "gpt"}, "data": {"type": "text", "path": "in.txt"}, "train_batch_size": 4})"},
      {tiny_gpt(), R"({"fp16": {"enabled": true, "on_overflow": "retry"}, "training": {"eval_interval": 1,
          "early_stopping": {"patience": 1}, "spike_guard": {"action": "skip", "window": 2}}})"},
      {R"({"model": {"type": "gpt"}, "data": {"type": "text", "path": "in.jsonl"}, "train_batch_size": 4})"},
      {tiny_mlp(), R"({"data": {"type": "csv", "path": "in.csv", "target": ["y"], "delimiter": "\t"}})"},
      {tiny_mlp(), R"({"data": {"type": "csv", "path": "in.csv", "target": 4, "header": false, "normalize": false}})"},
      {R"({"model": {"type": "mlp", "layers": [8, 4], "loss": "cross_entropy"}, "train_batch_size": 4,
           "data": {"type": "idx", "images": "i", "labels": "l"}})"},
  };
  for (const auto& texts : configs) {
    ResolvedConfig first = resolve_texts(texts);
    settle(first, {.vocab_size = 256,
                   .device_type = "cpu",
                   .threads = 2,
                   .communicator = "shared",
                   .ranks_per_node = 1,
                   .instruction_set = "avx2"});
    CHECK(first.settings.device.threads == 2);
    const std::string text = first.json.dump(2);
    INFO(text);
    CHECK(text.find("\"auto\"") == std::string::npos);
    const ResolvedConfig second = resolve_texts({text});
    CHECK(second.json.dump(2) == text);
    CHECK(second.notices.empty());
    CHECK(second.settings.model.gpt.vocab_size == first.settings.model.gpt.vocab_size);
    CHECK(second.settings.optimizer.learning_rate == first.settings.optimizer.learning_rate);
  }
}

TEST_CASE("the printed config holds every key that acts") {
  const Json json = resolve_texts({tiny_gpt(), R"({"scheduler": {"type": "WarmupLR"}})"}).json;
  const ConfigTree tree{json, {}};
  for (const Key& key : key_table()) {
    if (key.kind != KeyKind::used || key.type == KeyType::section) continue;
    const auto has = [&](const char* type) {
      return key.types.empty() || std::find(key.types.begin(), key.types.end(), type) != key.types.end();
    };
    if (!has("gpt") && !has("synthetic") && !has("AdamW") && !has("WarmupLR")) continue;
    INFO(key.path);
    CHECK(tree.find(key.path) != nullptr);
  }
}

TEST_CASE("JSON lines are known by the ending of their name, unless data.format says otherwise") {
  const auto format = [](const std::string& data) {
    return resolve_texts({tiny_gpt(), R"({"data": {"type": "text", )" + data + "}}"}).settings.data.format;
  };
  CHECK(format(R"("path": "x.txt")") == "plain");
  CHECK(format(R"("path": "x.jsonl")") == "prompt_completion");
  CHECK(format(R"("path": "x.jsonl.gz")") == "prompt_completion");
  CHECK(format(R"("path": "x.ndjson")") == "prompt_completion");
  CHECK(format(R"("path": "x.jsonl", "format": "plain")") == "plain");
  CHECK(format(R"("path": "x.txt", "format": "prompt_completion")") == "prompt_completion");
  const ResolvedConfig config = resolve_texts({tiny_gpt(), R"({"data": {"type": "text", "path": "x.jsonl"}})"});
  CHECK(config.json["data"]["format"] == "prompt_completion");
  const auto notices = [](const std::string& seed) {
    return resolve_texts({tiny_gpt(), R"({"data": {"type": "text", "path": "x.txt", "split_seed": )" + seed + "}}"})
        .notices;
  };
  CHECK(contains(notices("1"), "data.split_seed: has no effect"));
  CHECK_FALSE(contains(notices("0"), "split_seed"));
}

TEST_CASE("targets of a table are names or numbers, one of them also without a list") {
  const auto data = [](const std::string& target) {
    return resolve_texts({tiny_mlp(), R"({"data": {"type": "csv", "path": "x.csv", "target": )" + target + "}}"});
  };
  CHECK(data(R"("y")").settings.data.target.at(0).name == "y");
  CHECK(data("3").settings.data.target.at(0).number == 3);
  CHECK(data(R"(["3"])").settings.data.target.at(0).name == "3");
  CHECK(data("[2.0]").json["data"]["target"] == Json::array({2}));
  const Settings settings = data(R"("y")").settings;
  CHECK(settings.data.header);
  CHECK(settings.data.normalize);
  CHECK(settings.data.delimiter == ",");
  CHECK(settings.data.validation_fraction == 0.1);
}
