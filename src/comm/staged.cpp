#include "comm/staged.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "comm/agree.h"
#include "core/errors.h"

namespace zt {
namespace {

// The host communicator's order of calls is the program's: one lane for all.
constexpr Stream host_stream = Stream::compute;
constexpr std::int64_t signature_bytes = 64;

std::int64_t round_up(std::int64_t bytes) { return (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64; }
std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

// FNV-1a, by numbers in place of bytes.
std::int64_t digest_of(std::span<const std::int64_t> counts) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const std::int64_t count : counts) digest = (digest ^ static_cast<std::uint64_t>(count)) * 0x100000001b3;
  return static_cast<std::int64_t>(digest);
}

}  // namespace

// What belongs to the device and so goes with the last of its buffers: pinned memory, and events of its streams.
struct StagedCommunicator::Staging {
  explicit Staging(Device& its_device) : device(its_device) {}
  ~Staging() { drain(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Copies that use the memory are over, or their device has failed.
  void drain() noexcept {
    for (auto* events : {&copied_in, &copied_back}) {
      for (Event& event : *events) {
        try {
          device.synchronize(std::exchange(event, {}));
        } catch (const std::exception&) {  // said by who waits for results
        }
      }
    }
  }

  Device& device;
  std::shared_ptr<SharedBuffer> window;  // kept until it is no longer pinned
  Buffer pinned_window;
  Buffer exchanged;  // two halves: every rank's chunk, or this rank's sum
  std::array<Event, 2> copied_in, copied_back;
};

class StagedCommunicator::DeviceBuffer final : public SharedBuffer {
 public:
  DeviceBuffer(std::shared_ptr<Staging> staging, Buffer memory)
      : staging_(std::move(staging)), memory_(std::move(memory)) {}
  void* data() const override { return memory_.data(); }
  std::int64_t bytes() const override { return memory_.bytes(); }

  static const std::byte* start_of(const Region& region) {
    const auto* buffer = dynamic_cast<const DeviceBuffer*>(region.buffer);
    if (buffer == nullptr) throw std::logic_error("a region's buffer must come from the communicator's allocate()");
    return buffer->memory_.at(region.byte_offset);
  }

 private:
  std::shared_ptr<Staging> staging_;
  Buffer memory_;
};

StagedCommunicator::StagedCommunicator(Communicator& host, const StagedOptions& options)
    : CountedCommunicator(host.rank(), host.size()), host_(host), options_(options) {}

StagedCommunicator::~StagedCommunicator() = default;

std::int64_t StagedCommunicator::most_chunk_bytes() const {
  return round_up(std::min(options_.chunk_bytes, options_.all_chunks_bytes / size()));
}

std::int64_t StagedCommunicator::host_bytes() const {
  return chunk_bytes_ == 0 ? 0 : 4 * size() * chunk_bytes_ + 2 * signature_bytes;
}

std::int64_t StagedCommunicator::largest_host_bytes() const {
  return size() == 1 ? 0 : 4 * size() * most_chunk_bytes() + 2 * signature_bytes;
}

std::string StagedCommunicator::description() const {
  if (size() == 1) return "1 rank";
  const std::int64_t mebibytes = std::max<std::int64_t>(1, largest_host_bytes() >> 20);
  return std::to_string(size()) + (size() == 1 ? " rank" : " ranks") + ", staged through host memory (at most " +
         std::to_string(mebibytes) + " MiB a rank; " + host_.description() + ")";
}

// A chunk is as large as the largest buffer at most: buffers are allocated alike by all ranks, so this is, too.
void StagedCommunicator::grow(std::int64_t chunk_bytes) {
  const std::int64_t wanted = std::min(round_up(chunk_bytes), most_chunk_bytes());
  if (wanted <= chunk_bytes_) return;
  if (const auto staging = staging_.lock()) {
    staging->drain();
    staging->pinned_window = Buffer();
    staging->exchanged = Buffer();
    staging->window = nullptr;
  }
  // What peers still read of the old window stays until they have a new one.
  window_ = host_.allocate(host_device_, 2 * size() * wanted + 2 * signature_bytes, MemoryCategory::communication,
                           "staging of device buffers");
  window_read_ = {};
  signature_read_ = {};
  chunk_bytes_ = wanted;
}

std::shared_ptr<StagedCommunicator::Staging> StagedCommunicator::join(Device& device) {
  auto staging = staging_.lock();
  if (!staging) {
    staging = std::make_shared<Staging>(device);
    staging_ = staging;
  } else if (&staging->device != &device) {
    throw std::logic_error("a rank's shared buffers are all of one device");
  }
  if (!staging->window) {
    staging->window = window_;
    staging->pinned_window = device.pin(window_->data(), window_->bytes());
    staging->exchanged = device.allocate_host(2 * size() * chunk_bytes_, "staging of device buffers");
  }
  return staging;
}

SharedBufferPtr StagedCommunicator::allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                                             const std::string& name) {
  std::shared_ptr<Staging> staging;
  if (size() > 1) {
    grow(bytes);
    staging = join(device);
  }
  return std::make_unique<DeviceBuffer>(std::move(staging), device.allocate(bytes, category, name));
}

std::string StagedCommunicator::text_of(const Signature& signature) {
  const auto name = [](std::int64_t dtype) { return std::string(name_of(static_cast<DType>(dtype))); };
  const bool gathers = signature.kind == static_cast<std::int64_t>(CollectiveKind::all_gather);
  if (signature.kind == static_cast<std::int64_t>(CollectiveKind::all_to_all)) {
    return std::string("all_to_all ") + (signature.to_owners != 0 ? "to" : "from") + " owners of at most " +
           std::to_string(signature.slice) + " " + name(signature.dtype) +
           " elements a block (digest of the counts: " + std::to_string(static_cast<std::uint64_t>(signature.digest)) +
           ")";
  }
  std::string text = (gathers ? "all_gather of " : "reduce_scatter of ") + std::to_string(signature.slice) + " " +
                     name(signature.dtype) + " elements a slice";
  if (!gathers) {
    text += (signature.first == 0 ? ", added to " : ", as ") + name(signature.acc_dtype);
  }
  return text;
}

// Costs an exchange of some bytes, little beside the copies; without it, ranks that differ would mix up their data.
void StagedCommunicator::compare(const Signature& mine) {
  static_assert(sizeof(Signature) <= signature_bytes);
  const auto side = static_cast<std::size_t>(number_ % 2);
  const std::int64_t offset = 2 * size() * chunk_bytes_ + static_cast<std::int64_t>(side) * signature_bytes;
  host_.wait_until_read(signature_read_[side]);
  std::memcpy(static_cast<std::byte*>(window_->data()) + offset, &mine, sizeof mine);
  std::vector<float> all(static_cast<std::size_t>(size() * signature_bytes / 4));  // any 4 bytes
  signature_read_[side] = host_.all_gather(host_device_, host_stream, {window_.get(), offset, 0},
                                           {all.data(), static_cast<std::int64_t>(all.size()), DType::f32});
  std::string differing;
  Signature first{};
  for (int p = 0; p < size(); ++p) {
    Signature theirs{};
    std::memcpy(&theirs, reinterpret_cast<const std::byte*>(all.data()) + p * signature_bytes, sizeof theirs);
    if (p == 0) first = theirs;
    if (theirs != first) differing += "; rank " + std::to_string(p) + " calls " + text_of(theirs);
  }
  if (differing.empty()) return;
  fail_together<RunError>(host_, "ranks call different collectives (no. " + std::to_string(first.number) +
                                     "): rank 0 calls " + text_of(first) + differing);
}

template <typename Stage, typename Exchange>
void StagedCommunicator::for_each_chunk(Device& device, std::int64_t slice_elements, DType dtype, const Stage& stage,
                                        const Exchange& exchange) {
  const auto staging = staging_.lock();
  const std::int64_t most = chunk_bytes_ / bytes_of(dtype);
  const auto elements_at = [&](std::int64_t start) { return std::min(most, slice_elements - start); };
  // A half may be written again when peers have read it and this rank's copies from it are over.
  const auto stage_next = [&](std::int64_t start) {
    const int half = std::exchange(half_, 1 - half_);
    const auto index = static_cast<std::size_t>(half);
    host_.wait_until_read(std::exchange(window_read_[index], {}));
    device.synchronize(std::exchange(staging->copied_back[index], {}));
    stage(half, start, elements_at(start));
    return half;
  };
  if (slice_elements == 0) return;
  int half = stage_next(0);
  for (std::int64_t start = 0; start < slice_elements; start += most) {
    const int current = half;
    if (start + most < slice_elements) half = stage_next(start + most);
    const auto index = static_cast<std::size_t>(current);
    device.synchronize(std::exchange(staging->copied_in[index], {}));
    exchange(current, start, elements_at(start));
  }
}

Ticket StagedCommunicator::all_gather(Device& device, Stream stream, const Region& from, TensorView to) {
  const std::int64_t slice = to.count / size();
  const SecondsInside inside(count_slices(CollectiveKind::all_gather, slice, to.dtype));
  const std::int64_t width = bytes_of(to.dtype);
  const std::byte* mine = DeviceBuffer::start_of(from) + rank() * from.stride_bytes;
  auto* out = static_cast<std::byte*>(to.data);
  if (std::byte* own = out + rank() * slice * width; own != mine) device.copy(stream, own, mine, slice * width);
  if (size() == 1) return {};
  compare({.number = ++number_,
           .kind = static_cast<std::int64_t>(CollectiveKind::all_gather),
           .slice = slice,
           .dtype = static_cast<std::int64_t>(to.dtype),
           .acc_dtype = 0,
           .first = 0});
  const auto staging = staging_.lock();
  const std::int64_t half_bytes = size() * chunk_bytes_;
  for_each_chunk(
      device, slice, to.dtype,
      [&](int half, std::int64_t start, std::int64_t elements) {
        auto* in = static_cast<std::byte*>(window_->data()) + half * half_bytes;
        device.copy(stream, in, mine + start * width, elements * width);
        staging->copied_in[static_cast<std::size_t>(half)] = device.record(stream);
      },
      [&](int half, std::int64_t start, std::int64_t elements) {
        const auto index = static_cast<std::size_t>(half);
        std::byte* all = staging->exchanged.at(half * half_bytes);
        window_read_[index] = host_.all_gather(host_device_, host_stream, {window_.get(), half * half_bytes, 0},
                                               {all, size() * elements, to.dtype});
        for (int p = 0; p < size(); ++p) {
          if (p == rank()) continue;
          device.copy(stream, out + (p * slice + start) * width, all + p * elements * width, elements * width);
        }
        staging->copied_back[index] = device.record(stream);
      });
  return {};
}

Ticket StagedCommunicator::reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype,
                                          TensorView acc, bool first) {
  const SecondsInside inside(count_slices(CollectiveKind::reduce_scatter, acc.count, dtype));
  const std::byte* slices = DeviceBuffer::start_of(from);
  if (size() == 1) {
    const std::array<const void*, 1> sources = {slices};
    const bool is_there = first && slices == acc.data && acc.dtype == dtype;
    if (acc.count > 0 && !is_there)
      device.run(stream, ReduceOnto{.acc = acc, .sources = sources, .source_dtype = dtype, .first = first});
    return {};
  }
  compare({.number = ++number_,
           .kind = static_cast<std::int64_t>(CollectiveKind::reduce_scatter),
           .slice = acc.count,
           .dtype = static_cast<std::int64_t>(dtype),
           .acc_dtype = static_cast<std::int64_t>(acc.dtype),
           .first = first ? 1 : 0});
  const auto staging = staging_.lock();
  const std::int64_t width = bytes_of(dtype);
  const std::int64_t half_bytes = size() * chunk_bytes_;
  // The sum may be in fp32 where slices are in 16 bits: a half has room for it, since there are two ranks or more.
  for_each_chunk(
      device, acc.count, dtype,
      [&](int half, std::int64_t start, std::int64_t elements) {
        auto* in = static_cast<std::byte*>(window_->data()) + half * half_bytes;
        for (int p = 0; p < size(); ++p) {
          device.copy(stream, in + p * chunk_bytes_, slices + p * from.stride_bytes + start * width, elements * width);
        }
        if (!first) {
          const TensorView sum = acc.part(start, elements);
          device.copy(stream, staging->exchanged.at(half * half_bytes), sum.data, sum.bytes());
        }
        staging->copied_in[static_cast<std::size_t>(half)] = device.record(stream);
      },
      [&](int half, std::int64_t start, std::int64_t elements) {
        const auto index = static_cast<std::size_t>(half);
        const TensorView sum(staging->exchanged.at(half * half_bytes), elements, acc.dtype);
        window_read_[index] = host_.reduce_scatter(host_device_, host_stream,
                                                   {window_.get(), half * half_bytes, chunk_bytes_}, dtype, sum, first);
        device.copy(stream, acc.part(start, elements).data, sum.data, sum.bytes());
        staging->copied_back[index] = device.record(stream);
      });
  return {};
}

