// Matrix products from tiles. What a tile is depends on the shape alone, and a tile is computed by one thread, so the
// bits of the result do not depend on the number of threads.
//
// The library writes a tile to a dense fp32 block of scratch memory (or straight to the output where the output has
// that very form); from there it is rounded, added and stored. So the bits of the product are also the same whether it
// is stored in fp32, stored in 16 bits or added to what is there. Where the processor cannot multiply the dtype, the
// operands' panels are converted to fp32 in scratch memory, `chunk_depth` of k at a time.
#include "device/cpu/matmul.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "device/cpu/panels.h"
#include "device/cpu/product.h"
#include "device/cpu/thin_product.h"

namespace zt::cpu {
namespace {

constexpr std::int64_t chunk_depth = 512;  // of loaded panels: at most 1.5 (256 + 384) * 512 * 4 bytes

// Rates of tiles in parts of the rate of those of 256 x 384, as measured on one core (oneDNN 2.6.3, n and k from 65 to
// 3072, m from 384 to 4096; with AVX-512 the lower of fp32 and bf16, below it with the loading of panels); y = x Wt and
// dx = dy W lose little in small tiles, dW = dyt x (k is the number of tokens) more.
struct TileRates {
  double other, transposed;  // by transpose_a
};
struct TileSize {
  std::int64_t rows, columns;
  TileRates avx512, below;
};
constexpr std::array<TileSize, 7> tile_sizes = {{{256, 384, {1.0, 1.0}, {1.0, 1.0}},
                                                 {128, 384, {0.97, 0.95}, {0.99, 0.97}},
                                                 {64, 384, {0.92, 0.90}, {0.95, 0.92}},
                                                 {128, 192, {0.90, 0.83}, {0.97, 0.94}},
                                                 {64, 192, {0.82, 0.78}, {0.92, 0.88}},
                                                 {64, 128, {0.74, 0.72}, {0.90, 0.85}},
                                                 {32, 128, {0.60, 0.55}, {0.80, 0.73}}}};
constexpr std::int64_t small_product = std::int64_t{1} << 18;  // 2 m n k up to which one thread is quicker than two

// Cuts `extent` into equal parts of about `size`, so that no sliver is left: the size of a part, a multiple of `step`
// unless it is all of it. At most 1.5 size.
std::int64_t even_part(std::int64_t extent, std::int64_t size, std::int64_t step) {
  const std::int64_t parts = std::max<std::int64_t>(1, (2 * extent + size) / (2 * size));
  return std::min(extent, round_up((extent + parts - 1) / parts, step));
}
std::int64_t parts_of(std::int64_t extent, std::int64_t part) { return (extent + part - 1) / part; }

// The part of their time that threads work if so many equal tasks are handed to them, averaged over thread counts: the
// tiles must not depend on the actual one.
double balance(std::int64_t tasks) {
  constexpr std::array<std::int64_t, 7> thread_counts = {1, 2, 2, 4, 4, 8, 16};
  double sum = 0.0;
  for (const std::int64_t threads : thread_counts) {
    sum += static_cast<double>(tasks) / static_cast<double>(round_up(tasks, threads));
  }
  return sum / static_cast<double>(thread_counts.size());
}

// An operand as the product reads it.
struct Operand {
  bool along_depth = false;  // whether a row holds one k, and the rows follow k
  bool load = false;         // into scratch memory, in fp32
  std::int64_t stride = 0;   // of its rows, there or where they lie
};

struct Plan {
  MatMulTiles tiles;
  std::int64_t row_parts = 0, column_parts = 0;
  Operand a, b;
  bool direct = false;  // the library writes the output
  std::int64_t depth = 0;
  // Parts of a worker's scratch, in bytes.
  std::int64_t out_at = 0, bias_at = 0, a_at = 0, b_at = 0, scratchpad_at = 0;

