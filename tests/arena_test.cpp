// Buffers that are not in use at the same time share memory; those that are never do.
#include "model/arena.h"

#include <cstring>
#include <random>

#include "catch_compat.h"
#include "device/cpu/cpu_device.h"

using namespace zt;

namespace {

struct Declared {
  TensorView view;
  Phases phases = 0;
};

bool overlap(const TensorView& a, const TensorView& b) {
  const auto* first = static_cast<const std::byte*>(a.data);
  const auto* second = static_cast<const std::byte*>(b.data);
  return first < second + b.bytes() && second < first + a.bytes();
}

}  // namespace

TEST_CASE("Buffers of different phases share memory, those of a common phase never do") {
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 50; ++trial) {
    cpu::CpuDevice device(1);
    Arena arena;
    std::vector<Declared> declared(static_cast<std::size_t>(pick(1, 12)));
    std::array<std::int64_t, 4> live{};
    for (std::size_t i = 0; i < declared.size(); ++i) {
      declared[i].phases = static_cast<Phases>(pick(1, 15));
      const std::int64_t count = pick(0, 1000);
      const DType dtype = pick(0, 1) == 0 ? DType::f32 : DType::bf16;
      arena.add(declared[i].view, "buffer " + std::to_string(i), count, dtype, declared[i].phases);
      for (std::size_t phase = 0; phase < live.size(); ++phase) {
        if ((declared[i].phases >> phase & 1) != 0) live.at(phase) += count * static_cast<std::int64_t>(size_of(dtype));
      }
    }
    arena.allocate(device, MemoryCategory::activations, "arena");
    CHECK(device.ledger().total() == arena.bytes());
    CHECK(arena.bytes() <= arena.bytes_side_by_side());
    CHECK(arena.bytes() >= *std::max_element(live.begin(), live.end()));
    for (std::size_t i = 0; i < declared.size(); ++i) {
      const Declared& one = declared[i];
      CHECK(reinterpret_cast<std::uintptr_t>(one.view.data) % 64 == 0);
      if (one.view.count > 0) {
        std::memset(one.view.data, 1, static_cast<std::size_t>(one.view.bytes()));  // it is all there
        const auto* last = static_cast<const std::byte*>(one.view.data) + one.view.bytes() - 1;
        for (const Phases phase : {1, 2, 4, 8}) {
          if ((one.phases & phase) != 0) CHECK(arena.name_at(last, phase) == "buffer " + std::to_string(i));
        }
      }
      for (std::size_t j = 0; j < i; ++j) {
        if ((one.phases & declared[j].phases) != 0) CHECK_FALSE(overlap(one.view, declared[j].view));
      }
    }
  }
}

TEST_CASE("What only one phase needs costs nothing beside a larger buffer of another phase") {
  cpu::CpuDevice device(1);
  Arena arena;
  TensorView large, first, second, both;
  arena.add(large, "large", 1024, DType::f32, 1);
  arena.add(first, "first", 512, DType::f32, 2);
  arena.add(second, "second", 512, DType::f32, 2);
  arena.add(both, "both", 16, DType::f32, 3);
  arena.allocate(device, MemoryCategory::activations, "arena");
  CHECK(arena.bytes() == (1024 + 16) * 4);
  CHECK(arena.bytes_side_by_side() == (1024 + 512 + 512 + 16) * 4);
  CHECK(arena.name_at(first.data, 1) == "large");
  CHECK(arena.name_at(first.data, 2) == "first");
  CHECK(arena.name_at(&arena, 1).empty());
}
