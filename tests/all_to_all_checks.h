// Blocks between owners and all ranks, both ways: part of what every communicator must do.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "checked_values.h"
#include "comm/communicator.h"
#include "core/dtype.h"

namespace zt::test {

constexpr int owner_patterns = 4;

// Elements that go between each owner and each rank, `most` at most: 0: as many for all; 1: uneven, nothing for some;
// 2: for the last owner alone; 3: nothing.
inline std::vector<std::int64_t> owner_counts(int ranks, std::int64_t most, int pattern) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 0);
  for (int q = 0; q < ranks; ++q) {
    const bool has_some = pattern == 0 || (pattern == 1 && q % 3 != 1) || (pattern == 2 && q == ranks - 1);
    if (has_some) counts[static_cast<std::size_t>(q)] = pattern == 1 ? std::max(most - 7 * q, most / 2) : most;
  }
  return counts;
}

inline bool receives_something(const OwnerBlocks& blocks, int rank) {
  for (int p = 0; p < static_cast<int>(blocks.counts.size()); ++p) {
    if (blocks.count(p, rank) > 0) return true;
  }
  return false;
}

// One all_to_all with memory of its own, in which nothing is next to anything.
template <typename T>
class CheckedBlocks {
 public:
  CheckedBlocks(Communicator& c, Device& device, std::int64_t most, int pattern, bool to_owners)
      : c_(c),
        device_(device),
        counts_(owner_counts(c.size(), most, pattern)),
        blocks_{counts_, to_owners},
        salt_(pattern * 2 + (to_owners ? 1 : 0)),
        stride_(most + 5),
        room_(most + 3),
        source_(c.allocate(device, lead + c.size() * stride_ * width, MemoryCategory::optimizer, "blocks")),
        // A remainder that makes no block larger.
        received_(device.allocate((c.size() * room_ + c.size() - 1) * width, MemoryCategory::optimizer, "received")) {}

  void fill() {
    std::memset(source_->data(), 0x7f, static_cast<std::size_t>(source_->bytes()));
    std::memset(received_.data(), 0x55, static_cast<std::size_t>(received_.bytes()));
    auto* start = static_cast<std::byte*>(source_->data()) + lead;
    for (int q = 0; q < c_.size(); ++q) put(start + q * stride_ * width, c_.rank(), q);
  }
  Ticket start(Stream stream) {
    const DType dtype = DTypeOf<T>::value;
    const bool receives = receives_something(blocks_, c_.rank());
    return c_.all_to_all(device_, stream, {source_.get(), lead, stride_ * width}, blocks_,
                         receives ? received_.view(dtype) : TensorView(nullptr, 0, dtype));
  }
  void overwrite_source() { std::memset(source_->data(), 0x11, static_cast<std::size_t>(source_->bytes())); }
  void check() const {
    std::vector<std::byte> expected(static_cast<std::size_t>(received_.bytes()), std::byte{0x55});
    for (int p = 0; p < c_.size(); ++p) put(expected.data() + p * room_ * width, p, c_.rank());
    require(
        std::memcmp(expected.data(), received_.data(), expected.size()) == 0,
        std::string("all_to_all ") + (blocks_.to_owners ? "to" : "from") + " owners, case " + std::to_string(salt_));
  }

 private:
  static constexpr auto width = static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t lead = 128;  // bytes: the region does not start where the buffer does

  void put(std::byte* to, int from_rank, int to_rank) const {
    for (std::int64_t i = 0; i < blocks_.count(from_rank, to_rank); ++i) {
      const T value = from_float<T>(value_at(from_rank + salt_, to_rank * std::int64_t{1000003} + i));
      std::memcpy(to + i * width, &value, sizeof value);
    }
  }

  Communicator& c_;
  Device& device_;
  std::vector<std::int64_t> counts_;
  OwnerBlocks blocks_;
  int salt_;
  std::int64_t stride_, room_;  // elements from block to block
  SharedBufferPtr source_;
  Buffer received_;
};

template <typename T>
void check_all_to_all(Communicator& c, Device& device, Stream stream, std::int64_t most) {
  for (int pattern = 0; pattern < owner_patterns; ++pattern) {
    for (const bool to_owners : {true, false}) {
      CheckedBlocks<T> blocks(c, device, most, pattern, to_owners);
      for (int round = 0; round < 2; ++round) {
        blocks.fill();
        c.wait_until_read(blocks.start(stream));
        device.synchronize(stream);
        blocks.overwrite_source();  // which no peer sees
        blocks.check();
      }
    }
  }
}

// Several before the host waits for any, those of a stream in a row; the streams are waited for in another order than
// that of the calls.
inline void check_all_to_alls_in_a_row(Communicator& c, Device& device, std::int64_t most) {
  constexpr std::array streams = {Stream::reduce, Stream::gather, Stream::reduce, Stream::compute, Stream::gather};
  std::deque<CheckedBlocks<float>> all;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    all.emplace_back(c, device, most, static_cast<int>(i) % owner_patterns, i % 2 == 0);
    all.back().fill();
  }
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < streams.size(); ++i) tickets.push_back(all[i].start(streams[i]));
  for (const Stream stream : {Stream::compute, Stream::gather, Stream::reduce}) device.synchronize(stream);
  for (std::size_t i = streams.size(); i-- > 0;) {
    c.wait_until_read(tickets[i]);
    all[i].overwrite_source();
    all[i].check();
  }
}

// A rank alone that sends from where it receives copies nothing.
inline void check_all_to_all_in_place(Communicator& c, Device& device) {
  if (c.size() > 1) return;
  const std::array<std::int64_t, 1> counts = {50};
  auto source = c.allocate(device, 200, MemoryCategory::optimizer, "in place");
  const TensorView view = source->view(0, 50, DType::f32);
  for (std::int64_t i = 0; i < 50; ++i) view.as<float>()[i] = value_at(0, i);
  for (const bool to_owners : {true, false}) {
    c.wait_until_read(c.all_to_all(device, Stream::reduce, {source.get(), 0, 200}, {counts, to_owners}, view));
    device.synchronize(Stream::reduce);
    for (std::int64_t i = 0; i < 50; ++i) require(view.as<float>()[i] == value_at(0, i), "all_to_all in place");
  }
}

}  // namespace zt::test
