// Sum of token and position embeddings, and its gradient.
#include <cassert>

#include "device/cpu/simd.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_embedding.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_philox-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

void embedding_forward(const EmbeddingForward& op, Context& context) {
  const std::int64_t columns = op.columns;
  for_ranges(context, op.batch * op.length, rows_per_task(columns), [&](std::int64_t first, std::int64_t rows) {
    const F32 d;
    Dropper dropper(op.dropout);
    float token_buffer[piece];
    float position_buffer[piece];
    float sums[piece];
    for (std::int64_t row = first; row < first + rows; ++row) {
      const std::int64_t token = op.tokens[row];
      assert(token >= 0 && token < op.vocabulary);
      const std::int64_t position = row % op.length;
      for_pieces(columns, [&](std::int64_t offset, std::int64_t n) HWY_ATTR {
        const float* of_token = as_floats(op.token_table, token * columns + offset, n, token_buffer);
        const float* of_position = as_floats(op.position_table, position * columns + offset, n, position_buffer);
        const std::int64_t at = row * columns + offset;
        if (dropper.active()) dropper.fill(at, n);
        for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
          VF sum = hn::Add(load(d, of_token + i, extent), load(d, of_position + i, extent));
          if (dropper.active()) sum = dropper.apply(i, sum);
          store(d, sum, sums + i, extent);
        });
        store_floats(sums, op.out, at, n, false);
      });
    }
  });
}

// sums[0 ... n) += dropout(d_out[row, offset ... offset + n)).
HWY_INLINE void add_gradient(const EmbeddingBackward& op, Dropper& dropper, std::int64_t row, std::int64_t offset,
                             std::int64_t n, float* buffer, float* sums) {
  const F32 d;
  const std::int64_t at = row * op.columns + offset;
  const float* gradient = as_floats(op.d_out, at, n, buffer);
  if (dropper.active()) dropper.fill(at, n);
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF g = load(d, gradient + i, extent);
    if (dropper.active()) g = dropper.apply(i, g);
    store(d, hn::Add(load(d, sums + i, extent), g), sums + i, extent);
  });
}

// For each row `item` of `table`: the sum over the rows of d_out that rows_of(item, visit) calls visit for, in order.
// A row without any gets 0, or stays with add.
template <class RowsOf>
void gather_gradients(const EmbeddingBackward& op, Context& context, const TensorView& table, std::int64_t items,
                      std::int64_t items_per_task, bool add, const RowsOf& rows_of) {
  const std::int64_t blocks = ceil_div(op.columns, piece);
  const std::int64_t groups = ceil_div(items, items_per_task);
  context.pool.for_each(groups * blocks, [&](std::int64_t task, int) {
    Dropper dropper(op.dropout);
    float buffer[piece];
    float sums[piece];
    const std::int64_t offset = task % blocks * piece;
    const std::int64_t n = smaller(piece, op.columns - offset);
    const std::int64_t begin = task / blocks * items_per_task;
    const std::int64_t end = smaller(items, begin + items_per_task);
    for (std::int64_t item = begin; item < end; ++item) {
      std::memset(sums, 0, sizeof(sums));
      bool any = false;
      rows_of(item, [&](std::int64_t row) {
        add_gradient(op, dropper, row, offset, n, buffer, sums);
        any = true;
      });
      if (any || !add) store_floats(sums, table, item * op.columns + offset, n, add);
    }
  });
}

void embedding_backward(const EmbeddingBackward& op, Context& context) {
  const std::int64_t rows = op.batch * op.length;
  // Rows sorted by token, in order of position: those of token v are order[starts[v] ... starts[v + 1]).
  auto* starts = reinterpret_cast<std::int32_t*>(context.shared);
  std::int32_t* order = starts + op.vocabulary + 1;
  std::memset(starts, 0, static_cast<std::size_t>(op.vocabulary + 1) * sizeof(std::int32_t));
  for (std::int64_t row = 0; row < rows; ++row) {
    assert(op.tokens[row] >= 0 && op.tokens[row] < op.vocabulary);
    ++starts[op.tokens[row]];
  }
  std::int32_t sum = 0;
  for (std::int64_t v = 0; v <= op.vocabulary; ++v) {
    sum += starts[v];
    starts[v] = sum;  // the end of v's rows; placing rows from the last one on moves it to their start
  }
  for (std::int64_t row = rows - 1; row >= 0; --row) {
    order[--starts[op.tokens[row]]] = static_cast<std::int32_t>(row);
  }
  // Few tokens: each may have many rows.
  const std::int64_t tokens_per_task = op.vocabulary < 2048 ? 1 : 32;
  const auto rows_of_table = [](const TensorView& table, std::int64_t items) { return table ? items : 0; };
  gather_gradients(op, context, op.d_token_table, rows_of_table(op.d_token_table, op.vocabulary), tokens_per_task,
                   op.add_token, [&](std::int64_t token, const auto& visit) {
                     for (std::int32_t k = starts[token]; k < starts[token + 1]; ++k) visit(order[k]);
                   });
  gather_gradients(op, context, op.d_position_table, rows_of_table(op.d_position_table, op.positions), 8,
                   op.add_position, [&](std::int64_t position, const auto& visit) {
                     if (position >= op.length) return;
                     for (std::int64_t b = 0; b < op.batch; ++b) visit(b * op.length + position);
                   });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(embedding_forward);
HWY_EXPORT(embedding_backward);

WorkspaceNeed workspace_of(const EmbeddingForward&) { return {}; }
void run(const EmbeddingForward& op, Context& context) { HWY_DYNAMIC_DISPATCH(embedding_forward)(op, context); }

WorkspaceNeed workspace_of(const EmbeddingBackward& op) {
  const std::int64_t integers = op.vocabulary + 1 + op.batch * op.length;
  return {.per_worker = 0, .shared = (integers * static_cast<std::int64_t>(sizeof(std::int32_t)) + 63) / 64 * 64};
}
void run(const EmbeddingBackward& op, Context& context) { HWY_DYNAMIC_DISPATCH(embedding_backward)(op, context); }

}  // namespace zt::cpu
#endif
