// The streams that exist, and what has been asked for kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "stream.h"

namespace zt::emulation {

cudaError_t unusable();                                       // why no device can be used, or cudaSuccess
std::vector<std::shared_ptr<Stream>> streams_of(int device);  // in the order in which they were made
std::shared_ptr<Stream> null_stream(int device);
std::size_t shared_limit_of(const void* function);  // dynamic shared memory that the kernel may have
bool is_pinned(const void* pointer);                // host memory from cudaHostAlloc or cudaHostRegister

}  // namespace zt::emulation
