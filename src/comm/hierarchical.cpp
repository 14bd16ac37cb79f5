#include "comm/hierarchical.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "comm/copy.h"
#include "core/errors.h"

namespace zt {
namespace {

using Progress = ControlBlock::Progress;

// A ticket's number holds the number of the collective, its lane and its kind (for the time spent waiting).
static_assert(lane_count <= 8 && collective_kind_count <= 8);
Ticket make_ticket(std::int64_t number, int lane, CollectiveKind kind) {
  return {(number * 8 + lane) * 8 + static_cast<std::int64_t>(kind)};
}

}  // namespace

// Memory of the members of the node; a rank alone on its node takes it from the device.
class HierarchicalCommunicator::WindowBuffer final : public SharedBuffer {
 public:
  WindowBuffer(std::shared_ptr<Staging::Memory> staging, Buffer memory, std::int64_t bytes)
      : staging_(std::move(staging)), alone_(std::move(memory)), bytes_(bytes) {}
  WindowBuffer(std::shared_ptr<Staging::Memory> staging, Window window, int me, std::int64_t bytes,
               MemoryLedger& ledger, MemoryCategory category, std::string name)
      : staging_(std::move(staging)),
        window_(std::move(window)),
        me_(me),
        bytes_(bytes),
        ledger_(&ledger),
        category_(category),
        name_(std::move(name)) {
    ledger.add(category_, name_, bytes_);
  }
  ~WindowBuffer() override {
    if (ledger_ != nullptr) ledger_->remove(category_, name_, bytes_);
  }
  WindowBuffer(const WindowBuffer&) = delete;
  WindowBuffer& operator=(const WindowBuffer&) = delete;

  void* data() const override { return of(me_); }
  std::int64_t bytes() const override { return bytes_; }
  std::byte* of(int member) const { return alone_ ? alone_.as<std::byte>() : window_.of(member); }

  static const WindowBuffer& from(const Region& region) {
    const auto* buffer = dynamic_cast<const WindowBuffer*>(region.buffer);
    if (buffer == nullptr) throw std::logic_error("a region's buffer must come from the communicator's allocate()");
    return *buffer;
  }

 private:
  std::shared_ptr<Staging::Memory> staging_;
  Buffer alone_;
  Window window_;
  int me_ = 0;
  std::int64_t bytes_ = 0;
  MemoryLedger* ledger_ = nullptr;
  MemoryCategory category_ = MemoryCategory::communication;
  std::string name_;
};

HierarchicalCommunicator::HierarchicalCommunicator(Place place, std::unique_ptr<NodeWindows> node,
                                                   std::shared_ptr<Transport> transport)
    : CountedCommunicator(place.rank, place.size),
      place_(std::move(place)),
      transport_(std::move(transport)),
      node_(std::move(node)) {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  std::set_difference(all.begin(), all.end(), place_.node_ranks.begin(), place_.node_ranks.end(),
                      std::back_inserter(remote_ranks_));
  staging_ = Staging(static_cast<std::int64_t>(remote_ranks_.size()));
  if (!remote_ranks_.empty() && !transport_) throw std::logic_error("ranks on other nodes need a transport");
}

void HierarchicalCommunicator::reserve(Device& device, std::int64_t largest_slice_bytes) {
  staging_.reserve(device, largest_slice_bytes);
}

SharedBufferPtr HierarchicalCommunicator::allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                                                   const std::string& name) {
  if (node_->size() == 1)
    return std::make_unique<WindowBuffer>(staging_.join(device), device.allocate(bytes, category, name), bytes);
  try {
    Window window = node_->allocate(std::max<std::int64_t>(bytes, 64));
    return std::make_unique<WindowBuffer>(staging_.join(device), std::move(window), node_->me(), bytes, device.ledger(),
                                          category, name);
  } catch (const std::bad_alloc&) {
    throw UserError("no memory for '" + name + "' (" + std::string(name_of(category)) + "): " + std::to_string(bytes) +
                    " bytes that ranks of this node share");
  }
}

