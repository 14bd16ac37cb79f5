// What ranks say to each other: the whole interface.
//
// Every call except the accessors is collective: all ranks make the same calls in the same order. Collectives
// on tensors take part in a stream's order; the ones on host values wait. When a peer is lost, or has called
// abort(), the waiting calls throw PeerFailed within seconds.
//
// Buffers that peers read are allocated here, all ranks alike, and named by a handle. A rank may overwrite the
// source of a collective only when wait_until_read(ticket) has returned: then all peers have read it. A buffer may
// be destroyed at any time by its rank alone: what peers still read stays until they destroy theirs.
//
// Collectives of one stream run in the order of the calls; those of different streams may run in another order
// than they were called in, as long as it is the same order on all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace zt {

enum class CollectiveKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all };
constexpr int collective_kind_count = 5;
std::string_view name_of(CollectiveKind kind);  // as in summary.json: "all_reduce"

// What the traffic is for: only training counts towards elements per parameter and step.
enum class Purpose : std::uint8_t { training, evaluation, control };

struct CollectiveCount {
  std::int64_t calls = 0;
  std::int64_t elements = 0;  // sent by this rank
  std::int64_t bytes = 0;     // sent by this rank
  double seconds = 0.0;       // inside the calls, waiting included
};
struct CommunicationCounts {
  std::array<CollectiveCount, collective_kind_count> training{}, evaluation{}, control{};
  CollectiveCount& of(Purpose purpose, CollectiveKind kind);
};

// Memory of this rank that peers read. Zeroed. The same size on every rank.
class SharedBuffer {
 public:
  virtual ~SharedBuffer() = default;
  virtual void* data() const = 0;
  virtual std::int64_t bytes() const = 0;
  TensorView view(std::int64_t byte_offset, std::int64_t count, DType dtype) const {
    return {static_cast<std::byte*>(data()) + byte_offset, count, dtype};
  }
};
using SharedBufferPtr = std::unique_ptr<SharedBuffer>;

// The place of N slices: on every rank, slice p of the region starts at byte_offset + p * stride_bytes.
// A region that exists whole on each rank has stride = bytes of a slice; where each rank holds nothing but
// its own slice, stride is 0.
struct Region {
  const SharedBuffer* buffer = nullptr;
  std::int64_t byte_offset = 0;
  std::int64_t stride_bytes = 0;
};

// Blocks between owners and all ranks: counts[q] elements go between owner q and each rank, one way or the other.
struct OwnerBlocks {
  std::span<const std::int64_t> counts;  // by owner, the same on all ranks; lives until the collective is over
  bool to_owners = true;                 // false: from owners to all ranks

  std::int64_t count(int from, int to) const { return counts[static_cast<std::size_t>(to_owners ? to : from)]; }
  // Elements that a rank sends to others.
  std::int64_t sent_by(int rank) const;
  std::int64_t largest() const;
};

struct Ticket {
  std::int64_t number = 0;  // 0: nothing to wait for
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Ranks whose memory this rank reads directly, itself included; the others' slices come through staging memory.
  virtual int ranks_on_node() const = 0;
  virtual std::string description() const = 0;

  // Tells the largest slice (bytes) of any reduce_scatter to come, so that memory for what other nodes send is
  // allocated at set-up: now, or with the next allocate() if this communicator has no buffer yet (category
  // communication). Without it that memory grows when a larger slice is first used. It goes with the last buffer.
  virtual void reserve(Device& device, std::int64_t largest_slice_bytes) {
    static_cast<void>(device);
    static_cast<void>(largest_slice_bytes);
  }

  virtual SharedBufferPtr allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                                   const std::string& name) = 0;

  // to[p * slice ... (p + 1) * slice) = slice p of rank p's `from`, for all p. `to` may be the region's own memory
  // on this rank. slice = to.count / size().
  virtual Ticket all_gather(Device& device, Stream stream, const Region& from, TensorView to) = 0;

  // acc = left fold over ranks p = 0 ... N-1 of slice rank() of rank p's `from` (ReduceOnto; in fp32, in rank
  // order; first: starting from rank 0's slice, else from acc). acc may be this rank's own slice of `from`.
  virtual Ticket reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                                bool first) = 0;

  // Block p of `to` = rank p's block for this rank, blocks.count(p, rank()) elements of to's dtype, for all p. Block q
  // of `from` starts at byte_offset + q * stride_bytes, block p of `to` at element p * (to.count / size()). (to.count
  // may be 0 on ranks that receive nothing.) `to` may not overlap `from`, unless this is the only rank.
  virtual Ticket all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                            TensorView to) = 0;

  // The host waits until all peers have read what the collective of this ticket offered them.
  virtual void wait_until_read(Ticket ticket) = 0;

  // Host values, all ranks wait; always counted as control. Sums of integers (exact in any order); the root's bytes
  // to all; every rank's bytes (lengths may differ) to all, in rank order.
  virtual void all_reduce_sum(std::span<std::int64_t> values) = 0;
  // The sums of integers in the device's memory, in the stream's order (here: the host waits for the stream and the
  // peers); always counted as control.
  virtual void sum_on_device(Device& device, Stream stream, std::int64_t* values, std::int64_t count);
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  virtual std::vector<std::string> all_gather_strings(const std::string& mine) = 0;
  void barrier() {
    std::int64_t nothing = 0;
    all_reduce_sum({&nothing, 1});
  }

  // Tells the peers that this rank has failed, and why; does not return their state. Never throws. Over MPI the
  // message is written to stderr and the world is ended here; for local ranks the launcher writes it.
  virtual void abort(int exit_code, const std::string& message) noexcept = 0;

  // Not collective, does not wait, may be called by any thread: throws PeerFailed if a peer is known to have failed or
  // to be lost. For who waits for something else than this communicator (a GPU that waits for other GPUs).
  virtual void check_peers() {}

  virtual void set_purpose(Purpose purpose) = 0;
  virtual const CommunicationCounts& counts() const = 0;
  // Resident bytes of peers' memory that this process has mapped.
  virtual std::int64_t peers_shared_bytes() const = 0;
};

}  // namespace zt
