#include "device/cuda/nccl_communicator.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <vector>

#include "core/errors.h"
#include "device/cuda/errors.h"

namespace zt::cuda {
namespace {

std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

std::string text_of(const char* name, std::int64_t bytes, Stream stream, const char* each = "slice") {
  constexpr std::array streams = {"compute", "gather", "reduce", "copy"};
  return std::string(name) + " of " + std::to_string(bytes) + " bytes a " + each + " on the " +
         streams[static_cast<std::size_t>(stream)] + " stream";
}

}  // namespace

class NcclCommunicator::NcclBuffer final : public SharedBuffer {
 public:
  NcclBuffer(std::shared_ptr<Staging::Memory> staging, Buffer memory, CudaDevice& device,
             std::shared_ptr<NcclChannels> channels, NcclChannels::Enrolled enrolled)
      : staging_(std::move(staging)),
        memory_(std::move(memory)),
        device_(device),
        channels_(std::move(channels)),
        enrolled_(enrolled) {}
  ~NcclBuffer() override {
    if (enrolled_.handles[0] == nullptr) return;
    // Unlike cudaFree, giving NCCL's memory back does not wait for what uses it.
    for (int stream = 0; stream < stream_count; ++stream) {
      try {
        device_.synchronize(static_cast<Stream>(stream));
      } catch (const std::exception&) {  // the streams have been freed of NCCL's kernels, or left
      }
    }
    channels_->strike_off(enrolled_);
  }
  NcclBuffer(const NcclBuffer&) = delete;
  NcclBuffer& operator=(const NcclBuffer&) = delete;

  void* data() const override { return memory_.data(); }
  std::int64_t bytes() const override { return memory_.bytes(); }

  static std::byte* start_of(const Region& region) {
    const auto* buffer = dynamic_cast<const NcclBuffer*>(region.buffer);
    if (buffer == nullptr) throw std::logic_error("a region's buffer must come from the communicator's allocate()");
    return buffer->memory_.at(region.byte_offset);
  }

 private:
  std::shared_ptr<Staging::Memory> staging_;
  Buffer memory_;
  CudaDevice& device_;
  std::shared_ptr<NcclChannels> channels_;
  NcclChannels::Enrolled enrolled_;
};

NcclCommunicator::NcclCommunicator(Communicator& host, CudaDevice& device, const NcclOptions& options)
    : CountedCommunicator(host.rank(), host.size()),
      host_(host),
      device_(device),
      options_(options),
      staging_(host.size() - 1),
      channels_(std::make_shared<NcclChannels>(host, device, options)),
      exceptions_(std::uncaught_exceptions()) {
  device_.set_watch([channels = channels_.get()] { channels->look(); });
  try {
    warm_up();
  } catch (...) {
    device_.set_watch({});
    channels_->abandon();
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  const bool fails = std::uncaught_exceptions() > exceptions_;
  try {
    if (!fails) channels_->finish();
  } catch (const std::exception&) {  // a peer failed; whoever needs this rank's results has learnt of it before
  }
  device_.set_watch({});
  channels_->abandon();
}

std::string NcclCommunicator::description() const {
  const std::string library = "NCCL " + channels_->version();
  if (size() == 1) return "1 rank over " + library;
  return std::to_string(size()) + " ranks over " + library +
         (options_.fast ? ", summed by NCCL" : ", summed in rank order");
}

void NcclCommunicator::reserve(Device& device, std::int64_t largest_slice_bytes) {
  staging_.reserve(device, largest_slice_bytes);
}

SharedBufferPtr NcclCommunicator::allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                                           const std::string& name) {
  auto staging = staging_.join(device);
  const NcclFunctions& nccl = channels_->nccl();
  // What all ranks decide alike: by size and by the library.
  if (size() == 1 || bytes < options_.smallest_enrolled || !nccl.has_memory()) {
    return std::make_unique<NcclBuffer>(std::move(staging), device.allocate(bytes, category, name), device_, channels_,
                                        NcclChannels::Enrolled{});
  }
  const DeviceAllocator allocator{[&nccl](void** memory, std::size_t size) {
                                    if (nccl.allocate(memory, size) == ncclSuccess) return cudaSuccess;
                                    const cudaError_t status = cudaGetLastError();
                                    return status == cudaSuccess ? cudaErrorMemoryAllocation : status;
                                  },
                                  [&nccl](void* memory) { static_cast<void>(nccl.give_back(memory)); }};
  Buffer memory = device_.allocate(bytes, category, name, allocator);
  const NcclChannels::Enrolled enrolled = channels_->enrol(memory.data(), bytes);
  return std::make_unique<NcclBuffer>(std::move(staging), std::move(memory), device_, channels_, enrolled);
}

NcclChannels::Channel NcclCommunicator::channel_for(Device& device, Stream stream) {
  if (stream == Stream::reduce) return NcclChannels::reductions;
  if (stream != last_on_gathers_) device.wait(stream, device.record(last_on_gathers_));
  last_on_gathers_ = stream;
  return NcclChannels::gathers;
}

Ticket NcclCommunicator::all_gather(Device& device, Stream stream, const Region& from, TensorView to) {
  const std::int64_t bytes = to.bytes() / size();
  const SecondsInside inside(count_slices(CollectiveKind::all_gather, to.count / size(), to.dtype));
  channels_->check();
  if (bytes == 0) return {};
  const std::byte* mine = NcclBuffer::start_of(from) + rank() * from.stride_bytes;
  auto* out = static_cast<std::byte*>(to.data);
  std::byte* own = out + rank() * bytes;
  if (size() == 1) {
    if (own != mine) device.copy(stream, own, mine, bytes);
    return {};
  }
  const Channel channel = channel_for(device, stream);
  const std::string what = text_of("all_gather", bytes, stream);
  if (bytes <= options_.largest_message) {
    channels_->group(channel, what, [&](ncclComm_t comm) {
      return channels_->nccl().all_gather(mine, out, static_cast<std::size_t>(bytes), ncclUint8, comm,
                                          device_.native(stream));
    });
    return {};
  }
  if (own != mine) device.copy(stream, own, mine, bytes);
  send_to_all(
      channel, stream, what, [&](int) { return mine; }, [&](int p) { return out + p * bytes; }, bytes);
  return {};
}

Ticket NcclCommunicator::reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                                        bool first) {
  const SecondsInside inside(count_slices(CollectiveKind::reduce_scatter, acc.count, dtype));
  channels_->check();
  if (acc.count == 0) return {};
  const std::int64_t bytes = acc.count * bytes_of(dtype);
  const std::byte* slices = NcclBuffer::start_of(from);
  const auto slice = [&](int p) { return slices + p * from.stride_bytes; };
  std::vector<const void*> sources(static_cast<std::size_t>(size()));
  sources[static_cast<std::size_t>(rank())] = slice(rank());
  const auto add_up = [&] {
    device.run(stream, ReduceOnto{.acc = acc, .sources = sources, .source_dtype = dtype, .first = first});
  };
  if (size() == 1) {
    const bool is_there = first && sources[0] == acc.data && acc.dtype == dtype;
    if (!is_there) add_up();
    return {};
  }
  const Channel channel = channel_for(device, stream);
  const std::string what = text_of("reduce_scatter", bytes, stream);
  // NCCL's sum goes to where it belongs, unless it is to be converted or added.
  const bool directly = options_.fast && first && acc.dtype == dtype;
  if (!directly) staging_.grow(device, stream, bytes);
  if (options_.fast) {
    void* const sum = directly ? acc.data : staging_.at(stream, 0);
    sum_by_nccl(channel, stream, what, slices, from.stride_bytes, dtype, sum, acc.count);
    sources = {sum};
    if (!directly) add_up();
    return {};
  }
  const auto place_of = [&](int p) { return staging_.at(stream, (p < rank() ? p : p - 1) * Staging::stride(bytes)); };
  send_to_all(channel, stream, what, slice, place_of, bytes);
  for (int p = 0; p < size(); ++p) {
    if (p != rank()) sources[static_cast<std::size_t>(p)] = place_of(p);
  }
  add_up();
  return {};
}

