// Layer normalization (Ba et al. 2016), fused with the residual sum and its dropout.
#include <cmath>

#include "device/cpu/simd.h"
#include "device/cpu/simd_layout.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_norm.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_philox-inl.h"
#include "device/cpu/simd_rows-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

// What is the same for all rows of one call.
struct ForwardRows {
  const LayerNormForward& op;
  const float* weight;  // [C]
  const float* bias;    // [C] or null
};

// A vector of a norm's output.
HWY_INLINE VF normalized_output(VF x, VF mean, VF rstd, VF weight, VF bias) {
  return hn::MulAdd(hn::Mul(hn::Sub(x, mean), rstd), weight, bias);
}

// The row that is normalized, as floats (in place, or in scratch), and its sum. With delta, stores `sum`.
template <typename T>
HWY_INLINE const float* row_to_normalize(const LayerNormForward& op, std::int64_t row, Dropper& dropper, float* scratch,
                                         float& total) {
  const F32 d;
  const std::int64_t columns = op.columns;
  const T* in = op.in.as<T>() + row * columns;
  RowSum row_sum;
  if (!op.delta) {
    if constexpr (std::is_same_v<T, float>) scratch = nullptr;
    for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
      const VF x = load(d, in + i, extent);
      if constexpr (!std::is_same_v<T, float>) store(d, x, scratch + i, extent);
      row_sum.add(x);
    });
    total = row_sum.total();
    if constexpr (std::is_same_v<T, float>) return in;
    return scratch;
  }
  const T* delta = op.delta.as<T>() + row * columns;
  T* sum = op.sum.as<T>() + row * columns;
  for_pieces(columns, [&](std::int64_t offset, std::int64_t n) HWY_ATTR {
    if (dropper.active()) dropper.fill(row * columns + offset, n);
    for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
      const std::int64_t at = offset + i;
      VF change = load(d, delta + at, extent);
      if (dropper.active()) change = dropper.apply(i, change);
      const VF x = rounded<T>(d, hn::Add(load(d, in + at, extent), change));
      store(d, x, sum + at, extent);
      if constexpr (!std::is_same_v<T, float>) store(d, x, scratch + at, extent);
      row_sum.add(valid_or_zero(d, x, extent));
    });
  });
  total = row_sum.total();
  if constexpr (std::is_same_v<T, float>) return sum;
  return scratch;
}

template <typename T>
void forward_row(const ForwardRows& rows, std::int64_t row, Dropper& dropper, float* scratch) {
  const F32 d;
  const LayerNormForward& op = rows.op;
  const std::int64_t columns = op.columns;
  float total = 0.0F;
  const float* x = row_to_normalize<T>(op, row, dropper, scratch, total);
  const float mean = total / static_cast<float>(columns);
  const VF means = hn::Set(d, mean);
  RowSum squares;
  for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF difference = valid_or_zero(d, hn::Sub(load(d, x + i, extent), means), extent);
    squares.add_product(difference, difference);
  });
  const float rstd = 1.0F / std::sqrt(squares.total() / static_cast<float>(columns) + op.epsilon);
  op.mean[row] = mean;
  op.rstd[row] = rstd;
  const VF scale = hn::Set(d, rstd);
  T* out = op.out.as<T>() + row * columns;
  for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF bias = rows.bias == nullptr ? hn::Zero(d) : load(d, rows.bias + i, extent);
    const VF weight = load(d, rows.weight + i, extent);
    store(d, normalized_output(load(d, x + i, extent), means, scale, weight, bias), out + i, extent);
  });
}

void layer_norm_forward(const LayerNormForward& op, Context& context) {
  if (op.columns == 0) return;
  auto* shared = reinterpret_cast<float*>(context.shared);
  const float* weight = as_floats(op.weight, 0, op.columns, shared);
  if (op.weight.dtype != DType::f32) shared += partial_stride(op.columns);
  const float* bias = op.bias ? as_floats(op.bias, 0, op.columns, shared) : nullptr;
  const ForwardRows rows{op, weight, bias};
  const std::int64_t per_task = rows_per_task(op.columns);
  context.pool.for_each(ceil_div(op.rows, per_task), [&](std::int64_t task, int worker) {
    Dropper dropper(op.dropout);
    auto* scratch = reinterpret_cast<float*>(context.of(worker));
    const std::int64_t end = smaller(op.rows, (task + 1) * per_task);
    dispatch(op.in.dtype, [&]<typename T>(T*) {
      for (std::int64_t row = task * per_task; row < end; ++row) forward_row<T>(rows, row, dropper, scratch);
    });
  });
}

// With xhat = (x - mean) rstd and g = d_out * weight:
//   d_in = rstd (g - mean(g) - xhat mean(g xhat)) + d_residual,  d_weight += d_out xhat,  d_bias += d_out.
struct BackwardRows {
  const LayerNormBackward& op;
  const float* weight;  // [C]
  const float* bias;    // [C] or null
  float* d_weight;      // [C], this chunk's partial sums
  float* d_bias;        // [C] or null
};

