// What a fixed sequence of collectives gives on a rank, as bytes: for comparing communicators and devices. Everything
// between the first upload and the last download is put on streams, ordered by events alone, so that on a device whose
// streams run late a missing event in a communicator changes the bytes.
#pragma once

#include <cstring>
#include <deque>
#include <vector>

#include "communicator_checks.h"

namespace zt::test {

class Transcript {
 public:
  Transcript(Communicator& communicator, Device& device) : c_(communicator), device_(device) {}

  // All kinds, for slices of so many elements.
  void run(std::int64_t slice) {
    run<float>(slice);
    run<bf16_t>(slice);
    run<f16_t>(slice);
  }
  // What has come out, when all has run.
  std::vector<std::byte> bytes() {
    device_.synchronize(Stream::compute);
    std::vector<std::byte> all;
    for (const auto& part : results_) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

 private:
  template <typename T>
  void run(std::int64_t slice) {
    const DType dtype = DTypeOf<T>::value;
    gather<T>(slice);
    reduce<T>(slice, dtype, Stream::reduce);
    if (dtype != DType::f32) reduce<T>(slice, DType::f32, Stream::reduce);
    reduce<T>(slice, dtype, Stream::copy);
    exchange<T>(slice);
  }

  // Overwrites on the compute stream, from memory that lives as long as this.
  template <typename T>
  void write(void* to, std::int64_t count, int salt) {
    auto& values = sources_.emplace_back(static_cast<std::size_t>(count) * sizeof(T));
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = from_float<T>(value_at(c_.rank() + salt, i));
      std::memcpy(values.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof value);
    }
    device_.copy(Stream::compute, to, values.data(), static_cast<std::int64_t>(values.size()));
  }
  void read(const void* from, std::int64_t bytes) {
    auto& part = results_.emplace_back(static_cast<std::size_t>(bytes));
    device_.copy(Stream::compute, part.data(), from, bytes);
  }
  // The stream takes over from the compute stream, and gives back.
  void before(Stream stream) { device_.wait(stream, device_.record(Stream::compute)); }
  void after(Stream stream, Ticket ticket) {
    const Event event = device_.record(stream);
    device_.wait(Stream::compute, event);
    if (ticket.number == 0) return;
    device_.synchronize(event);
    c_.wait_until_read(ticket);
  }

  template <typename T>
  void gather(std::int64_t slice) {
    const DType dtype = DTypeOf<T>::value;
    const auto width = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t n = c_.size();
    const std::int64_t lead = 256;  // the region does not start where the buffer does
    auto whole = c_.allocate(device_, lead + n * slice * width, MemoryCategory::communication, "whole");
    auto own = c_.allocate(device_, slice * width, MemoryCategory::parameters, "own");
    const Buffer out = device_.allocate(n * slice * width, MemoryCategory::communication, "out");
    const Region region{whole.get(), lead, slice * width};
    for (const Stream stream : {Stream::gather, Stream::compute, Stream::reduce, Stream::gather}) {
      const int salt = static_cast<int>(results_.size());
      write<T>(whole->view(lead + c_.rank() * slice * width, slice, dtype).data, slice, salt);
      write<T>(own->data(), slice, salt + 1);
      before(stream);
      const Ticket elsewhere = c_.all_gather(device_, stream, region, out.view(dtype));
      after(stream, elsewhere);
      read(out.data(), out.bytes());
      before(stream);
      const Ticket of_own = c_.all_gather(device_, stream, {own.get(), 0, 0}, out.view(dtype));
      const Ticket in_place = c_.all_gather(device_, stream, region, whole->view(lead, n * slice, dtype));
      after(stream, of_own);
      after(stream, in_place);
      read(out.data(), out.bytes());
      read(whole->data(), whole->bytes());
    }
    device_.synchronize(Stream::compute);
  }

  template <typename T>
  void reduce(std::int64_t slice, DType acc_dtype, Stream stream) {
    const DType dtype = DTypeOf<T>::value;
    const auto width = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t n = c_.size();
    auto source = c_.allocate(device_, n * slice * width, MemoryCategory::gradients, "source");
    const Buffer sums =
        device_.allocate(slice * static_cast<std::int64_t>(size_of(acc_dtype)), MemoryCategory::gradients, "sums");
    c_.reserve(device_, slice * width);
    const Region region{source.get(), 0, slice * width};
    for (int round = 0; round < 4; ++round) {
      write<T>(source->data(), n * slice, round + 11);
      before(stream);
      after(stream, c_.reduce_scatter(device_, stream, region, dtype, sums.view(acc_dtype), round % 2 == 0));
      read(sums.data(), sums.bytes());
    }
    if (acc_dtype == dtype) {  // onto the own slice of the source
      write<T>(source->data(), n * slice, 31);
      before(stream);
      const TensorView own = source->view(c_.rank() * slice * width, slice, dtype);
      after(stream, c_.reduce_scatter(device_, stream, region, dtype, own, true));
      read(own.data, own.bytes());
    }
    device_.synchronize(Stream::compute);
  }

  // Blocks go to their owners on one stream, and from them back to all on another.
  template <typename T>
  void exchange(std::int64_t slice) {
    const DType dtype = DTypeOf<T>::value;
    const auto width = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t n = c_.size();
    auto source = c_.allocate(device_, n * slice * width, MemoryCategory::optimizer, "blocks");
    auto owned = c_.allocate(device_, n * slice * width, MemoryCategory::optimizer, "owned");
    const Buffer arrived = device_.allocate(n * slice * width, MemoryCategory::optimizer, "arrived");
    const Buffer back = device_.allocate(n * slice * width, MemoryCategory::optimizer, "back");
    for (int pattern = 0; pattern < owner_patterns; ++pattern) {
      const OwnerBlocks to_owners{counts_.emplace_back(owner_counts(c_.size(), slice, pattern)), true};
      const OwnerBlocks from_owners{to_owners.counts, false};
      const auto destination = [&](const OwnerBlocks& blocks, const Buffer& buffer) {
        return receives_something(blocks, c_.rank()) ? buffer.view(dtype) : TensorView(nullptr, 0, dtype);
      };
      write<T>(source->data(), n * slice, pattern + 51);
      const Stream there = pattern % 2 == 0 ? Stream::reduce : Stream::copy;
      before(there);
      after(there, c_.all_to_all(device_, there, {source.get(), 0, slice * width}, to_owners,
                                 destination(to_owners, arrived)));
      read(arrived.data(), arrived.bytes());
      device_.copy(Stream::compute, owned->data(), arrived.data(), arrived.bytes());
      before(Stream::gather);
      after(Stream::gather, c_.all_to_all(device_, Stream::gather, {owned.get(), 0, slice * width}, from_owners,
                                          destination(from_owners, back)));
      read(back.data(), back.bytes());
    }
    device_.synchronize(Stream::compute);
  }

  Communicator& c_;
  Device& device_;
  std::deque<std::vector<std::byte>> sources_, results_;
  std::deque<std::vector<std::int64_t>> counts_;  // of blocks, by owner
};

inline std::vector<std::byte> transcript_of(Communicator& c, Device& device,
                                            std::initializer_list<std::int64_t> slices) {
  Transcript transcript(c, device);
  for (const std::int64_t slice : slices) transcript.run(slice);
  return transcript.bytes();
}

}  // namespace zt::test
