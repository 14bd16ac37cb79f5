// A GPT-2 style transformer (Radford et al. 2019): learned positions, pre-norm blocks, causal attention, a head
// that is tied to the embedding or not.
//
// Shapes: B sequences of a micro-batch, T = n_positions, C = n_embd, I = n_inner, H = n_head, V = vocabulary.
#pragma once

#include "model/arena.h"
#include "model/gpt_units.h"
#include "model/layers.h"
#include "model/model.h"

namespace zt {

class Gpt final : public Model {
 public:
  // freeze: patterns of parameters that are not trained (model/segments.h).
  // checkpoint_every = k > 0: every k-th block keeps its input only and is computed again in backward.
  Gpt(const GptSettings& settings, const std::vector<std::string>& freeze, std::int64_t checkpoint_every,
      const Precision& precision, Device& device, std::int64_t rows, ModelUse use = ModelUse::training);

  const std::vector<UnitSpec>& units() const override { return names_.units; }
  const std::vector<int>& order(Pass pass) const override;
  void forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) override;
  LossView backward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch,
                    const StepInfo& step) override;
  LossView evaluate(Device& device, ParameterAccess& parameters, const DeviceBatch& batch,
                    const StepInfo& step) override;
  const float* next_token_logits(Device& device, ParameterAccess& parameters, const std::int32_t* tokens,
                                 std::int64_t length) override;
  const float* decode(Device& device, ParameterAccess& parameters, const std::int32_t* tokens, std::int64_t first,
                      std::int64_t count) override;
  bool keeps_keys() const override { return keeps_keys_; }
  std::string activation_at(const void* address) const override;
  double flops_per_row() const override;

 private:
  // What backward needs of a block; what is quickly computed again, the outputs of norms and of the activation, is not
  // kept. A recomputed block owns `stream` only and shares the rest with its like; for inference a block owns `qkv`
  // only, the keys and values of a sequence that is decoded.
  struct Block {
    TensorView stream;          // [B, T, C]: the residual stream as it enters the block
    TensorView qkv, attention;  // [B, T, 3, C], [B, T, C]
    TensorView middle;          // [B, T, C]: the stream after attention
    TensorView hidden;          // [B, T, I]: before the activation
    float *mean_1 = nullptr, *rstd_1 = nullptr, *mean_2 = nullptr, *rstd_2 = nullptr;  // [B, T]
    float* log_sum_exp = nullptr;                                                      // [B, H, T]
    bool recomputed = false;
  };

  // One pass over one micro-batch: what the functions below share.
  struct PassContext {
    Device& device;
    ParameterAccess& parameters;
    const DeviceBatch& batch;
    const StepInfo& step;
    bool training;
    std::int64_t first;   // positions of the sequences that are run: all, or with decoding those of one
    std::int64_t length;  // that are new
  };
  PassContext whole_pass(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step,
                         bool training) const {
    return {device, parameters, batch, step, training, 0, settings_.n_positions};
  }

  // Phases of a pass, for the buffers that several of them share.
  static constexpr Phases in_forward = 1, in_head = 2, in_mlp_backward = 4, in_attention_backward = 8;
  static constexpr Phases in_block_backward = in_mlp_backward | in_attention_backward;

  template <typename Add>
  void add_tensors(Block& block, const std::string& name, const Add& add) const;
  void allocate_statistics(Device& device, Block& block, const std::string& name, std::int64_t positions);
  Block allocate_block(Device& device, const std::string& name, std::int64_t positions);
  void allocate_buffers(Device& device, std::int64_t checkpoint_every, std::int64_t rows);
  void allocate_for_inference(Device& device, std::int64_t rows);
  void allocate_head(Device& device, std::int64_t positions);
  void allocate_cast_weight(Device& device);
  void add_shared_buffers(std::int64_t positions, ModelUse use);
  bool activates() const { return activation_ != Activation::identity; }
  std::int64_t positions(const PassContext& pass) const { return pass.batch.rows * pass.length; }
  Linear linear(const PassContext& pass, std::int64_t inputs, std::int64_t outputs) const {
    return {positions(pass), inputs, outputs};
  }
  static ConstTensorView parameter(const PassContext& pass, int unit, int tensor) {
    return tensor < 0 ? ConstTensorView{} : pass.parameters.parameter(unit, tensor);
  }

  // A weight as products read it, and the output of a norm (in normed_ if products read another format) likewise.
  ConstTensorView weight(const PassContext& pass, int unit, int tensor) const {
    return as_operand(pass.device, parameter(pass, unit, tensor), cast_weight_);
  }
  TensorView norm_target(TensorView operand) const { return normed_ ? normed_ : operand; }
  void cast_norm(const PassContext& pass, TensorView operand) const;
  // The gradient of what a sub-layer added to the stream, as products read it.
  ConstTensorView d_sublayer(const PassContext& pass) const;

  // Numbers of the operations that drop out, for the keys of their draws.
  static constexpr std::int64_t drop_embedding = 0;
  static constexpr std::int64_t drop_attention_weights(std::size_t block) {
    return 1 + 3 * static_cast<std::int64_t>(block);
  }
  static constexpr std::int64_t drop_attention_output(std::size_t block) { return drop_attention_weights(block) + 1; }
  static constexpr std::int64_t drop_mlp_output(std::size_t block) { return drop_attention_weights(block) + 2; }

  Dropout dropout(const PassContext& pass, double probability, std::int64_t operation, std::int64_t elements) const;
  Dropout output_dropout(const PassContext& pass, std::int64_t operation) const;

  void embedding_forward(const PassContext& pass);
  // norm_1 of block `index`, after adding `delta` (the last block's output) to `from`; either may be absent.
  void norm_1_forward(const PassContext& pass, std::size_t index, ConstTensorView from, ConstTensorView delta);
  // From norm_1 to the activation; what the block adds to the stream goes to delta_ unless it is recomputed.
  void block_forward(const PassContext& pass, std::size_t index, bool recompute);
  void final_norm_forward(const PassContext& pass);
  void blocks_forward(const PassContext& pass);
  void attention_forward(const PassContext& pass, std::size_t index);
  const float* last_logits(const PassContext& pass, std::int64_t row);  // of a pass over one sequence

  // The loss, head_rows_ positions at a time; in training also the gradients of the head's weight and of its input.
  LossView head_loss(const PassContext& pass);
  void head_backward(const PassContext& pass);
  void block_backward(const PassContext& pass, std::size_t index);
  void mlp_backward(const PassContext& pass, std::size_t index);
  void attention_backward(const PassContext& pass, std::size_t index);
  void linear_backward_parameters(const PassContext& pass, int unit, int weight, int bias, const Linear& shape,
                                  ConstTensorView x, ConstTensorView d_y);
  // Also computes the norm's output again, into norm_.
  void norm_backward(const PassContext& pass, int unit, int weight, int bias, LayerNormBackward operation);
  void embedding_backward(const PassContext& pass);

  GptSettings settings_;
  Precision precision_;
  Activation activation_;
  GptUnits names_;
  std::vector<int> forward_order_, backward_order_;
  bool trains_embeddings_ = true;
  bool keeps_keys_ = true;               // each block has a qkv of its own
  std::size_t first_trained_block_ = 0;  // going back ends there, as nothing below it has gradients

  NamedBuffers buffers_;
  Arena arena_;
  Phases phase_ = in_forward;
  std::vector<Block> blocks_;
  TensorView final_stream_, final_norm_;  // [B, T, C]
  float *final_mean_ = nullptr, *final_rstd_ = nullptr;
  TensorView logits_;                   // [head_rows, stride]: logits, then their gradients
  TensorView d_head_;                   // [V, C] in fp32: the head's gradient, where parts of it must not be rounded
  std::int64_t logits_stride_ = 0;      // elements: V rounded up, so that rows start at whole vectors
  std::int64_t head_rows_ = 0;          // positions whose logits are in memory at once
  float* losses_ = nullptr;             // [B, T]
  float* next_token_logits_ = nullptr;  // [V]
  TensorView norm_;                     // [B, T, C]: a norm's output as products read it
  TensorView active_;                   // [B, T, I]: an activation's output
  TensorView delta_;                    // [B, T, C]: what a sub-layer adds to the stream
  TensorView d_stream_, d_norm_;        // [B, T, C]
  TensorView d_delta_;                  // [B, T, C]; d_stream_ itself without residual dropout
  TensorView d_attention_, d_qkv_, d_hidden_;
  // Only where products read another format than the stream has:
  TensorView normed_;       // [B, T, C]: a norm's output before it is cast
  TensorView d_operand_;    // [B, T, C]: d_delta_, cast
  TensorView cast_weight_;  // of the largest matrix
};

}  // namespace zt
