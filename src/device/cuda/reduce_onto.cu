// Sums over sources in their order: the gradient of a step (docs/architecture.md).
#include <algorithm>
#include <string>

#include "device/cuda/any_format.h"

namespace zt::cuda {
namespace {

// Loads of this many sources are on their way at once.
constexpr int sources_at_once = 8;

// The sources' addresses travel as a parameter of the kernel: the operation's span is memory of the host.
template <typename Source, int Capacity>
struct ReduceBody {
  AnyTensor acc;
  bool from_first;  // the fold starts from the first source
  int count;
  const Source* sources[Capacity];

  template <int N>
  __device__ __forceinline__ Floats<N> load(std::int64_t i) const {
    Floats<N> sum = {};
    if (!from_first) sum = acc.floats<N>(acc.load<N>(i));
    for (int begin = 0; begin < count; begin += sources_at_once) {
      Elements<Source, N> loaded[sources_at_once] = {};
#pragma unroll
      for (int k = 0; k < sources_at_once; ++k) {
        if (begin + k < count) loaded[k] = load_elements<N>(sources[begin + k] + i);
      }
#pragma unroll
      for (int k = 0; k < sources_at_once; ++k) {
        if (begin + k >= count) continue;
        const bool starts = from_first && begin + k == 0;  // adding to 0 would make 0 of -0
#pragma unroll
        for (int e = 0; e < N; ++e) {
          const float value = to_float(loaded[k].values[e]);
          sum.values[e] = starts ? value : __fadd_rn(sum.values[e], value);
        }
      }
    }
    return sum;
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, const Floats<N>& sum) const {
    acc.store<N>(i, acc.bits<N>(sum));
  }
};

template <typename Source, int Capacity>
void reduce(const ReduceOnto& op, bool from_first, std::span<const void* const> sources, const Launch& where) {
  ReduceBody<Source, Capacity> body{op.acc, from_first, static_cast<int>(sources.size()), {}};
  bool packed = can_pack<4>({op.acc});
  for (std::size_t k = 0; k < sources.size(); ++k) {
    body.sources[k] = static_cast<const Source*>(sources[k]);
    packed = packed && reinterpret_cast<std::uintptr_t>(sources[k]) % sizeof(Elements<Source, 4>) == 0;
  }
  for_elements<4, 1>("reduce_onto", body, op.acc.count, packed, where);
}

bool overlap(const TensorView& acc, const void* source, std::int64_t bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(acc.data);
  const auto b = reinterpret_cast<std::uintptr_t>(source);
  return a < b + static_cast<std::uintptr_t>(bytes) && b < a + static_cast<std::uintptr_t>(acc.bytes());
}

// A sum that is left in fp32 between launches is what it would be in a register; in 16 bits it would be rounded. And
// what a later launch reads must not have been written by the first.
void require_fold_in_parts(const ReduceOnto& op) {
  const auto later = op.sources.subspan(reduce_onto_sources);
  const std::int64_t bytes = op.acc.count * static_cast<std::int64_t>(size_of(op.source_dtype));
  const bool in_the_way =
      std::any_of(later.begin(), later.end(), [&](const void* source) { return overlap(op.acc, source, bytes); });
  if (op.acc.dtype == DType::f32 && !in_the_way) return;
  throw RunError("gradients of " + std::to_string(op.sources.size()) + " ranks are to be added up, and a GPU adds " +
                 std::to_string(reduce_onto_sources) + " in one pass; more need sums kept in fp32" +
                 (in_the_way ? ", in memory of their own" : "") +
                 ". Set data_types.grad_accum_dtype to fp32, or use fewer ranks");
}

}  // namespace

void run(const ReduceOnto& op, const Launch& where) {
  if (op.sources.empty()) {  // nothing to add; a fold over nothing is 0
    if (op.first) run(Fill{.out = op.acc, .value = 0.0F}, where);
    return;
  }
  if (op.sources.size() > reduce_onto_sources) require_fold_in_parts(op);
  for (std::size_t begin = 0; begin < op.sources.size(); begin += reduce_onto_sources) {
    const auto part = op.sources.subspan(begin, std::min(reduce_onto_sources, op.sources.size() - begin));
    const bool from_first = op.first && begin == 0;
    by_type(op.source_dtype, [&]<typename Source>(Source*) {
      constexpr std::size_t few = 32;
      if (part.size() <= few) return reduce<Source, few>(op, from_first, part, where);
      reduce<Source, reduce_onto_sources>(op, from_first, part, where);
    });
  }
}

}  // namespace zt::cuda
