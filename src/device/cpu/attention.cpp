// Causal attention, one head of one sequence at a time (or a part of its queries), in scratch memory that a single
// thread uses: the head's panels, made dense and padded with zeros to whole blocks of queries, and the scores of one
// block of queries with all the keys up to them. Nothing of size T x T exists.
//
// Blocks are 64 queries: products of 64 x 64 j x D run at 0.9 or more of the rate of large ones (measured: fp32 88-114
// of 107 GF/s, bf16 180-216 of 215), while blocks of 128 compute up to half as much again above the diagonal at T =
// 256. Blocks of 32, or products of halves of a block where it meets the diagonal, compute less there but run at lower
// rates: no faster in fp32, slower in bf16 (measured: T = 256, D = 64).
#include "device/cpu/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "device/cpu/attention_rows.h"
#include "device/cpu/panels.h"
#include "device/cpu/product.h"

namespace zt::cpu {
namespace {

constexpr std::int64_t largest_block = 64;  // queries
constexpr std::int64_t enough_tasks = 16;

// What forward and backward have in common.
struct Shape {
  template <typename Op>
  explicit Shape(const Op& op)
      : batch(op.batch),
        length(op.length),
        heads(op.heads),
        head_size(op.head_size),
        dtype(op.qkv.dtype),
        panel(multiplies_natively(op.qkv.dtype) ? op.qkv.dtype : DType::f32),
        block(std::min(largest_block, round_up(std::max<std::int64_t>(op.length, 1), row_step))),
        padded(round_up(op.length, block)),
        scale(1.0F / std::sqrt(static_cast<float>(op.head_size))) {}

  std::int64_t batch, length, heads, head_size;
  DType dtype;  // of the tensors
  DType panel;  // of what products read
  std::int64_t block, padded;
  float scale;

  bool empty() const { return batch <= 0 || length <= 0 || heads <= 0 || head_size <= 0; }
  std::int64_t blocks() const { return padded / block; }
  // From one row of the scores of a block with `keys` keys to the next.
  std::int64_t row_stride(std::int64_t keys) const { return keys + (reads_rows_in_place() ? row_padding : 0); }
  std::int64_t scores_at_most() const { return block * row_stride(padded); }
  RowFormat format() const { return {.rounded = dtype, .stored = panel}; }
  // Of an element of [B, T, 3, H, D] and of [B, T, H, D].
  std::int64_t qkv_index(std::int64_t b, std::int64_t t, std::int64_t part, std::int64_t h) const {
    return (((b * length + t) * 3 + part) * heads + h) * head_size;
  }
  std::int64_t out_index(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return ((b * length + t) * heads + h) * head_size;
  }
  std::int64_t qkv_stride() const { return 3 * heads * head_size; }
  std::int64_t out_stride() const { return heads * head_size; }

  Product product(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return {.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n, .dtype = panel};
  }
  // [block, D] [keys, D]^T -> [block, keys]
  Product scores(std::int64_t keys) const {
    Product p = product(block, keys, head_size);
    p.transpose_b = true;
    p.ldb = head_size;
    p.ldc = row_stride(keys);
    return p;
  }
  // [block, keys] [keys, D] -> [block, D]
  Product weighted(std::int64_t keys) const {
    Product p = product(block, head_size, keys);
    p.lda = row_stride(keys);
    return p;
  }
  // [block, keys]^T [block, D], added to [keys, D]
  Product transposed(std::int64_t keys) const {
    Product p = product(keys, head_size, block);
    p.transpose_a = true;
    p.lda = row_stride(keys);
    p.sum = true;
    return p;
  }

  // The first element of a query's row of [H, T, T] per sample, to which dropout is applied.
  std::int64_t row_start(const Dropout& dropout, std::int64_t b, std::int64_t h, std::int64_t query) const {
    return b * dropout.elements_per_sample + (h * length + query) * length;
  }
};

// Hands out parts of a worker's scratch. With no memory it only counts.
class Placer {
 public:
  explicit Placer(Scratch scratch) : scratch_(scratch) {}
  template <typename T = float>
  T* place(std::int64_t count, std::int64_t element_bytes = sizeof(T)) {
    T* const here = scratch_.data == nullptr ? nullptr : reinterpret_cast<T*>(scratch_.data + used_);
    used_ += round_up(count * element_bytes, 64);
    return here;
  }
  std::int64_t used() const { return used_; }
  Scratch rest() const {
    if (used_ > scratch_.bytes) {
      throw std::logic_error("attention was run that needs more scratch memory than was reserved");
    }
    return {scratch_.data + used_, scratch_.bytes - used_};
  }

 private:
  Scratch scratch_;
  std::int64_t used_ = 0;
};

// Rows of a head from a tensor of the activations' dtype to a dense panel; rows from `rows` to `padded_rows` become 0.
void gather(const Shape& shape, const void* from, std::int64_t stride, std::byte* panel, std::int64_t rows,
            std::int64_t padded_rows) {
  const std::int64_t d = shape.head_size;
  const auto bytes = static_cast<std::int64_t>(size_of(shape.panel));
  if (shape.panel == shape.dtype) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(panel + r * d * bytes, element(shape.dtype, from, r * stride), static_cast<std::size_t>(d * bytes));
    }
  } else {
    load_panel(shape.dtype, from, stride, reinterpret_cast<float*>(panel), d, rows, d);
  }
  std::memset(panel + rows * d * bytes, 0, static_cast<std::size_t>((padded_rows - rows) * d * bytes));
}

