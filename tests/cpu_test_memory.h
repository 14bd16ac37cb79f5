// Memory of any dtype and alignment for tests of the CPU's kernels, and scratch memory filled with NaN.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"
#include "device/cpu/cpu_context.h"
#include "device/cpu/instruction_set.h"

namespace zt::test {

struct Memory {
  Memory(std::int64_t count, DType type, std::int64_t byte_offset = 0)
      : bytes(static_cast<std::size_t>(count) * size_of(type) + 192), elements(count), dtype(type) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    data = bytes.data() + (64 - address % 64) % 64 + byte_offset;
  }
  Memory(Memory&&) = default;

  void set(std::int64_t i, double value) {
    dispatch(dtype, [&]<typename T>(T*) { reinterpret_cast<T*>(data)[i] = from_float<T>(static_cast<float>(value)); });
  }
  double get(std::int64_t i) const {
    return dispatch(dtype, [&]<typename T>(T*) -> double { return to_float(reinterpret_cast<const T*>(data)[i]); });
  }
  // Uniform in [-scale, scale).
  void randomize(std::uint64_t key, double scale = 1.0) {
    std::array<std::uint32_t, 4> words{};
    for (std::int64_t i = 0; i < elements; ++i) {
      if (i % 4 == 0) words = philox(key, static_cast<std::uint64_t>(i / 4));
      set(i, (uniform_from_bits(words.at(static_cast<std::size_t>(i % 4))) * 2.0 - 1.0) * scale);
    }
  }
  void fill(double value) {
    for (std::int64_t i = 0; i < elements; ++i) set(i, value);
  }
  std::vector<double> values() const {
    std::vector<double> result;
    for (std::int64_t i = 0; i < elements; ++i) result.push_back(get(i));
    return result;
  }
  TensorView view() const { return {data, elements, dtype}; }
  bool same_bits(const Memory& other) const {
    return std::memcmp(data, other.data, static_cast<std::size_t>(elements) * size_of(dtype)) == 0;
  }

  std::vector<std::byte> bytes;
  std::byte* data = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::f32;
};

// Calls f(context) with `threads` threads and scratch of which every bit is set: whoever reads it before writing it
// computes NaN.
template <typename F>
void with_context(int threads, cpu::WorkspaceNeed need, F&& f) {
  cpu::ThreadPool pool(threads);
  const std::int64_t per_worker = (need.per_worker + 63) / 64 * 64;
  const std::int64_t shared = (need.shared + 63) / 64 * 64;
  const auto bytes = static_cast<std::size_t>(per_worker * threads + shared + 64);
  const std::unique_ptr<std::byte, void (*)(void*)> scratch(static_cast<std::byte*>(std::aligned_alloc(64, bytes)),
                                                            [](void* data) { std::free(data); });
  std::memset(scratch.get(), 0xff, bytes);
  cpu::Context context{.pool = pool, .workers = scratch.get(), .per_worker = per_worker};
  context.shared = scratch.get() + per_worker * threads;
  context.shared_bytes = shared;
  f(context);
}

inline double unit_roundoff(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
}

// A run of a test program with ZEROTRAIN_TEST_INSTRUCTION_SET limits the process before its first operation.
inline bool limit_by_environment() {
  const char* const name = std::getenv("ZEROTRAIN_TEST_INSTRUCTION_SET");
  if (name == nullptr) return false;
  cpu::limit_instruction_set(cpu::instruction_level_from(name).value());
  return true;
}

// Runs this program again at every level below the processor's; returns the names of those that failed.
inline std::string levels_that_fail() {
  using cpu::InstructionLevel;
  std::string failed;
  for (const InstructionLevel level : {InstructionLevel::baseline, InstructionLevel::avx2, InstructionLevel::avx512}) {
    if (level >= cpu::detected_instruction_level()) continue;
    const std::string name(cpu::name_of(level));
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command = "ZEROTRAIN_TEST_INSTRUCTION_SET=" + name + " '" + program + "' > /dev/null";
    if (std::system(command.c_str()) != 0) failed += name + " ";
  }
  return failed;
}

}  // namespace zt::test