template <typename T>
void backward_row(const BackwardRows& rows, std::int64_t row, Dropper& dropper) {
  const F32 d;
  const LayerNormBackward& op = rows.op;
  const std::int64_t columns = op.columns;
  const T* in = op.in.as<T>() + row * columns;
  const T* d_out = op.d_out.as<T>() + row * columns;
  const VF mean = hn::Set(d, op.mean[row]);
  const VF rstd = hn::Set(d, op.rstd[row]);
  RowSum sum_g;
  RowSum sum_g_xhat;
  for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF xhat = hn::Mul(hn::Sub(load(d, in + i, extent), mean), rstd);
    const VF dy = load(d, d_out + i, extent);
    const VF g = hn::Mul(dy, load(d, rows.weight + i, extent));
    sum_g.add(g);
    sum_g_xhat.add_product(g, valid_or_zero(d, xhat, extent));
    store(d, hn::MulAdd(dy, xhat, load(d, rows.d_weight + i, extent)), rows.d_weight + i, extent);
    if (rows.d_bias != nullptr) {
      store(d, hn::Add(load(d, rows.d_bias + i, extent), dy), rows.d_bias + i, extent);
    }
  });
  const VF mean_g = hn::Set(d, sum_g.total() / static_cast<float>(columns));
  const VF mean_g_xhat = hn::Set(d, sum_g_xhat.total() / static_cast<float>(columns));
  T* d_in = op.d_in.as<T>() + row * columns;
  const T* d_residual = op.d_residual ? op.d_residual.as<T>() + row * columns : nullptr;
  T* out = op.out ? op.out.as<T>() + row * columns : nullptr;
  for_vectors(d, columns, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF x = load(d, in + i, extent);
    const VF weight = load(d, rows.weight + i, extent);
    if (out != nullptr) {
      const VF bias = rows.bias == nullptr ? hn::Zero(d) : load(d, rows.bias + i, extent);
      store(d, normalized_output(x, mean, rstd, weight, bias), out + i, extent);
    }
    const VF xhat = hn::Mul(hn::Sub(x, mean), rstd);
    const VF g = hn::Mul(load(d, d_out + i, extent), weight);
    const VF centred = hn::NegMulAdd(xhat, mean_g_xhat, hn::Sub(g, mean_g));
    const VF residual = d_residual == nullptr ? hn::Zero(d) : load(d, d_residual + i, extent);
    store(d, hn::MulAdd(centred, rstd, residual), d_in + i, extent);
  });
  if (!op.d_delta) return;
  T* d_delta = op.d_delta.as<T>() + row * columns;
  for_pieces(columns, [&](std::int64_t offset, std::int64_t n) HWY_ATTR {
    if (dropper.active()) dropper.fill(row * columns + offset, n);
    for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
      VF change = load(d, d_in + offset + i, extent);
      if (dropper.active()) change = dropper.apply(i, change);
      store(d, change, d_delta + offset + i, extent);
    });
  });
}

void layer_norm_backward(const LayerNormBackward& op, Context& context) {
  if (op.columns == 0) return;
  const std::int64_t chunks = row_chunks(op.rows);
  const std::int64_t stride = partial_stride(op.columns);
  auto* d_weights = reinterpret_cast<float*>(context.shared);
  float* after = d_weights + chunks * stride;
  float* d_biases = nullptr;
  if (op.d_bias) {
    d_biases = after;
    after += chunks * stride;
  }
  const float* weight = as_floats(op.weight, 0, op.columns, after);
  if (op.weight.dtype != DType::f32) after += stride;
  const float* bias = op.out && op.bias ? as_floats(op.bias, 0, op.columns, after) : nullptr;
  context.pool.for_each(chunks, [&](std::int64_t chunk, int) {
    Dropper dropper(op.dropout);
    const std::int64_t end = smaller(op.rows, (chunk + 1) * rows_per_chunk);
    const BackwardRows rows{op, weight, bias, d_weights + chunk * stride,
                            d_biases == nullptr ? nullptr : d_biases + chunk * stride};
    const auto bytes = static_cast<std::size_t>(stride) * sizeof(float);
    std::memset(rows.d_weight, 0, bytes);
    if (rows.d_bias != nullptr) std::memset(rows.d_bias, 0, bytes);
    dispatch(op.in.dtype, [&]<typename T>(T*) {
      for (std::int64_t row = chunk * rows_per_chunk; row < end; ++row) backward_row<T>(rows, row, dropper);
    });
  });
  if (op.d_weight) add_partials(context, d_weights, stride, chunks, op.d_weight, op.columns, op.add_weight);
  if (op.d_bias) add_partials(context, d_biases, stride, chunks, op.d_bias, op.columns, op.add_bias);
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(layer_norm_forward);
HWY_EXPORT(layer_norm_backward);

static std::int64_t floats_bytes(std::int64_t columns, bool needed) {
  return needed ? partial_stride(columns) * static_cast<std::int64_t>(sizeof(float)) : 0;
}

WorkspaceNeed workspace_of(const LayerNormForward& op) {
  return {.per_worker = floats_bytes(op.columns, is_16_bit(op.in.dtype)),
          .shared = floats_bytes(op.columns, is_16_bit(op.weight.dtype)) +
                    floats_bytes(op.columns, op.bias.count != 0 && is_16_bit(op.bias.dtype))};
}
void run(const LayerNormForward& op, Context& context) { HWY_DYNAMIC_DISPATCH(layer_norm_forward)(op, context); }

WorkspaceNeed workspace_of(const LayerNormBackward& op) {
  return {.per_worker = 0,
          .shared = partials_bytes(op.rows, op.columns) * (op.d_bias.count != 0 ? 2 : 1) +
                    floats_bytes(op.columns, is_16_bit(op.weight.dtype)) +
                    floats_bytes(op.columns, op.bias.count != 0 && is_16_bit(op.bias.dtype))};
}
void run(const LayerNormBackward& op, Context& context) { HWY_DYNAMIC_DISPATCH(layer_norm_backward)(op, context); }

}  // namespace zt::cpu
#endif