struct ForwardScratch {
  ForwardScratch(const Shape& shape, Scratch scratch) : placer(scratch) {
    const auto bytes = static_cast<std::int64_t>(size_of(shape.panel));
    queries = placer.place<std::byte>(shape.block * shape.head_size, bytes);
    keys = placer.place<std::byte>(shape.padded * shape.head_size, bytes);
    values = placer.place<std::byte>(shape.padded * shape.head_size, bytes);
    scores = placer.place(shape.scores_at_most());
    probabilities = reinterpret_cast<std::byte*>(scores);
    if (is_16_bit(shape.panel)) probabilities = placer.place<std::byte>(shape.scores_at_most(), bytes);
    out = placer.place(shape.block * shape.head_size);
  }
  Placer placer;
  std::byte *queries, *keys, *values, *probabilities;
  float *scores, *out;
};

struct BackwardScratch {
  BackwardScratch(const Shape& shape, Scratch scratch) : placer(scratch) {
    const auto bytes = static_cast<std::int64_t>(size_of(shape.panel));
    queries = placer.place<std::byte>(shape.block * shape.head_size, bytes);
    d_out = placer.place<std::byte>(shape.block * shape.head_size, bytes);
    keys = placer.place<std::byte>(shape.padded * shape.head_size, bytes);
    values = placer.place<std::byte>(shape.padded * shape.head_size, bytes);
    d_keys = placer.place(shape.padded * shape.head_size);
    d_values = placer.place(shape.padded * shape.head_size);
    scores = placer.place(shape.scores_at_most());
    d_probabilities = placer.place(shape.scores_at_most());
    probabilities = reinterpret_cast<std::byte*>(scores);
    d_scores = reinterpret_cast<std::byte*>(d_probabilities);
    if (is_16_bit(shape.panel)) {
      probabilities = placer.place<std::byte>(shape.scores_at_most(), bytes);
      d_scores = placer.place<std::byte>(shape.scores_at_most(), bytes);
    }
    d_queries = placer.place(shape.block * shape.head_size);
  }
  Placer placer;
  std::byte *queries, *d_out, *keys, *values, *probabilities, *d_scores;
  float *d_keys, *d_values, *scores, *d_probabilities, *d_queries;
};

// Tasks into which the queries of a head are cut: part p takes the blocks p, p + parts, ...
std::int64_t forward_parts(const Shape& shape) {
  const std::int64_t heads = shape.batch * shape.heads;
  return std::clamp<std::int64_t>((enough_tasks + heads - 1) / heads, 1, shape.blocks());
}

void forward_head(const AttentionForward& op, const Shape& shape, std::int64_t b, std::int64_t h, std::int64_t part,
                  std::int64_t parts, Scratch scratch) {
  const ForwardScratch s(shape, scratch);
  const Scratch library = s.placer.rest();
  const auto from = [&](std::int64_t t, std::int64_t which) {
    return element(shape.dtype, op.qkv.data, shape.qkv_index(b, t, which, h));
  };
  gather(shape, from(0, 1), shape.qkv_stride(), s.keys, shape.length, shape.padded);
  gather(shape, from(0, 2), shape.qkv_stride(), s.values, shape.length, shape.padded);
  for (std::int64_t block = part; block < shape.blocks(); block += parts) {
    const std::int64_t first = block * shape.block;
    const std::int64_t rows = std::min(shape.block, shape.length - first);
    const std::int64_t keys = first + shape.block, stride = shape.row_stride(keys);
    gather(shape, from(first, 0), shape.qkv_stride(), s.queries, rows, shape.block);
    run_product(shape.scores(keys), s.queries, s.keys, s.scores, nullptr, library);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t query = first + r;
      op.log_sum_exp[(b * shape.heads + h) * shape.length + query] =
          softmax_row(s.scores + r * stride, element(shape.panel, s.probabilities, r * stride), query + 1, keys,
                      shape.scale, shape.format(), op.dropout, shape.row_start(op.dropout, b, h, query));
    }
    const auto unused = static_cast<std::size_t>((shape.block - rows) * stride) * size_of(shape.panel);
    std::memset(element(shape.panel, s.probabilities, rows * stride), 0, unused);
    run_product(shape.weighted(keys), s.probabilities, s.values, s.out, nullptr, library);
    store_panel(s.out, shape.head_size, shape.dtype, element(shape.dtype, op.out.data, shape.out_index(b, first, h)),
                shape.out_stride(), rows, shape.head_size, false);
  }
}

