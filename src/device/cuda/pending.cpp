// Operations that have no kernel here so far.
#include <stdexcept>

#include "device/cuda/kernels.h"
#include "device/cuda/products.h"

namespace zt::cuda {
namespace {
[[noreturn]] void missing() { throw std::logic_error("this operation has no CUDA kernel"); }
}  // namespace

// Rows.
void run(const BiasGradient&, const Launch&) { missing(); }
void run(const EmbeddingForward&, const Launch&) { missing(); }
void run(const EmbeddingBackward&, const Launch&) { missing(); }
void run(const LayerNormForward&, const Launch&) { missing(); }
void run(const LayerNormBackward&, const Launch&) { missing(); }
void run(const CrossEntropy&, const Launch&) { missing(); }

// Attention.
void run(const AttentionForward&, const Launch&) { missing(); }
void run(const AttentionBackward&, const Launch&) { missing(); }

// Products.
struct Products::Plans {};
Products::Products(const GpuOptions&) {}
Products::~Products() = default;
void Products::prepare(const MatMul&) {}
void Products::run(const MatMul&, cudaStream_t, std::byte*) { missing(); }

}  // namespace zt::cuda
