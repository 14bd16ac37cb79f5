// Attention's kernels among themselves: what they are given, and which there are. For .cu files only.
//
// Two families. The tensor cores' (attention_forward.h, attention_backward.h) multiply fp16 and bf16 for the head sizes
// 32, 64, 96 and 128; the plain ones (attention_plain_*.cu) take every dtype and head size. Both are the
// algorithm of FlashAttention-2 (Dao 2023): tiles of queries against tiles of keys, the softmax rescaled as larger
// scores come, nothing of size T x T in memory; P is computed again in the backward pass. A block's work and the order
// of every sum depend on the shape alone, and no two blocks add to one place.
#pragma once

#include <cstdint>

#include "device/cuda/attention_dropout.h"
#include "device/cuda/kernel_support.h"
#include "device/gpu/workspace.h"

namespace zt::cuda::attention {

constexpr float log2_e = 1.4426950408889634F;

// One of these a query, in [B, H, gpu::attention_padded_length(T)]: how the backward pass wants log_sum_exp and
// delta = sum(d_out * out), which is sum(P * d_P) over the keys (Dao et al. 2022, appendix B.2). Queries from T on have
// {infinity, 0}, so that their probabilities are 0.
struct Statistics {
  float log_sum_exp;  // times log2(e) for the tensor cores' kernels, which take powers of 2
  float delta;        // times 1 / sqrt(D)
};

// An operation as kernels get it. Pointers are to elements of the kernel's type.
struct Problem {
  const void* qkv = nullptr;               // [B, T, 3, H, D]
  const void* out = nullptr;               // [B, T, H, D], backward only
  const void* d_out = nullptr;             // [B, T, H, D], backward only
  void* result = nullptr;                  // out, or d_qkv
  float* log_sum_exp = nullptr;            // [B, H, T], forward only
  const Statistics* statistics = nullptr;  // backward only
  int batch = 0, length = 0, heads = 0, head_size = 0;
  float scale = 0.0F;      // 1 / sqrt(D)
  bool is_aligned = true;  // 16-byte accesses are allowed
  Keeping keeping{};

  std::int64_t batch_heads() const { return static_cast<std::int64_t>(batch) * heads; }
};

// T: __half or __nv_bfloat16; D: problem.head_size, 32, 64, 96 or 128.
template <typename T, int D>
void forward_on_tensor_cores(const Problem& problem, const Launch& launch);
template <typename T, int D>
void backward_on_tensor_cores(const Problem& problem, const Launch& launch);

// T: also float; any head size.
template <typename T>
void forward_plain(const Problem& problem, const Launch& launch);
template <typename T>
void backward_plain(const Problem& problem, const Launch& launch);

}  // namespace zt::cuda::attention