Ticket StagedCommunicator::all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                                      TensorView to) {
  const SecondsInside inside(count_blocks(blocks, to));
  const std::int64_t width = bytes_of(to.dtype);
  const std::int64_t room = to.count / size();
  const std::byte* mine = DeviceBuffer::start_of(from);
  auto* out = static_cast<std::byte*>(to.data);
  if (const std::int64_t own = blocks.count(rank(), rank()); own > 0) {
    std::byte* place = out + rank() * room * width;
    const std::byte* block = mine + rank() * from.stride_bytes;
    if (place != block) device.copy(stream, place, block, own * width);
  }
  if (size() == 1) return {};
  const std::int64_t largest = blocks.largest();
  compare({.number = ++number_,
           .kind = static_cast<std::int64_t>(CollectiveKind::all_to_all),
           .slice = largest,
           .dtype = static_cast<std::int64_t>(to.dtype),
           .acc_dtype = 0,
           .first = 0,
           .to_owners = blocks.to_owners ? 1 : 0,
           .digest = digest_of(blocks.counts)});
  const auto staging = staging_.lock();
  const std::int64_t half_bytes = size() * chunk_bytes_;
  std::vector<std::int64_t> parts(static_cast<std::size_t>(size()));
  // What falls into a chunk of a block of so many elements.
  const auto part_of = [](std::int64_t count, std::int64_t start, std::int64_t elements) {
    return std::clamp<std::int64_t>(count - start, 0, elements);
  };
  // Chunks are those of the largest block, so all ranks exchange equally often.
  for_each_chunk(
      device, largest, to.dtype,
      [&](int half, std::int64_t start, std::int64_t elements) {
        auto* in = static_cast<std::byte*>(window_->data()) + half * half_bytes;
        for (int q = 0; q < size(); ++q) {
          const std::int64_t part = part_of(blocks.count(rank(), q), start, elements);
          if (q == rank() || part == 0) continue;
          device.copy(stream, in + q * chunk_bytes_, mine + q * from.stride_bytes + start * width, part * width);
        }
        staging->copied_in[static_cast<std::size_t>(half)] = device.record(stream);
      },
      [&](int half, std::int64_t start, std::int64_t elements) {
        const auto index = static_cast<std::size_t>(half);
        for (std::size_t q = 0; q < parts.size(); ++q) parts[q] = part_of(blocks.counts[q], start, elements);
        // The own block is not in it: what the host copies in its place goes nowhere.
        std::byte* all = staging->exchanged.at(half * half_bytes);
        window_read_[index] =
            host_.all_to_all(host_device_, host_stream, {window_.get(), half * half_bytes, chunk_bytes_},
                             {parts, blocks.to_owners}, {all, size() * elements, to.dtype});
        for (int p = 0; p < size(); ++p) {
          const std::int64_t part = part_of(blocks.count(p, rank()), start, elements);
          if (p == rank() || part == 0) continue;
          device.copy(stream, out + (p * room + start) * width, all + p * elements * width, part * width);
        }
        staging->copied_back[index] = device.record(stream);
      });
  return {};
}

void StagedCommunicator::all_reduce_sum(std::span<std::int64_t> values) {
  const SecondsInside inside(count_all_reduce(values.size()));
  host_.all_reduce_sum(values);
}

void StagedCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  const SecondsInside inside(count_broadcast(bytes.size(), root));
  host_.broadcast(bytes, root);
}

std::vector<std::string> StagedCommunicator::all_gather_strings(const std::string& mine) {
  const SecondsInside inside(count_strings(mine.size()));
  return host_.all_gather_strings(mine);
}

}  // namespace zt
