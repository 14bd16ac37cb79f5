// Keys of zerotrain's own sections: model, training, activation_checkpointing.every, device.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_model(std::vector<Key>& t) {
  const std::vector<std::string> gpt = {"gpt"};
  const std::vector<std::string> mlp = {"mlp"};
  t.push_back(used_key(section, "model", "the model; its other keys depend on its type"));
  t.push_back(used_key(choice, "model.type", "gpt (transformer decoder) or mlp (linear layers)")
                  .one_of({"gpt", "mlp"})
                  .required());
  t.push_back(used_key(integer, "model.n_layer", "number of transformer blocks")
                  .standard(6)
                  .at_least(1)
                  .at_most(10000)
                  .only_for(gpt));
  t.push_back(used_key(integer, "model.n_head", "attention heads of a block; divides n_embd")
                  .standard(6)
                  .at_least(1)
                  .at_most(65536)
                  .only_for(gpt));
  t.push_back(used_key(integer, "model.n_embd", "width of the hidden states")
                  .standard(384)
                  .at_least(1)
                  .at_most(1 << 20)
                  .only_for(gpt));
  t.push_back(used_key(integer, "model.n_positions", "tokens of a sequence (context length)")
                  .standard(256)
                  .at_least(1)
                  .at_most(1 << 24)
                  .only_for(gpt));
  t.push_back(used_key(integer, "model.vocab_size", "number of token ids; auto: what the tokenizer has")
                  .standard("auto")
                  .or_auto()
                  .at_least(2)
                  .at_most(1 << 24)
                  .only_for(gpt));
  t.push_back(used_key(integer, "model.n_inner", "width inside a block's MLP; null: 4 x n_embd")
                  .standard(nullptr)
                  .or_null()
                  .at_least(1)
                  .at_most(1 << 24)
                  .only_for(gpt));
  t.push_back(used_key(choice, "model.activation_function", "gelu_new is the tanh form, gelu the exact one")
                  .standard("gelu_new")
                  .one_of({"gelu_new", "gelu", "relu", "silu"})
                  .only_for(gpt));
  t.push_back(used_key(boolean, "model.bias", "biases of linear layers and of norms").standard(true).only_for(gpt));
  t.push_back(used_key(boolean, "model.tie_word_embeddings", "the output head uses the token embedding's matrix")
                  .standard(true)
                  .only_for(gpt));
  for (const auto& [name, where] :
       {std::pair{"embd_pdrop", "after the embeddings"}, std::pair{"resid_pdrop", "on each block's residual outputs"},
        std::pair{"attn_pdrop", "on attention weights"}}) {
    t.push_back(used_key(number, std::string("model.") + name, std::string("dropout probability ") + where)
                    .standard(0.0)
                    .at_least(0)
                    .below(1)
                    .only_for(gpt));
  }
  t.push_back(used_key(number, "model.layer_norm_epsilon", "added to the variance in layer norms")
                  .standard(1e-5)
                  .above(0)
                  .only_for(gpt));
  t.push_back(used_key(number, "model.initializer_range", "standard deviation of the initial weights")
                  .standard(0.02)
                  .above(0)
                  .only_for(gpt));
  t.push_back(used_key(integers, "model.layers", "widths: inputs, hidden ..., outputs")
                  .required()
                  .length(2, 1024)
                  .at_least(1)
                  .at_most(1 << 24)
                  .only_for(mlp));
  t.push_back(used_key(choice, "model.activation", "between the layers")
                  .standard("identity")
                  .one_of({"identity", "relu", "gelu", "tanh"})
                  .only_for(mlp));
  t.push_back(used_key(boolean, "model.bias", "biases of the linear layers").standard(true).only_for(mlp));
  t.push_back(used_key(choice, "model.loss", "mse (mean of squares) or cross_entropy (outputs are classes)")
                  .standard("mse")
                  .one_of({"mse", "cross_entropy"})
                  .only_for(mlp));
  t.push_back(
      used_key(path, "model.pretrained",
               "weights to start from, in place of initial ones: a checkpoint, a Hugging Face GPT-2 (its directory or "
               "model.safetensors) or llm.c's model.bin; keys of the model that are not given are as there "
               "(docs/formats.md)")
          .standard(nullptr)
          .or_null());
  t.push_back(used_key(strings, "model.freeze",
                       "name patterns of parameters that are not trained: \"h.0\" and all below it, \"*.bias\"; * "
                       "stands for any characters")
                  .standard(Json::array()));
}

