// What every communicator counts, in one place, so that a dry run and a run count the same by construction.
#pragma once

#include <chrono>
#include <stdexcept>

#include "comm/communicator.h"

namespace zt {

// Adds the seconds of its life to a count.
class SecondsInside {
 public:
  explicit SecondsInside(CollectiveCount& count) : count_(count), start_(std::chrono::steady_clock::now()) {}
  ~SecondsInside() {
    count_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  SecondsInside(const SecondsInside&) = delete;
  SecondsInside& operator=(const SecondsInside&) = delete;

 private:
  CollectiveCount& count_;
  std::chrono::steady_clock::time_point start_;
};

// A rank sends N - 1 slices in each all_gather and in each reduce_scatter, whichever way they take; in an all_to_all
// its blocks for others; its values to N - 1 peers in an all-reduce of host values; the root of a broadcast sends its
// bytes N - 1 times.
class CountedCommunicator : public Communicator {
 public:
  CountedCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const final { return rank_; }
  int size() const final { return size_; }
  void set_purpose(Purpose purpose) final { purpose_ = purpose; }
  const CommunicationCounts& counts() const final { return counts_; }

 protected:
  CollectiveCount& count_slices(CollectiveKind kind, std::int64_t slice_elements, DType dtype) {
    return count(purpose_, kind, slice_elements, static_cast<std::int64_t>(size_of(dtype)));
  }
  // Of all_to_all. A block that `to` has no room for is a mistake of the caller, and would be written behind it.
  CollectiveCount& count_blocks(const OwnerBlocks& blocks, const TensorView& to) {
    if (blocks.counts.size() != static_cast<std::size_t>(size_))
      throw std::logic_error("an all_to_all needs the number of elements of each owner");
    for (int p = 0; p < size_; ++p) {
      if (blocks.count(p, rank_) > to.count / size_)
        throw std::logic_error("the destination of an all_to_all is too small");
    }
    return add(purpose_, CollectiveKind::all_to_all, blocks.sent_by(rank_),
               static_cast<std::int64_t>(size_of(to.dtype)));
  }
  CollectiveCount& count_all_reduce(std::size_t values) {
    return count(Purpose::control, CollectiveKind::all_reduce, static_cast<std::int64_t>(values), 8);
  }
  CollectiveCount& count_broadcast(std::size_t bytes, int root) {
    return count(Purpose::control, CollectiveKind::broadcast, root == rank_ ? static_cast<std::int64_t>(bytes) : 0, 1);
  }
  CollectiveCount& count_strings(std::size_t bytes) {
    return count(Purpose::control, CollectiveKind::all_gather, static_cast<std::int64_t>(bytes), 1);
  }
  CollectiveCount& count_of(CollectiveKind kind) { return counts_.of(purpose_, kind); }

 private:
  // `elements` to each of the others.
  CollectiveCount& count(Purpose purpose, CollectiveKind kind, std::int64_t elements, std::int64_t element_bytes) {
    return add(purpose, kind, (size_ - 1) * elements, element_bytes);
  }
  CollectiveCount& add(Purpose purpose, CollectiveKind kind, std::int64_t elements, std::int64_t element_bytes) {
    CollectiveCount& entry = counts_.of(purpose, kind);
    ++entry.calls;
    entry.elements += elements;
    entry.bytes += elements * element_bytes;
    return entry;
  }

  int rank_;
  int size_;
  Purpose purpose_ = Purpose::training;
  CommunicationCounts counts_;
};

}  // namespace zt
