// NCCL's communicator over memory that the ranks share. Ranks may be threads of a process or processes of a machine:
// the unique id names a memory file of the process that made it, and every rank maps it.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zt::emulation {

constexpr int max_ranks = 8;
constexpr std::size_t chunk_bytes = 256 << 10;  // of a rank, at a time
constexpr std::size_t letter_bytes = 64 << 10;  // of a pair of ranks, at a time

enum class Kind : int { all_gather, all_reduce, reduce_scatter, broadcast, reduce, send, receive };

struct NcclCall {
  Kind kind = Kind::all_gather;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int other = 0;  // root or peer; 0 where there is none
};

// What all ranks must have in common of a collective.
struct Signature {
  Kind kind;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  bool operator==(const Signature&) const = default;
};
std::string text_of(const Signature& signature);
std::string text_of(Kind kind);

// Laid over zeroed memory. Ranks meet by counting steps.
struct RankPart {
  std::atomic<std::uint64_t> steps;
  std::atomic<int> device_plus_1;
  std::array<Signature, 2> signatures;  // of this rank's collectives, alternating: one rank may be one call ahead
  alignas(64) std::array<unsigned char, chunk_bytes> chunk;
};
struct Mailbox {  // one letter at a time
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  std::size_t count;
  ncclDataType_t type;
  std::array<unsigned char, letter_bytes> letter;
};
struct Region {
  std::atomic<int> stopped_by_plus_1;
  std::atomic<int> file_closed;
  std::array<RankPart, max_ranks> ranks;
  std::array<std::array<Mailbox, max_ranks>, max_ranks> mail;  // [from][to]
};

struct Communicator {
  Communicator() = default;
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Region* region = nullptr;
  int rank = 0;
  int ranks = 1;
  int device = 0;
  std::uint64_t step = 0;         // what this rank has posted
  std::uint64_t collectives = 0;  // begun so far
  std::uint64_t groups = 0;       // queued so far
  std::string waits_in;           // the call that runs, for time-outs
  std::atomic<ncclResult_t> error{ncclSuccess};

  RankPart& mine() const { return region->ranks[static_cast<std::size_t>(rank)]; }
  RankPart& part(int of) const { return region->ranks[static_cast<std::size_t>(of)]; }
  void post();            // one step further
  bool all_here() const;  // all ranks have come as far
  bool stopped();         // somebody has given up; notes ncclRemoteError
  void stop(ncclResult_t why);
  std::string missing_ranks() const;
};

// The shared memory of a new id, and that of an id; null if it cannot be had.
bool make_region(ncclUniqueId* id);
Region* open_region(const ncclUniqueId& id);
void close_region_file(const ncclUniqueId& id, Region* region);

// Text for ncclGetLastError.
void set_nccl_error(const std::string& text);

std::size_t bytes_of(ncclDataType_t type);  // 0: not emulated

// result[i] = sources[first][i] op sources[first + 1][i] op ..., around the ring of ranks: the order in which NCCL's
// ring adds, each step rounded to the type. ncclAvg multiplies by 1/ranks before adding, as NCCL does for floating
// types.
void fold(ncclDataType_t type, ncclRedOp_t op, int first, int ranks, const Communicator& comm, std::size_t begin,
          std::size_t count, void* result);

}  // namespace zt::emulation