Ticket HierarchicalCommunicator::put(Stream stream, Collective collective) {
  const int index = static_cast<int>(stream);
  Lane& lane = lanes_[static_cast<std::size_t>(index)];
  const std::int64_t number = collective.number = ++lane.asked;
  if (lane.free.empty()) {
    lane.free.push_back(lane.collectives.size());
    lane.collectives.emplace_back();
  }
  const auto place = static_cast<int>(lane.free.back());
  lane.free.pop_back();
  lane.collectives[static_cast<std::size_t>(place)] = collective;
  // Two words, which a std::function holds without an allocation.
  collective.device->host_call(stream, [this, index, place] {
    Lane& own = lanes_[static_cast<std::size_t>(index)];
    const Collective& mine = own.collectives[static_cast<std::size_t>(place)];
    run(index, mine);
    own.run = mine.number;
    own.pending.erase(mine.number);
    own.free.push_back(static_cast<std::size_t>(place));
  });
  if (lane.run < number) lane.pending[number] = {collective.device, collective.device->record(stream)};
  return size() == 1 ? Ticket{} : make_ticket(number, index, collective.kind);
}

void HierarchicalCommunicator::run(int lane, const Collective& collective) {
  const SecondsInside inside(*collective.count);
  if (collective.kind == CollectiveKind::all_gather)
    return run_all_gather(lane, collective.number, collective.from, collective.to);
  if (collective.kind == CollectiveKind::all_to_all)
    return run_all_to_all(lane, collective.number, collective.from, collective.blocks, collective.to);
  run_reduce_scatter(*collective.device, lane, collective.number, collective.from, collective.dtype, collective.to,
                     collective.first);
}

Ticket HierarchicalCommunicator::all_gather(Device& device, Stream stream, const Region& from, TensorView to) {
  CollectiveCount& count = count_slices(CollectiveKind::all_gather, to.count / size(), to.dtype);
  return put(stream, {.kind = CollectiveKind::all_gather, .device = &device, .count = &count, .from = from, .to = to});
}

void HierarchicalCommunicator::run_all_gather(int lane, std::int64_t number, const Region& from, TensorView to) {
  const WindowBuffer& buffer = WindowBuffer::from(from);
  const std::int64_t slice = to.bytes() / size();
  auto* out = static_cast<std::byte*>(to.data);
  const auto place_of = [&](int member, int p) { return buffer.of(member) + from.byte_offset + p * from.stride_bytes; };
  const std::byte* mine = place_of(node_->me(), rank());
  node_->signal(Progress::arrived, lane, number);
  const auto within_node = [&] {
    copy_block(out + rank() * slice, mine, slice);
    // Each member starts with the one after it, so that not all read the same memory at once.
    for (int i = 1; i < node_->size(); ++i) {
      const int member = (node_->me() + i) % node_->size();
      const int p = place_.node_ranks[static_cast<std::size_t>(member)];
      node_->wait(member, Progress::arrived, lane, number);
      copy_block(out + p * slice, place_of(member, p), slice);
    }
    node_->signal(Progress::finished, lane, number);
  };
  if (remote_ranks_.empty()) return within_node();
  std::vector<Transport::Send> sends;
  std::vector<Transport::Receive> receives;
  for (const int p : remote_ranks_) {
    sends.push_back({p, mine, slice});
    receives.push_back({p, out + p * slice, slice});
  }
  transport_->exchange(lane, sends, receives, within_node);
}

Ticket HierarchicalCommunicator::reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype,
                                                TensorView acc, bool first) {
  staging_.grow(device, stream, acc.count * static_cast<std::int64_t>(size_of(dtype)));
  CollectiveCount& count = count_slices(CollectiveKind::reduce_scatter, acc.count, dtype);
  return put(stream, {.kind = CollectiveKind::reduce_scatter,
                      .device = &device,
                      .count = &count,
                      .from = from,
                      .dtype = dtype,
                      .to = acc,
                      .first = first});
}

