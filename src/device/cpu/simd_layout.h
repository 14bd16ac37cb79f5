// How sums over rows are cut and where their partial sums lie; functions of the shape alone.
#pragma once

#include <cstdint>

namespace zt::cpu {

// Rows are added up in chunks of this many; the chunks' sums are then added in order.
constexpr std::int64_t rows_per_chunk = 64;
constexpr std::int64_t row_chunks(std::int64_t rows) { return (rows + rows_per_chunk - 1) / rows_per_chunk; }

// Floats from one chunk's partial sums to the next: whole cache lines.
constexpr std::int64_t partial_stride(std::int64_t columns) { return (columns + 15) / 16 * 16; }
constexpr std::int64_t partials_bytes(std::int64_t rows, std::int64_t columns) {
  return row_chunks(rows) * partial_stride(columns) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace zt::cpu
