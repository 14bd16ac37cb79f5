// What every communicator must do, whatever its ranks are made of. Each check runs on all ranks and throws what is
// wrong, so that it serves threads, processes and MPI alike.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "all_to_all_checks.h"
#include "checked_values.h"
#include "comm/communicator.h"
#include "comm/counting.h"
#include "plain_device.h"

namespace zt::test {

template <typename T>
void check_all_gather(Communicator& c, Device& device, Stream stream, std::int64_t slice) {
  const DType dtype = DTypeOf<T>::value;
  const std::int64_t width = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t n = c.size();
  const std::int64_t lead = 128;  // the region does not start where the buffer does
  const auto expected = [&](std::int64_t i) { return from_float<T>(value_at(static_cast<int>(i / slice), i)); };
  const auto check = [&](const T* values, const std::string& what) {
    for (std::int64_t i = 0; i < n * slice; ++i) require(same_bits(values[i], expected(i)), what);
  };
  auto whole = c.allocate(device, lead + n * slice * width, MemoryCategory::communication, "whole");
  auto own = c.allocate(device, slice * width, MemoryCategory::parameters, "own");
  Buffer out = device.allocate(n * slice * width, MemoryCategory::communication, "out");
  T* in_whole = whole->view(lead, n * slice, dtype).template as<T>();
  T* in_own = own->view(0, slice, dtype).template as<T>();
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t i = 0; i < slice; ++i) {
      in_whole[c.rank() * slice + i] = in_own[i] = expected(c.rank() * slice + i);
    }
    const Region region{whole.get(), lead, slice * width};
    // To memory elsewhere, from whole regions and from slices alone; then in place.
    c.wait_until_read(c.all_gather(device, stream, region, out.view(dtype)));
    device.synchronize(stream);
    check(out.as<T>(), "all_gather from whole regions");
    std::memset(out.data(), 0, static_cast<std::size_t>(out.bytes()));
    const Ticket of_own = c.all_gather(device, stream, {own.get(), 0, 0}, out.view(dtype));
    const Ticket in_place = c.all_gather(device, stream, region, whole->view(lead, n * slice, dtype));
    device.synchronize(stream);
    check(out.as<T>(), "all_gather from slices");
    check(in_whole, "all_gather in place");
    c.wait_until_read(of_own);
    c.wait_until_read(in_place);
    c.wait_until_read(of_own);
    // May be overwritten now, which no peer sees.
    std::memset(whole->data(), 0x7f, static_cast<std::size_t>(whole->bytes()));
    std::memset(own->data(), 0x7f, static_cast<std::size_t>(own->bytes()));
  }
}

template <typename T, typename A>
void check_reduce_scatter(Communicator& c, Device& device, Stream stream, std::int64_t slice) {
  const DType dtype = DTypeOf<T>::value;
  const std::int64_t width = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t n = c.size();
  auto source = c.allocate(device, n * slice * width, MemoryCategory::gradients, "source");
  Buffer sums = device.allocate(slice * static_cast<std::int64_t>(sizeof(A)), MemoryCategory::gradients, "sums");
  T* values = source->view(0, n * slice, dtype).template as<T>();
  const Region region{source.get(), 0, slice * width};
  const auto fill = [&](int round) {
    for (std::int64_t i = 0; i < n * slice; ++i) values[i] = from_float<T>(value_at(c.rank() + round, i));
  };
  const auto fold = [&](float start, bool first, std::int64_t i, int round) {
    float sum = start;
    for (int p = 0; p < n; ++p) {
      const float next = to_float(from_float<T>(value_at(p + round, c.rank() * slice + i)));
      sum = first && p == 0 ? next : sum + next;
    }
    return sum;
  };
  std::vector<A> expected(static_cast<std::size_t>(slice));
  for (int round = 0; round < 4; ++round) {
    const bool first = round % 2 == 0;
    fill(round);
    const Ticket ticket = c.reduce_scatter(device, stream, region, dtype, sums.view(DTypeOf<A>::value), first);
    c.wait_until_read(ticket);
    device.synchronize(stream);
    for (std::int64_t i = 0; i < slice; ++i) {
      A& sum = expected[static_cast<std::size_t>(i)];
      sum = from_float<A>(fold(first ? 0.0F : to_float(sum), first, i, round));
      require(same_bits(sums.as<A>()[i], sum), "reduce_scatter is a left fold in rank order");
    }
  }
  // Onto the own slice of the source.
  fill(9);
  T* own = values + c.rank() * slice;
  const Ticket ticket =
      c.reduce_scatter(device, stream, region, dtype, source->view(c.rank() * slice * width, slice, dtype), true);
  device.synchronize(stream);
  for (std::int64_t i = 0; i < slice; ++i) {
    require(same_bits(own[i], from_float<T>(fold(0.0F, true, i, 9))), "reduce_scatter onto the own slice");
  }
  c.wait_until_read(ticket);
}

