// Fill, conversion and sums over sources: one pass, bound by memory.
#include <cstring>
#include <span>
#include <type_traits>

#include "device/cpu/simd.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_elementwise.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

template <typename T>
void fill_range(T* out, std::int64_t n, float value) {
  const F32 d;
  const VF v = hn::Set(d, value);
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR { store(d, v, out + i, extent); });
}

void fill(const Fill& op, Context& context) {
  for_ranges(context, op.out.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    dispatch(op.out.dtype, [&]<typename T>(T*) { fill_range(op.out.as<T>() + first, n, op.value); });
  });
}

template <typename In, typename Out>
void cast_range(const In* in, Out* out, std::int64_t n) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR { store(d, load(d, in + i, extent), out + i, extent); });
}

void cast(const Cast& op, Context& context) {
  for_ranges(context, op.out.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    dispatch(op.in.dtype, [&]<typename In>(In*) {
      dispatch(op.out.dtype, [&]<typename Out>(Out*) {
        if constexpr (!std::is_same_v<In, Out>) cast_range(op.in.as<In>() + first, op.out.as<Out>() + first, n);
      });
    });
  });
}

// Four vectors at a time, so that a source's pointer is fetched once for them.
template <typename Acc, typename Source>
void reduce_range(Acc* acc, std::span<const void* const> sources, bool first, std::int64_t begin, std::int64_t count) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto source = [&](std::size_t k) { return static_cast<const Source*>(sources[k]); };
  const std::size_t start = first ? 1 : 0;
  std::int64_t i = begin;
  for (; i + 4 * lanes <= begin + count; i += 4 * lanes) {
    VF s0, s1, s2, s3;
    if (first) {
      const Source* from = source(0) + i;
      s0 = load(d, from);
      s1 = load(d, from + lanes);
      s2 = load(d, from + 2 * lanes);
      s3 = load(d, from + 3 * lanes);
    } else {
      s0 = load(d, acc + i);
      s1 = load(d, acc + i + lanes);
      s2 = load(d, acc + i + 2 * lanes);
      s3 = load(d, acc + i + 3 * lanes);
    }
    for (std::size_t k = start; k < sources.size(); ++k) {
      const Source* from = source(k) + i;
      s0 = hn::Add(s0, load(d, from));
      s1 = hn::Add(s1, load(d, from + lanes));
      s2 = hn::Add(s2, load(d, from + 2 * lanes));
      s3 = hn::Add(s3, load(d, from + 3 * lanes));
    }
    store(d, s0, acc + i);
    store(d, s1, acc + i + lanes);
    store(d, s2, acc + i + 2 * lanes);
    store(d, s3, acc + i + 3 * lanes);
  }
  for_vectors(d, begin + count - i, [&](std::int64_t j, auto extent) HWY_ATTR {
    VF sum = first ? load(d, source(0) + i + j, extent) : load(d, acc + i + j, extent);
    for (std::size_t k = start; k < sources.size(); ++k) sum = hn::Add(sum, load(d, source(k) + i + j, extent));
    store(d, sum, acc + i + j, extent);
  });
}

void reduce_onto(const ReduceOnto& op, Context& context) {
  for_ranges(context, op.acc.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    dispatch(op.acc.dtype, [&]<typename Acc>(Acc*) {
      dispatch(op.source_dtype, [&]<typename Source>(Source*) {
        reduce_range<Acc, Source>(op.acc.as<Acc>(), op.sources, op.first, first, n);
      });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(fill);
HWY_EXPORT(cast);
HWY_EXPORT(reduce_onto);

WorkspaceNeed workspace_of(const Fill&) { return {}; }
void run(const Fill& op, Context& context) { HWY_DYNAMIC_DISPATCH(fill)(op, context); }

WorkspaceNeed workspace_of(const Cast&) { return {}; }
void run(const Cast& op, Context& context) {
  if (op.in.dtype != op.out.dtype) {
    HWY_DYNAMIC_DISPATCH(cast)(op, context);
    return;
  }
  if (op.in.data == op.out.data) return;
  constexpr std::int64_t bytes_per_task = 128 * 1024;
  const std::int64_t bytes = op.out.bytes();
  context.pool.for_each((bytes + bytes_per_task - 1) / bytes_per_task, [&](std::int64_t task, int) {
    const std::int64_t first = task * bytes_per_task;
    const std::int64_t n = bytes - first < bytes_per_task ? bytes - first : bytes_per_task;
    std::memcpy(static_cast<std::byte*>(op.out.data) + first, static_cast<const std::byte*>(op.in.data) + first,
                static_cast<std::size_t>(n));
  });
}

WorkspaceNeed workspace_of(const ReduceOnto&) { return {}; }
void run(const ReduceOnto& op, Context& context) {
  if (op.sources.empty()) {  // nothing to add; a fold over nothing is 0
    if (op.first) run(Fill{.out = op.acc, .value = 0.0F}, context);
    return;
  }
  HWY_DYNAMIC_DISPATCH(reduce_onto)(op, context);
}

}  // namespace zt::cpu
#endif
