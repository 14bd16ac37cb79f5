// Parts of a matrix read from where it is stored the other way round, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>

namespace zt {

// Reads elements [first, first + count), row-major, of a matrix [rows, columns] whose transpose [columns, rows] `read`
// gives parts of: read(first, count, out).
using ReadFloats = std::function<void(std::int64_t first, std::int64_t count, float* out)>;
void read_transposed(const ReadFloats& read, std::int64_t rows, std::int64_t columns, std::int64_t first,
                     std::int64_t count, float* out);

}  // namespace zt
