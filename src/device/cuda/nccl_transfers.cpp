// NCCL's calls: one group each.
#include <algorithm>
#include <array>
#include <vector>

#include "core/errors.h"
#include "device/cuda/nccl_communicator.h"

namespace zt::cuda {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::bf16: return ncclBfloat16;
    case DType::f16: return ncclFloat16;
    case DType::f32: break;
  }
  return ncclFloat32;
}

// The first result that is not success.
class Results {
 public:
  void add(ncclResult_t result) {
    if (first_ == ncclSuccess) first_ = result;
  }
  ncclResult_t first() const { return first_; }

 private:
  ncclResult_t first_ = ncclSuccess;
};

}  // namespace

void NcclCommunicator::send_blocks(Channel channel, Stream stream, const std::string& what,
                                   const std::function<std::span<const std::byte>(int to)>& source,
                                   const std::function<std::span<std::byte>(int from)>& destination,
                                   std::int64_t largest) {
  const NcclFunctions& nccl = channels_->nccl();
  channels_->group(channel, what, [&](ncclComm_t comm) {
    Results results;
    for (std::int64_t start = 0; start < largest; start += options_.largest_message) {
      const auto first = static_cast<std::size_t>(start);
      const auto part_of = [&](std::size_t bytes) {
        return std::min(static_cast<std::size_t>(options_.largest_message), bytes - std::min(first, bytes));
      };
      // Each rank begins with its neighbours, so that not all send to the same one.
      for (int distance = 1; distance < size(); ++distance) {
        const int to = (rank() + distance) % size();
        const int from = (rank() + size() - distance) % size();
        const auto sent = source(to);
        const auto received = destination(from);
        if (const std::size_t part = part_of(sent.size()); part > 0)
          results.add(nccl.send(sent.data() + start, part, ncclUint8, to, comm, device_.native(stream)));
        if (const std::size_t part = part_of(received.size()); part > 0)
          results.add(nccl.receive(received.data() + start, part, ncclUint8, from, comm, device_.native(stream)));
      }
    }
    return results.first();
  });
}

void NcclCommunicator::send_to_all(Channel channel, Stream stream, const std::string& what,
                                   const std::function<const std::byte*(int to)>& source,
                                   const std::function<std::byte*(int from)>& destination, std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(bytes);
  send_blocks(
      channel, stream, what, [&](int to) { return std::span(source(to), count); },
      [&](int from) { return std::span(destination(from), count); }, bytes);
}

void NcclCommunicator::sum_by_nccl(Channel channel, Stream stream, const std::string& what, const std::byte* slices,
                                   std::int64_t stride, DType dtype, void* sum, std::int64_t elements) {
  const NcclFunctions& nccl = channels_->nccl();
  channels_->group(channel, what, [&](ncclComm_t comm) {
    const cudaStream_t native = device_.native(stream);
    const auto width = static_cast<std::int64_t>(size_of(dtype));
    if (elements <= options_.largest_message && stride == elements * width) {
      return nccl.reduce_scatter(slices, sum, static_cast<std::size_t>(elements), nccl_type(dtype), ncclSum, comm,
                                 native);
    }
    Results results;
    for (std::int64_t start = 0; start < elements; start += options_.largest_message) {
      const auto count = static_cast<std::size_t>(std::min(options_.largest_message, elements - start));
      for (int p = 0; p < size(); ++p) {
        results.add(nccl.reduce(slices + p * stride + start * width, static_cast<std::byte*>(sum) + start * width,
                                count, nccl_type(dtype), ncclSum, p, comm, native));
      }
    }
    return results.first();
  });
}

// Makes the connections, which takes seconds, before anything is timed, and shows that they work: every rank receives
// every rank's number in all the ways that are used later.
void NcclCommunicator::warm_up() {
  if (size() == 1) return;
  const auto count = static_cast<std::size_t>(size());
  const Buffer memory = device_.allocate(5 * size() * 4, MemoryCategory::communication, "warm-up");
  auto* const sent = memory.as<float>();
  std::vector<float> numbers(count, static_cast<float>(rank() + 1));
  std::vector<float> arrived(2 * count);
  device_.copy(Stream::gather, sent, numbers.data(), static_cast<std::int64_t>(4 * count));
  device_.wait(Stream::reduce, device_.record(Stream::gather));
  const auto bytes_at = [](float* place) { return reinterpret_cast<std::byte*>(place); };
  for (const Channel channel : {NcclChannels::gathers, NcclChannels::reductions}) {
    const Stream stream = channel == NcclChannels::gathers ? Stream::gather : Stream::reduce;
    float* const received = sent + (channel == NcclChannels::gathers ? 1 : 3) * size();
    if (options_.fast && channel == NcclChannels::reductions) {
      // To a place that nothing is sent to.
      sum_by_nccl(channel, stream, "first sum", bytes_at(sent), 4, DType::f32, received + rank(), 1);
    }
    send_to_all(
        channel, stream, "first sends", [&](int) { return bytes_at(sent); },
        [&](int from) { return bytes_at(received + from); }, 4);
    channels_->group(channel, "first gather", [&](ncclComm_t comm) {
      return channels_->nccl().all_gather(sent, received + size(), 1, ncclFloat32, comm, device_.native(stream));
    });
    device_.copy(stream, arrived.data(), received, static_cast<std::int64_t>(8 * count));
    device_.synchronize(stream);
    channels_->check();
    for (std::size_t p = 0; p < count; ++p) {
      const auto number = static_cast<float>(p + 1);
      const bool sends_right = static_cast<int>(p) == rank() || arrived[p] == number;
      if (sends_right && arrived[count + p] == number) continue;
      throw RunError("NCCL " + channels_->version() + " does not carry what it is given: rank " +
                     std::to_string(rank()) + " received " + std::to_string(arrived[p]) + " and " +
                     std::to_string(arrived[count + p]) + " from rank " + std::to_string(p) + " instead of " +
                     std::to_string(number) + ". NCCL_P2P_DISABLE=1 is worth a try (some machines' IOMMU or ACS " +
                     "settings break transfers between GPUs); device.communicator \"staged\" does without NCCL");
    }
  }
}

}  // namespace zt::cuda