inline void check_host_values(Communicator& c) {
  const int n = c.size();
  // Longer than the area through which ranks of a node talk.
  for (const std::size_t count : {std::size_t{1}, std::size_t{70}, std::size_t{10001}}) {
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = (c.rank() + 1) * (std::int64_t{1} << (i % 50));
    c.all_reduce_sum(values);
    for (std::size_t i = 0; i < count; ++i) {
      require(values[i] == n * (n + 1) / 2 * (std::int64_t{1} << (i % 50)), "all_reduce_sum");
    }
  }
  c.all_reduce_sum({});
  for (int root = 0; root < n; ++root) {
    std::vector<std::byte> bytes(70001, std::byte{0});
    if (c.rank() == root) std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(root + 5));
    c.broadcast(bytes, root);
    for (const std::byte b : bytes) require(b == static_cast<std::byte>(root + 5), "broadcast");
  }
  const auto text_of = [](int p) {
    return p % 3 == 1 ? std::string()
                      : std::string(static_cast<std::size_t>(p) * 40000 + 3, static_cast<char>('a' + p));
  };
  const auto all = c.all_gather_strings(text_of(c.rank()));
  require(all.size() == static_cast<std::size_t>(n), "number of strings");
  for (int p = 0; p < n; ++p) require(all[static_cast<std::size_t>(p)] == text_of(p), "strings in rank order");
  c.barrier();
}

// The calls whose counts are compared with the formula and with the counting communicator.
inline void counted_calls(Communicator& c, Device& device, std::int64_t slice) {
  const std::int64_t n = c.size();
  auto buffer = c.allocate(device, n * slice * 4, MemoryCategory::gradients, "counted");
  Buffer out = device.allocate(n * slice * 4, MemoryCategory::communication, "counted out");
  c.reserve(device, slice * 4);
  const Region f32{buffer.get(), 0, slice * 4};
  const Region f16{buffer.get(), 0, slice * 2};
  c.set_purpose(Purpose::training);
  c.wait_until_read(c.all_gather(device, Stream::gather, f32, out.view(DType::f32)));
  c.wait_until_read(
      c.reduce_scatter(device, Stream::reduce, f32, DType::f32, out.view(DType::f32).part(0, slice), true));
  c.wait_until_read(
      c.reduce_scatter(device, Stream::reduce, f16, DType::f16, out.view(DType::f32).part(0, slice), true));
  const std::vector<std::int64_t> counts = owner_counts(c.size(), slice, 1);
  c.wait_until_read(c.all_to_all(device, Stream::reduce, f32, {counts, true}, out.view(DType::f32)));
  c.set_purpose(Purpose::evaluation);
  c.wait_until_read(c.all_gather(device, Stream::gather, f16, {out.data(), n * slice, DType::f16}));
  c.wait_until_read(c.all_to_all(device, Stream::reduce, f16, {counts, false}, {out.data(), n * slice, DType::f16}));
  std::int64_t values[3] = {1, 2, 3};
  c.all_reduce_sum(values);
  std::byte bytes[11] = {};
  c.broadcast(bytes, 0);
  c.all_gather_strings("twelve bytes");
  c.barrier();
  c.set_purpose(Purpose::training);
}