  std::int64_t tasks() const { return row_parts * column_parts; }
};

bool is_small(const MatMul& op) { return op.m * op.n * op.k * 2 <= small_product && op.n <= 1024 && op.m <= 1024; }

Plan plan_for(const MatMul& op) {
  Plan plan;
  plan.tiles = matmul_tiles(op);
  plan.row_parts = parts_of(op.m, plan.tiles.rows);
  plan.column_parts = parts_of(op.n, plan.tiles.columns);
  const bool convert = !multiplies_natively(op.a.dtype);
  const bool copy = reads_rows_in_place() && !is_small(op);
  plan.a.along_depth = op.transpose_a, plan.b.along_depth = !op.transpose_b;
  for (Operand* operand : {&plan.a, &plan.b}) operand->load = convert || (copy && operand->along_depth);
  plan.direct = op.out.dtype == DType::f32 && !op.add && op.ldc == op.n && plan.column_parts == 1;
  plan.depth = plan.a.load || plan.b.load ? even_part(op.k, chunk_depth, 16) : op.k;
  const std::int64_t padding = reads_rows_in_place() ? row_padding : 0;
  const auto stride = [&](const Operand& operand, std::int64_t in_place, std::int64_t width) {
    if (!operand.load) return in_place;
    return operand.along_depth ? width + padding : plan.depth;
  };
  plan.a.stride = stride(plan.a, op.lda, plan.tiles.rows);
  plan.b.stride = stride(plan.b, op.ldb, plan.tiles.columns);
  std::int64_t at = 0;
  const auto place = [&at](std::int64_t floats) {
    const std::int64_t here = at;
    at += round_up(floats * 4, 64);
    return here;
  };
  plan.out_at = place(plan.direct ? 0 : plan.tiles.rows * plan.tiles.columns);
  plan.bias_at = place(op.bias && op.bias.dtype != DType::f32 ? plan.tiles.columns : 0);
  const auto panel = [&](const Operand& operand, std::int64_t width) {
    return operand.load ? (operand.along_depth ? plan.depth : width) * operand.stride : 0;
  };
  plan.a_at = place(panel(plan.a, plan.tiles.rows));
  plan.b_at = place(panel(plan.b, plan.tiles.columns));
  plan.scratchpad_at = at;
  return plan;
}

// The library's product for `rows` x `columns` of a tile over `depth` of k.
Product product_for(const MatMul& op, const Plan& plan, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                    bool first) {
  return {.m = rows,
          .n = columns,
          .k = depth,
          .lda = plan.a.stride,
          .ldb = plan.b.stride,
          .ldc = columns,
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .dtype = multiplies_natively(op.a.dtype) ? op.a.dtype : DType::f32,
          .bias = static_cast<bool>(op.bias) && first,
          .sum = !first};
}

bool is_empty(const MatMul& op) { return op.m <= 0 || op.n <= 0; }

// The activation of a finished block of `out`, while it is in the cache.
void activate_block(const MatMul& op, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  const DType dtype = op.out.dtype;
  const std::int64_t at = row * op.ldc + column;
  const auto in = [&](const ConstTensorView& view) { return element(dtype, view.data, at); };
  const auto out = [&](const TensorView& view) { return view ? element(dtype, view.data, at) : nullptr; };
  if (op.activation_input) {
    activation_gradient_panel(op.activation, dtype, in(op.activation_input), out(op.out), out(op.activated), op.ldc,
                              rows, columns);
  } else if (op.activated) {
    activate_panel(op.activation, dtype, out(op.out), out(op.activated), op.ldc, rows, columns);
  }
}

// The activation of a whole product.
void activate(const MatMul& op, Context& context) {
  if (!op.activated && !op.activation_input) return;
  constexpr std::int64_t elements_per_task = 32768;
  const std::int64_t rows = std::max<std::int64_t>(1, elements_per_task / op.n);
  context.pool.for_each(parts_of(op.m, rows), [&](std::int64_t task, int) {
    const std::int64_t first = task * rows;
    activate_block(op, first, 0, std::min(rows, op.m - first), op.n);
  });
}

// k = 0: zeros plus bias, through the same rounding and adding as any other product.
void run_without_depth(const MatMul& op, Context& context) {
  constexpr std::int64_t columns_at_once = 256;
  context.pool.for_each(op.m, [&](std::int64_t row, int) {
    for (std::int64_t first = 0; first < op.n; first += columns_at_once) {
      const std::int64_t columns = std::min(columns_at_once, op.n - first);
      std::array<float, columns_at_once> values{};
      if (op.bias)
        load_panel(op.bias.dtype, element(op.bias.dtype, op.bias.data, first), 0, values.data(), 0, 1, columns);
      store_panel(values.data(), 0, op.out.dtype, element(op.out.dtype, op.out.data, row * op.ldc + first), 0, 1,
                  columns, op.add);
    }
  });
  activate(op, context);
}

void run_tile(const MatMul& op, const Plan& plan, std::int64_t task, Scratch scratch) {
  // Neighbouring tasks share columns of b: the weights, which are read from further away.
  const std::int64_t row = task % plan.row_parts * plan.tiles.rows;
  const std::int64_t column = task / plan.row_parts * plan.tiles.columns;
  const std::int64_t rows = std::min(plan.tiles.rows, op.m - row);
  const std::int64_t columns = std::min(plan.tiles.columns, op.n - column);
  if (scratch.bytes < plan.scratchpad_at) {
    throw std::logic_error("a matrix product was run that needs more scratch memory than was reserved");
  }
  const auto floats_at = [scratch](std::int64_t at) { return reinterpret_cast<float*>(scratch.data + at); };

  const float* bias = nullptr;
  if (op.bias) {
    const void* const given = element(op.bias.dtype, op.bias.data, column);
    if (op.bias.dtype == DType::f32) {
      bias = static_cast<const float*>(given);
    } else {
      load_panel(op.bias.dtype, given, 0, floats_at(plan.bias_at), 0, 1, columns);
      bias = floats_at(plan.bias_at);
    }
  }
  void* const target = element(op.out.dtype, op.out.data, row * op.ldc + column);
  float* const out = plan.direct ? static_cast<float*>(target) : floats_at(plan.out_at);

  for (std::int64_t depth_at = 0; depth_at < op.k; depth_at += plan.depth) {
    const std::int64_t depth = std::min(plan.depth, op.k - depth_at);
    const Product product = product_for(op, plan, rows, columns, depth, depth_at == 0);
    const void* a = element(op.a.dtype, op.a.data, op.transpose_a ? depth_at * op.lda + row : row * op.lda + depth_at);
    const void* b =
        element(op.b.dtype, op.b.data, op.transpose_b ? column * op.ldb + depth_at : depth_at * op.ldb + column);
    const auto load = [&](const Operand& operand, const void* from, std::int64_t stride, std::int64_t at,
                          std::int64_t width) -> const void* {
      if (!operand.load) return from;
      load_panel(op.a.dtype, from, stride, floats_at(at), operand.stride, operand.along_depth ? depth : width,
                 operand.along_depth ? width : depth);
      return floats_at(at);
    };
    a = load(plan.a, a, op.lda, plan.a_at, rows);
    b = load(plan.b, b, op.ldb, plan.b_at, columns);
    run_product(product, a, b, out, bias, {scratch.data + plan.scratchpad_at, scratch.bytes - plan.scratchpad_at});
  }
  if (!plan.direct) store_panel(out, columns, op.out.dtype, target, op.ldc, rows, columns, op.add);
  activate_block(op, row, column, rows, columns);
}

}  // namespace

MatMulTiles matmul_tiles(const MatMul& op) {
  // A single task keeps the row-major operands whole, which the library likes best.
  if (is_small(op)) return {op.m, op.n};
  MatMulTiles best;
  double best_rate = 0.0;
  for (const TileSize& size : tile_sizes) {
    const MatMulTiles tiles = {even_part(op.m, size.rows, 8), even_part(op.n, size.columns, 16)};
    const TileRates& rates = reads_rows_in_place() ? size.below : size.avx512;
    const double rate = (op.transpose_a ? rates.transposed : rates.other) *
                        balance(parts_of(op.m, tiles.rows) * parts_of(op.n, tiles.columns));
    if (rate > best_rate) best_rate = rate, best = tiles;
  }
  return best;
}

WorkspaceNeed matmul_workspace(const MatMul& op) {
  if (is_empty(op) || op.k <= 0) return {};
  if (is_thin(op)) return thin_workspace(op);
  const Plan plan = plan_for(op);
  std::int64_t library = 0;
  // All shapes that the tiles have: whole ones and those at the lower and right edge.
  for (const std::int64_t rows : {plan.tiles.rows, op.m - (plan.row_parts - 1) * plan.tiles.rows}) {
    for (const std::int64_t columns : {plan.tiles.columns, op.n - (plan.column_parts - 1) * plan.tiles.columns}) {
      for (std::int64_t depth_at = 0; depth_at < op.k; depth_at += plan.depth) {
        const std::int64_t depth = std::min(plan.depth, op.k - depth_at);
        if (depth_at > plan.depth && depth == plan.depth) continue;  // as the second chunk
        library = std::max(library, prepare_product(product_for(op, plan, rows, columns, depth, depth_at == 0)));
      }
    }
  }
  return {.per_worker = plan.scratchpad_at + library};
}

void run_matmul(const MatMul& op, Context& context) {
  if (is_empty(op)) return;
  if (op.k <= 0) {
    run_without_depth(op, context);
    return;
  }
  if (is_thin(op)) {
    run_thin(op, context);
    activate(op, context);
    return;
  }
  const Plan plan = plan_for(op);
  context.pool.for_each(plan.tasks(), [&](std::int64_t task, int worker) {
    run_tile(op, plan, task, {context.of(worker), context.per_worker});
  });
}

}  // namespace zt::cpu