void HierarchicalCommunicator::run_reduce_scatter(Device& device, int lane, std::int64_t number, const Region& from,
                                                  DType dtype, TensorView acc, bool first) {
  const WindowBuffer& buffer = WindowBuffer::from(from);
  const std::int64_t slice = acc.count * static_cast<std::int64_t>(size_of(dtype));
  node_->signal(Progress::arrived, lane, number);
  std::vector<const void*>& sources = lanes_[static_cast<std::size_t>(lane)].sources;
  sources.assign(static_cast<std::size_t>(size()), nullptr);
  const auto within_node = [&] {
    for (int member = 0; member < node_->size(); ++member) {
      if (member != node_->me()) node_->wait(member, Progress::arrived, lane, number);
      const auto p = static_cast<std::size_t>(place_.node_ranks[static_cast<std::size_t>(member)]);
      sources[p] = buffer.of(member) + from.byte_offset + rank() * from.stride_bytes;
    }
  };
  if (remote_ranks_.empty()) {
    within_node();
  } else {
    std::vector<Transport::Send> sends;
    std::vector<Transport::Receive> receives;
    std::int64_t offset = 0;
    for (const int p : remote_ranks_) {
      sends.push_back({p, buffer.of(node_->me()) + from.byte_offset + p * from.stride_bytes, slice});
      // An empty slice needs no staging, which then may not exist.
      std::byte* to = slice == 0 ? nullptr : staging_.at(static_cast<Stream>(lane), offset);
      receives.push_back({p, to, slice});
      sources[static_cast<std::size_t>(p)] = to;
      offset += Staging::stride(slice);
    }
    transport_->exchange(lane, sends, receives, within_node);
  }
  const bool is_there = size() == 1 && first && sources[0] == acc.data && acc.dtype == dtype;
  if (acc.count > 0 && !is_there) {
    device.run(static_cast<Stream>(lane),
               ReduceOnto{.acc = acc, .sources = sources, .source_dtype = dtype, .first = first});
  }
  node_->signal(Progress::finished, lane, number);
}

Ticket HierarchicalCommunicator::all_to_all(Device& device, Stream stream, const Region& from,
                                            const OwnerBlocks& blocks, TensorView to) {
  CollectiveCount& count = count_blocks(blocks, to);
  return put(stream, {.kind = CollectiveKind::all_to_all,
                      .device = &device,
                      .count = &count,
                      .from = from,
                      .blocks = blocks,
                      .to = to});
}

void HierarchicalCommunicator::run_all_to_all(int lane, std::int64_t number, const Region& from,
                                              const OwnerBlocks& blocks, TensorView to) {
  const WindowBuffer& buffer = WindowBuffer::from(from);
  const auto width = static_cast<std::int64_t>(size_of(to.dtype));
  const std::int64_t room = to.count / size() * width;
  auto* out = static_cast<std::byte*>(to.data);
  const auto block_of = [&](int member, int q) { return buffer.of(member) + from.byte_offset + q * from.stride_bytes; };
  const auto bytes_between = [&](int p, int q) { return blocks.count(p, q) * width; };
  node_->signal(Progress::arrived, lane, number);
  const auto within_node = [&] {
    // Each member starts with itself and the one after it, so that not all read the same memory at once.
    for (int i = 0; i < node_->size(); ++i) {
      const int member = (node_->me() + i) % node_->size();
      const int p = place_.node_ranks[static_cast<std::size_t>(member)];
      const std::int64_t bytes = bytes_between(p, rank());
      if (bytes == 0) continue;  // who sends nothing is not waited for
      if (i > 0) node_->wait(member, Progress::arrived, lane, number);
      copy_block(out + p * room, block_of(member, rank()), bytes);
    }
    node_->signal(Progress::finished, lane, number);
  };
  if (remote_ranks_.empty()) return within_node();
  std::vector<Transport::Send> sends;
  std::vector<Transport::Receive> receives;
  for (const int p : remote_ranks_) {
    sends.push_back({p, block_of(node_->me(), p), bytes_between(rank(), p)});
    receives.push_back({p, out + p * room, bytes_between(p, rank())});
  }
  transport_->exchange(lane, sends, receives, within_node);
}

void HierarchicalCommunicator::wait_until_read(Ticket ticket) {
  if (ticket.number == 0) return;
  const std::int64_t number = ticket.number / 64;
  const int index = static_cast<int>(ticket.number / 8 % 8);
  Lane& lane = lanes_[static_cast<std::size_t>(index)];
  if (number <= lane.read) return;
  // A peer finishes only if this rank's part runs too.
  if (const auto queued = lane.pending.find(number); queued != lane.pending.end()) {
    const Pending pending = queued->second;
    pending.device->synchronize(pending.event);
  }
  const SecondsInside inside(count_of(static_cast<CollectiveKind>(ticket.number % 8)));
  for (int member = 0; member < node_->size(); ++member) {
    if (member != node_->me()) node_->wait(member, Progress::finished, index, number);
  }
  lane.read = number;
}

