#include "checkpoint/transposed.h"

#include <algorithm>
#include <vector>

namespace zt {

// The stored rows are the wanted columns. A tile is a few of them, by as many wanted rows as the part touches: long
// runs are read, and runs of a cache line written.
void read_transposed(const ReadFloats& read, std::int64_t rows, std::int64_t columns, std::int64_t first,
                     std::int64_t count, float* out) {
  constexpr std::int64_t tile_columns = 16, most_tile_rows = 8192;
  if (count == 0) return;
  const std::int64_t end = first + count;
  const std::int64_t first_row = first / columns, end_row = (end - 1) / columns + 1;
  std::vector<float> tile(
      static_cast<std::size_t>(std::min(tile_columns, columns) * std::min(most_tile_rows, end_row - first_row)));
  for (std::int64_t row = first_row; row < end_row; row += most_tile_rows) {
    const std::int64_t height = std::min(most_tile_rows, end_row - row);
    for (std::int64_t column = 0; column < columns; column += tile_columns) {
      const std::int64_t width = std::min(tile_columns, columns - column);
      for (std::int64_t i = 0; i < width; ++i) read((column + i) * rows + row, height, tile.data() + i * height);
      for (std::int64_t r = 0; r < height; ++r) {
        for (std::int64_t i = 0; i < width; ++i) {
          const std::int64_t element = (row + r) * columns + column + i;
          if (element >= first && element < end) out[element - first] = tile[static_cast<std::size_t>(i * height + r)];
        }
      }
    }
  }
}

}  // namespace zt