void backward_head(const AttentionBackward& op, const Shape& shape, std::int64_t b, std::int64_t h, Scratch scratch) {
  const BackwardScratch s(shape, scratch);
  const Scratch library = s.placer.rest();
  const std::int64_t d = shape.head_size;
  const auto from = [&](std::int64_t t, std::int64_t which) {
    return element(shape.dtype, op.qkv.data, shape.qkv_index(b, t, which, h));
  };
  const auto to = [&](std::int64_t t, std::int64_t which) {
    return element(shape.dtype, op.d_qkv.data, shape.qkv_index(b, t, which, h));
  };
  gather(shape, from(0, 1), shape.qkv_stride(), s.keys, shape.length, shape.padded);
  gather(shape, from(0, 2), shape.qkv_stride(), s.values, shape.length, shape.padded);
  std::fill_n(s.d_keys, shape.padded * d, 0.0F);
  std::fill_n(s.d_values, shape.padded * d, 0.0F);
  for (std::int64_t block = 0; block < shape.blocks(); ++block) {
    const std::int64_t first = block * shape.block;
    const std::int64_t rows = std::min(shape.block, shape.length - first);
    const std::int64_t keys = first + shape.block, stride = shape.row_stride(keys);
    const auto out_at = [&](const ConstTensorView& view, std::int64_t t) {
      return element(shape.dtype, view.data, shape.out_index(b, t, h));
    };
    gather(shape, from(first, 0), shape.qkv_stride(), s.queries, rows, shape.block);
    gather(shape, out_at(op.d_out, first), shape.out_stride(), s.d_out, rows, shape.block);
    run_product(shape.scores(keys), s.queries, s.keys, s.scores, nullptr, library);
    run_product(shape.scores(keys), s.d_out, s.values, s.d_probabilities, nullptr, library);
    // In a loop of their own, as `out` comes from memory and loads of several rows then overlap.
    std::array<float, largest_block> products{};
    for (std::int64_t r = 0; r < rows; ++r) {
      products.at(static_cast<std::size_t>(r)) =
          dot_row(shape.dtype, out_at(op.d_out, first + r), out_at(op.out, first + r), d);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t query = first + r;
      softmax_row_backward(
          s.scores + r * stride, s.d_probabilities + r * stride, element(shape.panel, s.probabilities, r * stride),
          element(shape.panel, s.d_scores, r * stride), query + 1, keys, shape.scale,
          op.log_sum_exp[(b * shape.heads + h) * shape.length + query], products.at(static_cast<std::size_t>(r)),
          shape.format(), op.dropout, shape.row_start(op.dropout, b, h, query));
    }
    const auto unused = static_cast<std::size_t>((shape.block - rows) * stride) * size_of(shape.panel);
    std::memset(element(shape.panel, s.probabilities, rows * stride), 0, unused);
    std::memset(element(shape.panel, s.d_scores, rows * stride), 0, unused);
    run_product(shape.transposed(keys), s.probabilities, s.d_out, s.d_values, nullptr, library);
    run_product(shape.transposed(keys), s.d_scores, s.queries, s.d_keys, nullptr, library);
    run_product(shape.weighted(keys), s.d_scores, s.keys, s.d_queries, nullptr, library);
    store_panel(s.d_queries, d, shape.dtype, to(first, 0), shape.qkv_stride(), rows, d, false);
  }
  store_panel(s.d_keys, d, shape.dtype, to(0, 1), shape.qkv_stride(), shape.length, d, false);
  store_panel(s.d_values, d, shape.dtype, to(0, 2), shape.qkv_stride(), shape.length, d, false);
}

}  // namespace

WorkspaceNeed attention_workspace(const AttentionForward& op) {
  const Shape shape(op);
  if (shape.empty()) return {};
  std::int64_t library = 0;
  for (std::int64_t keys = shape.block; keys <= shape.padded; keys += shape.block) {
    library = std::max({library, prepare_product(shape.scores(keys)), prepare_product(shape.weighted(keys))});
  }
  return {.per_worker = ForwardScratch(shape, {}).placer.used() + library};
}

WorkspaceNeed attention_workspace(const AttentionBackward& op) {
  const Shape shape(op);
  if (shape.empty()) return {};
  std::int64_t library = 0;
  for (std::int64_t keys = shape.block; keys <= shape.padded; keys += shape.block) {
    library = std::max({library, prepare_product(shape.scores(keys)), prepare_product(shape.weighted(keys)),
                        prepare_product(shape.transposed(keys))});
  }
  return {.per_worker = BackwardScratch(shape, {}).placer.used() + library};
}

void run_attention(const AttentionForward& op, Context& context) {
  const Shape shape(op);
  if (shape.empty()) return;
  const std::int64_t parts = forward_parts(shape);
  context.pool.for_each(shape.batch * shape.heads * parts, [&](std::int64_t task, int worker) {
    const std::int64_t head = task / parts;
    forward_head(op, shape, head / shape.heads, head % shape.heads, task % parts, parts,
                 {context.of(worker), context.per_worker});
  });
}

void run_attention(const AttentionBackward& op, Context& context) {
  const Shape shape(op);
  if (shape.empty()) return;
  context.pool.for_each(shape.batch * shape.heads, [&](std::int64_t task, int worker) {
    backward_head(op, shape, task / shape.heads, task % shape.heads, {context.of(worker), context.per_worker});
  });
}

}  // namespace zt::cpu
