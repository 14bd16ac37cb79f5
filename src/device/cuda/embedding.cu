// Sum of token and position embeddings, and its gradient.
#include "device/cuda/rows.h"
#include "device/cuda/token_sort.h"

namespace zt::cuda {
namespace {

constexpr int warps = 8;  // of a block, each with work of its own

struct ForwardArguments {
  EmbeddingForward op;
  Dropper dropper;
  bool whole;           // rows of `out` are made of aligned packs
  bool tables_aligned;  // so are the tables' addresses
};

// A warp has a row of `out`. There are less than 2^31 of them.
template <typename T>
__global__ void __launch_bounds__(32 * warps, 4) embedding_forward_kernel(ForwardArguments arguments) {
  constexpr int size = Pack<T>::size;
  const EmbeddingForward& op = arguments.op;
  const int columns = static_cast<int>(op.columns);
  const unsigned number = blockIdx.x * warps + threadIdx.x / 32;
  if (number >= op.batch * op.length) return;
  const std::int64_t row = number;
  const std::int64_t token_start = static_cast<std::int64_t>(op.tokens[row]) * op.columns;
  const std::int64_t position_start = number % static_cast<unsigned>(op.length) * op.columns;
  T* out = static_cast<T*>(op.out.data) + row * op.columns;
  const bool tables_whole = arguments.whole && arguments.tables_aligned;
#pragma unroll 2
  for (int at = static_cast<int>(threadIdx.x % 32) * size; at < columns; at += 32 * size) {
    const int valid = valid_elements<T>(at, columns);
    float token[size];
    float position[size];
    load_floats(op.token_table, token_start + at, valid, tables_whole, token);
    load_floats(op.position_table, position_start + at, valid, tables_whole, position);
#pragma unroll
    for (int k = 0; k < size; ++k) token[k] += position[k];
    arguments.dropper.apply(token, row * op.columns + at);
    Pack<T> pack;
#pragma unroll
    for (int k = 0; k < size; ++k) pack.values[k] = from_float<T>(token[k]);
    store_row_pack(out, at, columns, arguments.whole, pack);
  }
}

// The gradient of a table: item i gets the sum of rows of d_out, in order.
struct GatherArguments {
  ConstTensorView d_out;
  TensorView table;  // [items, columns]
  bool add;
  bool whole;          // rows of d_out are made of aligned packs
  bool table_aligned;  // so are the table's, if it has d_out's format
  std::int64_t items, columns;
  // The rows of item i: order[begins[i] ... ends[i]), or, without an order, i, i + length, ... , of the items below
  // length.
  SortedPositions sorted;
  std::int64_t batch, length;
  Dropper dropper;
};

// Adds the packs of 32 rows, of which lane l knows the l-th, to the sums; `loads` of them are under way at once.
template <typename T, int loads, bool drops>
__device__ __forceinline__ void add_rows(const GatherArguments& arguments, std::int64_t rows_of_lanes, int count,
                                         int at, float (&sums)[Pack<T>::size]) {
  constexpr int size = Pack<T>::size;
  const int columns = static_cast<int>(arguments.columns);
#pragma unroll 1
  for (int first = 0; first < count; first += loads) {
    std::int64_t rows[loads];
    Pack<T> packs[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      rows[i] = __shfl_sync(all_lanes, rows_of_lanes, (first + i) % 32);
      if (first + i < count) {
        packs[i] = load_row_pack(static_cast<const T*>(arguments.d_out.data) + rows[i] * arguments.columns, at, columns,
                                 arguments.whole);
      }
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      if (first + i >= count) continue;
      float gradient[size];
#pragma unroll
      for (int k = 0; k < size; ++k) gradient[k] = to_float(packs[i].values[k]);
      if constexpr (drops) arguments.dropper.apply(gradient, rows[i] * arguments.columns + at);
#pragma unroll
      for (int k = 0; k < size; ++k) sums[k] = __fadd_rn(sums[k], gradient[k]);
    }
  }
}

// A warp has 32 packs of the columns, a tile, of one item. Items times tiles are less than 2^31.
template <typename T, bool drops>
__global__ void __launch_bounds__(32 * warps, 2) gather_gradients_kernel(GatherArguments arguments, unsigned tiles) {
  constexpr int size = Pack<T>::size;
  const unsigned work = blockIdx.x * warps + threadIdx.x / 32;
  const std::int64_t item = work / tiles;
  if (item >= arguments.items) return;
  const int columns = static_cast<int>(arguments.columns);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int at = (static_cast<int>(work % tiles) * 32 + lane) * size;
  const std::int32_t* order = arguments.sorted.positions;
  std::int64_t begin = 0;
  std::int64_t end = item < arguments.length ? arguments.batch : 0;
  if (arguments.sorted.begins != nullptr) {
    begin = arguments.sorted.begins[item];
    end = arguments.sorted.ends[item];
  }
  if (begin == end && arguments.add) return;
  float sums[size] = {};
  for (std::int64_t first = begin; first < end; first += 32) {
    const int count = static_cast<int>(min(end - first, std::int64_t{32}));
    std::int64_t row = 0;
    if (lane < count) row = order != nullptr ? order[first + lane] : (first + lane) * arguments.length + item;
    add_rows<T, drops ? 4 : 8, drops>(arguments, row, count, at, sums);
  }
  const int valid = valid_elements<T>(at, columns);
  if (valid == 0) return;
  store_results(arguments.table, item * arguments.columns + at, valid, arguments.whole && arguments.table_aligned, sums,
                arguments.add);
}

template <typename T>
void gather_gradients(const GatherArguments& arguments, const Launch& where) {
  const unsigned tiles = blocks_for(arguments.columns, 32 * Pack<T>::size);
  launch("gradient of an embedding",
         arguments.dropper.probability > 0.0F ? gather_gradients_kernel<T, true> : gather_gradients_kernel<T, false>,
         blocks_for(arguments.items * tiles, warps), 32 * warps, 0, where, arguments, tiles);
}

}  // namespace

void run(const EmbeddingForward& op, const Launch& where) {
  by_type(op.out.dtype, [&]<typename T>(T*) {
    const ForwardArguments arguments{op, Dropper(op.dropout), are_whole<T>(op.columns, op.out.data),
                                     is_aligned(op.token_table.data) && is_aligned(op.position_table.data)};
    launch("embedding", embedding_forward_kernel<T>, blocks_for(op.batch * op.length, warps), 32 * warps, 0, where,
           arguments);
  });
}

void run(const EmbeddingBackward& op, const Launch& where) {
  if (op.columns == 0) return;
  by_type(op.d_out.dtype, [&]<typename T>(T*) {
    GatherArguments arguments{.d_out = op.d_out,
                              .table = op.d_token_table,
                              .add = op.add_token,
                              .whole = are_whole<T>(op.columns, op.d_out.data),
                              .table_aligned = is_aligned(op.d_token_table.data),
                              .items = op.vocabulary,
                              .columns = op.columns,
                              .sorted = {},
                              .batch = op.batch,
                              .length = op.length,
                              .dropper = Dropper(op.dropout)};
    if (op.d_token_table) {
      arguments.sorted = sort_positions(op.tokens, op.batch * op.length, op.vocabulary, where);
      gather_gradients<T>(arguments, where);
    }
    if (op.d_position_table) {
      arguments.table = op.d_position_table;
      arguments.add = op.add_position;
      arguments.table_aligned = is_aligned(op.d_position_table.data);
      arguments.items = op.positions;
      arguments.sorted = {};
      gather_gradients<T>(arguments, where);
    }
  });
}

}  // namespace zt::cuda
