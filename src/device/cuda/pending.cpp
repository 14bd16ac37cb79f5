// Operations that have no kernel here so far.
#include <stdexcept>

#include "device/cuda/kernels.h"

namespace zt::cuda {
namespace {
[[noreturn]] void missing() { throw std::logic_error("this operation has no CUDA kernel"); }
}  // namespace

// Attention.
void run(const AttentionForward&, const Launch&) { missing(); }
void run(const AttentionBackward&, const Launch&) { missing(); }

}  // namespace zt::cuda