void HierarchicalCommunicator::exchange(std::span<const std::size_t> sizes, std::span<const std::byte> mine,
                                        Take take) {
  const auto within_node = [&] {
    node_sizes_.clear();
    for (const int p : place_.node_ranks) node_sizes_.push_back(sizes[static_cast<std::size_t>(p)]);
    node_->exchange(node_sizes_, mine, [&](int member, std::size_t offset, std::span<const std::byte> piece) {
      take(place_.node_ranks[static_cast<std::size_t>(member)], offset, piece);
    });
  };
  if (remote_ranks_.empty()) return within_node();
  std::vector<Transport::Send> sends;
  std::vector<Transport::Receive> receives;
  std::vector<std::vector<std::byte>> received;
  for (const int p : remote_ranks_) {
    auto& memory = received.emplace_back(sizes[static_cast<std::size_t>(p)]);
    sends.push_back({p, mine.data(), static_cast<std::int64_t>(mine.size())});
    receives.push_back({p, memory.data(), static_cast<std::int64_t>(memory.size())});
  }
  transport_->exchange(host_lane, sends, receives, within_node);
  for (std::size_t i = 0; i < received.size(); ++i) {
    if (!received[i].empty()) take(remote_ranks_[i], 0, received[i]);
  }
}

void HierarchicalCommunicator::all_reduce_sum(std::span<std::int64_t> values) {
  const SecondsInside inside(count_all_reduce(values.size()));
  if (size() == 1) return;
  sizes_.assign(static_cast<std::size_t>(size()), values.size_bytes());
  mine_.assign(values.begin(), values.end());
  exchange(sizes_, std::as_bytes(std::span(mine_)), [&](int p, std::size_t offset, std::span<const std::byte> piece) {
    if (p == rank()) return;
    for (std::size_t i = 0; i < piece.size(); i += sizeof(std::int64_t)) {
      std::int64_t value = 0;
      std::memcpy(&value, piece.data() + i, sizeof value);
      std::int64_t& sum = values[(offset + i) / sizeof(std::int64_t)];
      // Modulo 2^64, so that the order never matters.
      sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(value));
    }
  });
}

void HierarchicalCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  const SecondsInside inside(count_broadcast(bytes.size(), root));
  if (size() == 1) return;
  std::vector<std::size_t> sizes(static_cast<std::size_t>(size()), 0);
  sizes[static_cast<std::size_t>(root)] = bytes.size();
  const std::span<const std::byte> mine = root == rank() ? bytes : std::span<std::byte>();
  exchange(sizes, mine, [&](int p, std::size_t offset, std::span<const std::byte> piece) {
    if (p == root && root != rank()) std::memcpy(bytes.data() + offset, piece.data(), piece.size());
  });
}

std::vector<std::string> HierarchicalCommunicator::all_gather_strings(const std::string& mine) {
  const SecondsInside inside(count_strings(mine.size()));
  if (size() == 1) return {mine};
  const auto count = static_cast<std::size_t>(size());
  const std::uint64_t length = mine.size();
  std::vector<std::size_t> sizes(count);
  exchange(std::vector<std::size_t>(count, sizeof length), std::as_bytes(std::span(&length, 1)),
           [&](int p, std::size_t, std::span<const std::byte> piece) {
             std::uint64_t value = 0;
             std::memcpy(&value, piece.data(), sizeof value);
             sizes[static_cast<std::size_t>(p)] = value;
           });
  std::vector<std::string> all(count);
  for (std::size_t p = 0; p < count; ++p) all[p].resize(sizes[p]);
  exchange(sizes, std::as_bytes(std::span(mine)), [&](int p, std::size_t offset, std::span<const std::byte> piece) {
    std::memcpy(all[static_cast<std::size_t>(p)].data() + offset, piece.data(), piece.size());
  });
  return all;
}

void HierarchicalCommunicator::abort(int exit_code, const std::string& message) noexcept {
  try {
    if (place_.abort_delay.count() > 0) std::this_thread::sleep_for(place_.abort_delay);
    node_->block().record_failure({rank(), exit_code, message}, place_.on_abort);
  } catch (...) {  // without memory for the text the peers still learn of it when this rank ends
  }
}

// Ranks of other machines are not in this block: whoever started the world (mpirun) ends it when one of them ends.
void HierarchicalCommunicator::check_peers() {
  const ControlBlock& block = node_->block();
  block.throw_if_failed();
  for (int slot = 0; slot < block.slots(); ++slot) {
    if (block.is_gone(slot) && !block.is_done(slot)) block.throw_gone(slot);
  }
}

}  // namespace zt