Ticket NcclCommunicator::all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                                    TensorView to) {
  const SecondsInside inside(count_blocks(blocks, to));
  channels_->check();
  // What all ranks decide alike: one that has nothing to send or to receive makes an empty group.
  const std::int64_t largest = blocks.largest() * bytes_of(to.dtype);
  if (largest == 0) return {};
  const std::int64_t room = to.count / size() * bytes_of(to.dtype);
  const std::byte* sent = NcclBuffer::start_of(from);
  auto* received = static_cast<std::byte*>(to.data);
  const auto bytes_between = [&](int p, int q) {
    return static_cast<std::size_t>(blocks.count(p, q) * bytes_of(to.dtype));
  };
  const auto source = [&](int q) { return std::span(sent + q * from.stride_bytes, bytes_between(rank(), q)); };
  const auto destination = [&](int p) { return std::span(received + p * room, bytes_between(p, rank())); };
  const auto own = source(rank());
  std::byte* const place = destination(rank()).data();
  const bool copies = !own.empty() && place != own.data();
  if (size() == 1) {
    if (copies) device.copy(stream, place, own.data(), largest);
    return {};
  }
  const Channel channel = channel_for(device, stream);
  if (copies) device.copy(stream, place, own.data(), static_cast<std::int64_t>(own.size()));
  const std::string what = text_of("all_to_all", largest, stream, "block at most");
  send_blocks(channel, stream, what, source, destination, largest);
  return {};
}

void NcclCommunicator::all_reduce_sum(std::span<std::int64_t> values) {
  const SecondsInside inside(count_all_reduce(values.size()));
  channels_->check();
  host_.all_reduce_sum(values);
}

void NcclCommunicator::sum_on_device(Device& device, Stream stream, std::int64_t* values, std::int64_t count) {
  const auto elements = static_cast<std::size_t>(count);
  const SecondsInside inside(count_all_reduce(elements));
  channels_->check();
  if (size() == 1 || count == 0) return;
  const Channel channel = channel_for(device, stream);
  channels_->group(channel, text_of("all_reduce", count * 8, stream), [&](ncclComm_t comm) {
    return channels_->nccl().all_reduce(values, values, elements, ncclInt64, ncclSum, comm, device_.native(stream));
  });
}

void NcclCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  const SecondsInside inside(count_broadcast(bytes.size(), root));
  channels_->check();
  host_.broadcast(bytes, root);
}

std::vector<std::string> NcclCommunicator::all_gather_strings(const std::string& mine) {
  const SecondsInside inside(count_strings(mine.size()));
  channels_->check();
  return host_.all_gather_strings(mine);
}

}  // namespace zt::cuda
