// What the tests of the vector operations share: tensors with guards around them, values, and a way to run an
// operation for every instruction set, number of threads and alignment.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "core/dtype.h"
#include "core/random.h"
#include "device/cpu/simd.h"

namespace zt::test {

using Bytes = std::vector<std::byte>;

constexpr DType all_dtypes[] = {DType::f32, DType::bf16, DType::f16};
constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// Largest relative error of rounding to nearest.
inline double unit_roundoff(DType type) {
  return type == DType::f32 ? 0x1p-24 : type == DType::bf16 ? 0x1p-8 : 0x1p-11;
}
// Half the distance of the smallest numbers.
inline double underflow(DType type) { return type == DType::f16 ? 0x1p-25 : 0x1p-134; }

inline float round_to(DType type, float value) {
  return dispatch(type, [&]<typename T>(T*) { return to_float(from_float<T>(value)); });
}

// Elements at an address that is a multiple of 64 bytes plus `offset` elements, with guards on both sides.
class Tensor {
 public:
  Tensor(DType type, std::int64_t count, std::int64_t offset = 0)
      : type_(type),
        count_(count),
        memory_(static_cast<std::size_t>(count + offset) * size_of(type) + 3 * guard, mark) {
    const auto base = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = (base + guard + 63) / 64 * 64 - base + static_cast<std::size_t>(offset) * size_of(type);
  }
  Tensor(DType type, const std::vector<float>& values, std::int64_t offset = 0)
      : Tensor(type, static_cast<std::int64_t>(values.size()), offset) {
    for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
  }

  TensorView view() { return {memory_.data() + begin_, count_, type_}; }
  ConstTensorView view() const { return {memory_.data() + begin_, count_, type_}; }
  float* floats() { return view().as<float>(); }
  std::int64_t count() const { return count_; }
  DType dtype() const { return type_; }

  void set(std::int64_t i, float value) {
    dispatch(type_, [&]<typename T>(T*) { view().as<T>()[i] = from_float<T>(value); });
  }
  float get(std::int64_t i) const {
    return dispatch(type_, [&]<typename T>(T*) { return to_float(view().as<T>()[i]); });
  }
  std::vector<float> values() const {
    std::vector<float> all(static_cast<std::size_t>(count_));
    for (std::int64_t i = 0; i < count_; ++i) all[static_cast<std::size_t>(i)] = get(i);
    return all;
  }
  Bytes bytes() const {
    const auto first = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return {first, first + static_cast<std::ptrdiff_t>(view().bytes())};
  }
  // Nothing was written outside.
  bool intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const bool inside = i >= begin_ && i < begin_ + static_cast<std::size_t>(view().bytes());
      if (!inside && memory_[i] != mark) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte mark{0xA5};
  DType type_;
  std::int64_t count_;
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;
};

// Bytes of several outputs, one after the other; fails if a guard was overwritten.
template <typename... Tensors>
Bytes collect(const Tensors&... tensors) {
  Bytes all;
  const auto append = [&](const Tensor& tensor) {
    REQUIRE(tensor.intact());
    const Bytes one = tensor.bytes();
    all.insert(all.end(), one.begin(), one.end());
  };
  (append(tensors), ...);
  return all;
}

// One way to run an operation.
struct Setup {
  int threads = 1;
  std::int64_t offset = 0;  // of every tensor, in elements

  template <typename Op>
  void run(const Op& op) const {
    cpu::ThreadPool pool(threads);
    const cpu::WorkspaceNeed need = cpu::workspace_of(op);
    const std::int64_t per_worker = (need.per_worker + 63) / 64 * 64;
    // Arbitrary contents: signalling bits rather than zeros.
    std::vector<std::byte> memory(static_cast<std::size_t>(per_worker * threads + need.shared + 128), std::byte{0xFB});
    const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
    std::byte* workers = memory.data() + ((base + 63) / 64 * 64 - base);
    std::byte* shared = workers + per_worker * threads;
    cpu::Context context{pool, workers, per_worker, shared, need.shared};
    cpu::run(op, context);
    for (int i = 0; i < 63; ++i) REQUIRE(shared[need.shared + i] == std::byte{0xFB});  // no more than was asked for
  }
};

// Calls make(setup) -> Bytes for several numbers of threads, alignments and again, and demands the same bytes.
template <class Make>
void require_same_everywhere(const Make& make) {
  const Bytes expected = make(Setup{1, 0});
  for (const Setup setup : {Setup{2, 1}, Setup{4, 3}, Setup{1, 0}}) {
    INFO("threads " << setup.threads << ", offset " << setup.offset);
    REQUIRE(make(setup) == expected);
  }
}

// Calls function() with each instruction set that the processor has; afterwards the best one is in use again.
template <class Function>
void for_instruction_sets(const Function& function) {
  for (const auto set : {cpu::InstructionSet::baseline, cpu::InstructionSet::avx2, cpu::InstructionSet::avx512}) {
    if (set > cpu::best_instruction_set()) break;
    cpu::use_instruction_set(set);
    INFO("instruction set " << cpu::name_of(set));
    function();
  }
  cpu::use_instruction_set(cpu::best_instruction_set());
}

using Random = std::mt19937_64;

inline std::vector<float> normals(Random& random, std::int64_t count, float scale = 1.0F) {
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}
inline std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}
// Rounded as a tensor of that dtype holds them.
inline std::vector<float> rounded(DType type, std::vector<float> values) {
  for (float& value : values) value = round_to(type, value);
  return values;
}

inline const std::vector<std::int64_t> some_sizes = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 513, 1000};

// Demands |got - expected| <= absolute + (relative + rounding of the dtype) |expected|, and equal infinities and NaN.
inline void require_close(float got, double expected, DType type, double relative, double absolute = 0.0) {
  if (std::isnan(expected)) {
    REQUIRE(std::isnan(got));
    return;
  }
  const float limit = type == DType::f16 ? 65520.0F : std::numeric_limits<float>::max();
  if (std::abs(expected) >= static_cast<double>(limit)) {
    REQUIRE(got == (expected > 0 ? infinite : -infinite));
    return;
  }
  const double tolerance = absolute + underflow(type) + (relative + 1.001 * unit_roundoff(type)) * std::abs(expected);
  if (!(std::abs(static_cast<double>(got) - expected) <= tolerance)) {
    INFO("expected " << expected << ", tolerance " << tolerance << ", got " << got);
    REQUIRE(std::abs(static_cast<double>(got) - expected) <= tolerance);
  }
}

// Dropout by its definition: the factor of element `index` of this rank.
inline float dropout_factor(const Dropout& dropout, std::int64_t index) {
  if (dropout.probability == 0.0F) return 1.0F;
  const auto at = static_cast<std::uint64_t>(dropout.first_sample * dropout.elements_per_sample + index);
  const bool dropped = uniform_from_bits(random_bits(dropout.key, at)) < dropout.probability;
  return dropped ? 0.0F : 1.0F / (1.0F - dropout.probability);
}

}  // namespace zt::test
