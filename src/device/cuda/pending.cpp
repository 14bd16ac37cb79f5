// Operations that have no kernel here so far.
#include <stdexcept>

#include "device/cuda/kernels.h"
#include "device/cuda/products.h"

namespace zt::cuda {
namespace {
[[noreturn]] void missing() { throw std::logic_error("this operation has no CUDA kernel"); }
}  // namespace

// Elementwise and random.
void run(const Fill&, const Launch&) { missing(); }
void run(const Cast&, const Launch&) { missing(); }
void run(const Initialize&, const Launch&) { missing(); }
void run(const ActivationForward&, const Launch&) { missing(); }
void run(const ActivationBackward&, const Launch&) { missing(); }
void run(const DropoutForward&, const Launch&) { missing(); }
void run(const SumValues&, const Launch&) { missing(); }
void run(const SumSquares&, const Launch&) { missing(); }
void run(const ReduceOnto&, const Launch&) { missing(); }
void run(const AdamUpdate&, const Launch&) { missing(); }
void run(const SgdUpdate&, const Launch&) { missing(); }
void run(const AdagradUpdate&, const Launch&) { missing(); }
void run(const Checksum&, const Launch&) { missing(); }

// Rows.
void run(const BiasGradient&, const Launch&) { missing(); }
void run(const EmbeddingForward&, const Launch&) { missing(); }
void run(const EmbeddingBackward&, const Launch&) { missing(); }
void run(const LayerNormForward&, const Launch&) { missing(); }
void run(const LayerNormBackward&, const Launch&) { missing(); }
void run(const CrossEntropy&, const Launch&) { missing(); }
void run(const SquaredError&, const Launch&) { missing(); }

// Products.
struct Products::Plans {};
Products::Products(const GpuOptions&) {}
Products::~Products() = default;
void Products::prepare(const MatMul&) {}
void Products::run(const MatMul&, cudaStream_t, std::byte*) { missing(); }

}  // namespace zt::cuda