void add_training(std::vector<Key>& t) {
  t.push_back(used_key(section, "training", "how long, how often evaluated, where the files go"));
  t.push_back(used_key(integer, "training.max_steps", "optimizer steps attempted, skipped ones included")
                  .standard(100)
                  .at_least(1));
  t.push_back(used_key(integer, "training.max_epochs", "passes over the data at most; null: no limit")
                  .standard(nullptr)
                  .or_null()
                  .at_least(1));
  t.push_back(used_key(integer, "training.seed", "of initial weights, order of the data and dropout")
                  .standard(1234)
                  .at_least(0));
  t.push_back(used_key(integer, "training.eval_interval", "steps between evaluations, one more at the end; 0: none")
                  .standard(0)
                  .at_least(0));
  t.push_back(used_key(integer, "training.eval_steps", "batches of train_batch_size in an evaluation")
                  .standard(10)
                  .at_least(1));
  t.push_back(used_key(integer, "training.checkpoint_interval",
                       "steps between checkpoints, and one more at the end; 0: none but on a signal")
                  .standard(0)
                  .at_least(0));
  t.push_back(used_key(integer, "training.checkpoints_to_keep",
                       "older checkpoints are deleted once a new one is whole; 0: all stay")
                  .standard(2)
                  .at_least(0));
  t.push_back(used_key(boolean, "training.checkpoint_in_background",
                       "checkpoints are written from a copy in memory while the training goes on")
                  .standard(false));
  t.push_back(
      used_key(integer, "training.digest_interval",
               "steps between fingerprints of weights and moments in metrics.jsonl, with which compare finds the "
               "step where two runs part; at stages 0 to 2 the ranks' copies are compared, too; 0: none")
          .standard(0)
          .at_least(0));
  t.push_back(used_key(path, "training.output_dir",
                       "directory of the run's files; without it runs/NAME, NAME from the first config file"));
  t.push_back(
      used_key(string, "training.sample_prompt", "gpt: text to continue when training ends; empty: none").standard(""));
  t.push_back(
      used_key(
          choice, "training.gradient_accumulation_order",
          "order in which micro-batches are added up: \"global\", that of the global batch, gives the same bits at "
          "every number of ranks; \"local\", at stages 0 and 1, adds up each rank's own first and sends "
          "once a step (docs/zero.md)")
          .standard("global")
          .one_of({"global", "local"}));
  t.push_back(used_key(choice, "training.communication_order", "order in which ranks' gradients are added up")
                  .standard("exact")
                  .one_of({"exact", "fast"}));
  t.push_back(used_key(integer, "training.report_delay",
                       "1: losses are read a step late, so that a GPU never waits for the host between steps; for "
                       "runs that end with the first step that is not finite")
                  .standard(0)
                  .at_least(0)
                  .at_most(1));
}

void add_guards(std::vector<Key>& t) {
  t.push_back(used_key(section, "training.early_stopping", "ends a run whose validation loss has stopped falling"));
  t.push_back(used_key(integer, "training.early_stopping.patience",
                       "evaluations in a row without improvement that end the run; 0: never")
                  .standard(0)
                  .at_least(0));
  t.push_back(used_key(number, "training.early_stopping.min_delta",
                       "an improvement is a validation loss lower by more than this")
                  .standard(0.0)
                  .at_least(0));
  t.push_back(
      used_key(section, "training.spike_guard", "keeps steps whose loss or gradient norm jumps from the weights"));
  t.push_back(used_key(choice, "training.spike_guard.action", "skip leaves the update out, stop ends the run")
                  .standard("off")
                  .one_of({"off", "skip", "stop"}));
  t.push_back(used_key(number, "training.spike_guard.deviations",
                       "standard deviations above the mean from which on a value has jumped")
                  .standard(6.0)
                  .above(0)
                  .at_most(1e6));
  t.push_back(used_key(integer, "training.spike_guard.window",
                       "applied steps that mean and deviation are taken over; nothing is skipped before it is full")
                  .standard(100)
                  .at_least(2)
                  .at_most(10000));
}

void add_device(std::vector<Key>& t) {
  t.push_back(used_key(section, "device", "what the run computes on"));
  t.push_back(used_key(choice, "device.type",
                       "cuda: NVIDIA GPUs, one a rank (ranks share where there are fewer); auto: cuda if every rank "
                       "finds one, else cpu")
                  .standard("auto")
                  .or_auto()
                  .one_of({"cpu", "cuda"})
                  .refusing("gpu", "GPUs are \"cuda\""));
  t.push_back(used_key(integer, "device.threads", "threads of a rank; auto: its share of the cores")
                  .standard("auto")
                  .or_auto()
                  .at_least(1)
                  .at_most(4096));
  t.push_back(
      used_key(choice, "device.communicator",
               "on CPUs shared (memory of one machine) or mpi; on GPUs nccl, or staged through the host's memory")
          .standard("auto")
          .or_auto()
          .one_of({"shared", "mpi", "nccl", "staged"}));
  t.push_back(
      used_key(integer, "device.ranks_per_node", "pretend that a node holds so many ranks; 0, auto: as they are")
          .standard("auto")
          .or_auto()
          .at_least(0)
          .at_most(1 << 20));
  t.push_back(used_key(choice, "device.instruction_set", "lowers what the processor offers; auto: all of it")
                  .standard("auto")
                  .or_auto()
                  .one_of({"baseline", "avx2", "avx512", "avx512_bf16"}));
  t.push_back(used_key(integer, "device.memory_limit",
                       "bytes that a rank may take; null: what is free on its machine or GPU when the run begins")
                  .standard(nullptr)
                  .or_null()
                  .at_least(1));
  t.push_back(used_key(boolean, "device.tf32", "cuda: fp32 products on tensor cores, with 10 bits of mantissa")
                  .standard(false));
  t.push_back(used_key(boolean, "device.gelu_epilogue", "cuda: GELU and its derivative are computed within products")
                  .standard(false));
}

}  // namespace

void add_own_keys(std::vector<Key>& table) {
  add_model(table);
  add_data_keys(table);
  add_training(table);
  add_guards(table);
  table.push_back(used_key(section, "activation_checkpointing", "recomputation of activations in the backward pass"));
  table.push_back(used_key(integer, "activation_checkpointing.every",
                           "recompute every k-th block; 0: store all; auto: all where they do not fit else")
                      .standard(0)
                      .or_auto()
                      .at_least(0));
  add_device(table);
}

}  // namespace zt