inline void check_counts(Communicator& c, std::int64_t slice) {
  PlainDevice device;
  counted_calls(c, device, slice);
  const std::int64_t others = c.size() - 1;
  CommunicationCounts counts = c.counts();
  const auto equal = [&](Purpose purpose, CollectiveKind kind, std::int64_t calls, std::int64_t elements,
                         std::int64_t bytes) {
    const CollectiveCount& found = counts.of(purpose, kind);
    require(found.calls == calls && found.elements == elements * others && found.bytes == bytes * others,
            "counts of kind " + std::to_string(static_cast<int>(kind)));
    require(found.seconds >= 0.0, "seconds");
  };
  equal(Purpose::training, CollectiveKind::all_gather, 1, slice, slice * 4);
  equal(Purpose::training, CollectiveKind::reduce_scatter, 2, slice * 2, slice * 6);
  equal(Purpose::training, CollectiveKind::all_reduce, 0, 0, 0);
  equal(Purpose::training, CollectiveKind::broadcast, 0, 0, 0);
  equal(Purpose::evaluation, CollectiveKind::all_gather, 1, slice, slice * 2);
  equal(Purpose::evaluation, CollectiveKind::reduce_scatter, 0, 0, 0);
  // To each other owner its block; from an owner a block to each other rank.
  const std::vector<std::int64_t> owned = owner_counts(c.size(), slice, 1);
  std::int64_t to_others = 0;
  for (int q = 0; q < c.size(); ++q) to_others += q == c.rank() ? 0 : owned[static_cast<std::size_t>(q)];
  const std::int64_t of_mine = owned[static_cast<std::size_t>(c.rank())] * others;
  const CollectiveCount& to_owners = counts.of(Purpose::training, CollectiveKind::all_to_all);
  require(to_owners.calls == 1 && to_owners.elements == to_others && to_owners.bytes == to_others * 4, "to owners");
  const CollectiveCount& from_owners = counts.of(Purpose::evaluation, CollectiveKind::all_to_all);
  require(from_owners.calls == 1 && from_owners.elements == of_mine && from_owners.bytes == of_mine * 2, "from owners");
  equal(Purpose::control, CollectiveKind::all_reduce, 2, 4, 32);
  equal(Purpose::control, CollectiveKind::all_gather, 1, 12, 12);
  const std::int64_t root_bytes = c.rank() == 0 ? 11 : 0;
  equal(Purpose::control, CollectiveKind::broadcast, 1, root_bytes, root_bytes);
}

// `device`: on which the buffers of `c` are.
inline void check_counts_of_dry_run(Communicator& c, Device& device, std::int64_t slice) {
  CommunicationCounts before = c.counts();
  counted_calls(c, device, slice);
  CommunicationCounts after = c.counts();
  CountingCommunicator dry(c.rank(), c.size(), c.ranks_on_node());
  PlainDevice dry_device;
  counted_calls(dry, dry_device, slice);
  CommunicationCounts counted = dry.counts();
  for (const Purpose purpose : {Purpose::training, Purpose::evaluation, Purpose::control}) {
    for (int kind = 0; kind < collective_kind_count; ++kind) {
      const auto k = static_cast<CollectiveKind>(kind);
      require(after.of(purpose, k).calls - before.of(purpose, k).calls == counted.of(purpose, k).calls, "dry calls");
      require(after.of(purpose, k).elements - before.of(purpose, k).elements == counted.of(purpose, k).elements,
              "dry elements");
      require(after.of(purpose, k).bytes - before.of(purpose, k).bytes == counted.of(purpose, k).bytes, "dry bytes");
    }
  }
}

inline void check_counts_of_dry_run(Communicator& c, std::int64_t slice) {
  PlainDevice device;
  check_counts_of_dry_run(c, device, slice);
}

// All of it. `slices`: elements of a slice.
inline void check_communicator(Communicator& c, Device& device, std::initializer_list<std::int64_t> slices) {
  for (const std::int64_t slice : slices) {
    check_all_gather<float>(c, device, Stream::gather, slice);
    check_all_gather<bf16_t>(c, device, Stream::gather, slice);
    check_all_gather<f16_t>(c, device, Stream::compute, slice);
    check_reduce_scatter<float, float>(c, device, Stream::reduce, slice);
    check_reduce_scatter<bf16_t, bf16_t>(c, device, Stream::reduce, slice);
    check_reduce_scatter<bf16_t, float>(c, device, Stream::reduce, slice);
    check_reduce_scatter<f16_t, f16_t>(c, device, Stream::reduce, slice);
    check_reduce_scatter<f16_t, float>(c, device, Stream::compute, slice);
    check_all_to_all<float>(c, device, Stream::reduce, slice);
    check_all_to_all<bf16_t>(c, device, Stream::gather, slice);
    check_all_to_all<f16_t>(c, device, Stream::compute, slice);
    check_all_to_alls_in_a_row(c, device, slice);
  }
  check_all_to_all_in_place(c, device);
  check_host_values(c);
}

}  // namespace zt::test
