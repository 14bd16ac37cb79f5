// What a CPU can do at best with so many threads, measured in the same run as that which is held against it.
#pragma once

#include "device/device.h"
#include "device/operations.h"

namespace zt::bench {

// Bytes per second, those read and those written added up. `bytes`: size of each array; all threads work at once, each
// on a part of its own.
double copy_rate(int threads, std::int64_t bytes, double seconds);   // memcpy
double triad_rate(int threads, std::int64_t bytes, double seconds);  // a = b + s c in fp32 (McCalpin's STREAM)

// Multiplications and additions per second of oneDNN's own product on these shapes, the output's rows divided among the
// threads: no tiles of ours, no epilogue, no conversion. 16-bit formats that the CPU does not multiply are measured in
// fp32.
double plain_product_rate(int threads, const MatMul& op, double seconds);

}  // namespace zt::bench
