// Muon's own operations, which lie around its products of matrices. Additions and multiplications are rounded one by
// one, as device/cpu/simd_muon.cpp does.
#include "device/cuda/exact_sum_value.h"
#include "device/cuda/optimizer_pass.h"

namespace zt::cuda {
namespace {

struct MuonMean : MuonDirectionPass {
  float one_minus_beta;
  bool nesterov;

  explicit MuonMean(const MuonDirection& op) : one_minus_beta(op.one_minus_beta), nesterov(op.nesterov) {}

  __device__ __forceinline__ void step(float g, float& m, float* s) const {
    m = plus_product(m, __fsub_rn(g, m), one_minus_beta);
    s[0] = nesterov ? __fsub_rn(m, __fmul_rn(__fsub_rn(m, g), one_minus_beta)) : m;
  }
};

struct MuonMove : MuonUpdatePass {
  float learning_rate, scale, weight_decay;

  explicit MuonMove(const MuonUpdate& op)
      : learning_rate(op.learning_rate), scale(op.scale), weight_decay(op.weight_decay) {}

  __device__ __forceinline__ void step(float direction, float& p, float* /*s*/) const {
    p = __fmul_rn(p, __fsub_rn(1.0F, __fmul_rn(learning_rate, weight_decay)));
    p = __fsub_rn(p, __fmul_rn(learning_rate, __fmul_rn(scale, direction)));
  }
};

constexpr int divide_threads = 256;
constexpr int divide_tile = 16 * divide_threads;  // enough that finding the norm anew in each block costs little

__global__ void __launch_bounds__(divide_threads)
    divide_by_norm_kernel(float* values, std::int64_t count, const Accumulator* squares, float epsilon) {
  __shared__ float divisor;
  if (threadIdx.x == 0) {
    const double norm = sqrt(value_of(reinterpret_cast<const std::int64_t*>(squares)));
    divisor = __fadd_rn(static_cast<float>(norm), epsilon);
  }
  __syncthreads();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * divide_tile;
  const std::int64_t end = first + divide_tile < count ? first + divide_tile : count;
#pragma unroll 4
  for (std::int64_t i = first + static_cast<int>(threadIdx.x); i < end; i += divide_threads) {
    values[i] = __fdiv_rn(values[i], divisor);
  }
}

struct CombineBody {
  const float* a;
  const float* b;
  float* out;
  float alpha, beta;

  template <int N>
  struct Loaded {
    Elements<float, N> a, b;
  };

  template <int N>
  __device__ __forceinline__ Loaded<N> load(std::int64_t i) const {
    return {load_elements<N>(a + i), load_elements<N>(b + i)};
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, const Loaded<N>& loaded) const {
    Elements<float, N> sum;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      sum.values[e] = plus_product(__fmul_rn(alpha, loaded.a.values[e]), beta, loaded.b.values[e]);
    }
    store_elements(out + i, sum);
  }
};

}  // namespace

void run(const MuonDirection& op, const Launch& where) {
  update("muon_direction", UpdateBody<MuonMean>{MuonMean(op), op.factor, op.decision, {}, {}, {}, {}}, op.gradient,
         op.momentum, {}, {op.direction}, where);
}

void run(const DivideByNorm& op, const Launch& where) {
  static_assert(offsetof(Accumulator, limbs) == 0);
  launch("divide_by_norm", divide_by_norm_kernel, dim3(blocks_for(op.values.count, divide_tile)), dim3(divide_threads),
         0, where, op.values.as<float>(), op.values.count, op.squares, op.epsilon);
}

void run(const Combine& op, const Launch& where) {
  for_elements<4, 2>("combine", CombineBody{op.a.as<float>(), op.b.as<float>(), op.out.as<float>(), op.alpha, op.beta},
                     op.out.count, can_pack<4>({op.a, op.b, op.out}), where);
}

void run(const MuonUpdate& op, const Launch& where) {
  update("muon_update", UpdateBody<MuonMove>{MuonMove(op), 1.0F, op.decision, {}, {}, {}, {}}, op.direction,
         op.parameter, op.published, {}, where);
}

}  // namespace zt::cuda
