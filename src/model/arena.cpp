#include "model/arena.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace zt {

namespace {

constexpr std::int64_t alignment = 64;

}  // namespace

std::int64_t Arena::Declared::bytes() const {
  const std::int64_t exact = count * static_cast<std::int64_t>(size_of(dtype));
  return (exact + alignment - 1) / alignment * alignment;
}

void Arena::add(TensorView& view, std::string name, std::int64_t count, DType dtype, Phases phases) {
  declared_.push_back({&view, std::move(name), count, dtype, phases});
}

// The largest first, each as low as those allow that are placed already and share a phase with it.
void Arena::allocate(Device& device, MemoryCategory category, const std::string& name) {
  std::vector<Declared*> order;
  for (Declared& one : declared_) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(),
                   [](const Declared* a, const Declared* b) { return a->bytes() > b->bytes(); });
  std::vector<const Declared*> placed;  // by offset
  for (Declared* one : order) {
    std::int64_t offset = 0;
    for (const Declared* other : placed) {
      if ((other->phases & one->phases) == 0 || other->offset >= offset + one->bytes()) continue;
      offset = std::max(offset, other->offset + other->bytes());
    }
    one->offset = offset;
    bytes_ = std::max(bytes_, offset + one->bytes());
    placed.insert(std::upper_bound(placed.begin(), placed.end(), one,
                                   [](const Declared* a, const Declared* b) { return a->offset < b->offset; }),
                  one);
  }
  buffer_ = device.allocate(bytes_, category, name);
  for (Declared& one : declared_) *one.view = TensorView(buffer_.at(one.offset), one.count, one.dtype);
}

std::string Arena::name_at(const void* address, Phases phase) const {
  const std::less<const void*> before;
  for (const Declared& one : declared_) {
    const void* begin = buffer_.at(one.offset);
    const void* end = buffer_.at(one.offset + one.count * static_cast<std::int64_t>(size_of(one.dtype)));
    if ((one.phases & phase) != 0 && !before(address, begin) && before(address, end)) return one.name;
  }
  return "";
}

std::int64_t Arena::bytes_side_by_side() const {
  std::int64_t sum = 0;
  for (const Declared& one : declared_) sum += one.bytes();
  return sum;
}

}  // namespace zt
