// What NCCL's communicator gives: bits, counts, memory. Each test runs in the streams' mode of the environment and in
// the one that shows missing events best.
#include "catch_compat.h"
#include "collectives_transcript.h"
#include "comm/staged.h"
#include "nccl_ranks.h"

using namespace zt;
using namespace zt::test;
using zt::emulation::Configured;
using zt::emulation::Streams;

namespace {

// 64 floats, all 7, and collectives of them; ranks differ in nothing.
struct CudaArrays {
  static constexpr std::int64_t count = 64;
  explicit CudaArrays(NcclRank& of)
      : self(of),
        source(self.nccl.allocate(self.device, 4 * count, MemoryCategory::gradients, "source")),
        all(self.device.allocate(4 * count, MemoryCategory::communication, "all")),
        sums(self.device.allocate(4 * count / self.host.size(), MemoryCategory::gradients, "sums")),
        seen(self.device.allocate_host(4, "seen")) {
    const std::vector<float> sevens(count, 7.0F);
    self.device.copy(Stream::compute, source->data(), sevens.data(), 4 * count);
    self.device.synchronize(Stream::compute);
    self.host.barrier();
  }
  void gather(Stream stream, std::int64_t elements = count) const {
    self.nccl.all_gather(self.device, stream, {source.get(), 0, 4 * elements / self.host.size()},
                         all.view(DType::f32).part(0, elements));
  }
  void reduce(Stream stream) const {
    self.nccl.reduce_scatter(self.device, stream, {source.get(), 0, sums.bytes()}, DType::f32, sums.view(DType::f32),
                             true);
  }
  // What is there now, whatever is queued on other streams than that of copies.
  float value(const Buffer& buffer) const {
    self.device.copy(Stream::copy, seen.data(), buffer.data(), 4);
    self.device.synchronize(Stream::copy);
    return *seen.as<float>();
  }
  NcclRank& self;
  SharedBufferPtr source;
  Buffer all, sums, seen;
};

}  // namespace

TEST_CASE("sums in rank order have the same bits over NCCL, staged, and on CPUs") {
  for (const Streams streams : {Streams::eager, Streams::lazy, Streams::lazy_shuffled}) {
    for (const int ranks : {1, 2, 3, 4}) {
      CAPTURE(ranks, static_cast<int>(streams));
      const Configured configured(gpus(4, streams));
      REQUIRE_NOTHROW(run_nccl_ranks(ranks, hasty(), [](NcclRank& self) {
        cpu::CpuDevice cpu(1);
        const auto expected = transcript_of(self.host, cpu, {0, 1, 150});
        require(transcript_of(self.nccl, self.device, {0, 1, 150}) == expected, "NCCL");
        StagedCommunicator staged(self.host);
        require(transcript_of(staged, self.device, {0, 1, 150}) == expected, "staged");
      }));
    }
  }
}

TEST_CASE("large messages are cut, and enrolled memory works like any other") {
  const Configured configured(gpus(3, Streams::lazy_shuffled));
  cuda::NcclOptions options = hasty();
  options.smallest_enrolled = 0;
  for (const bool fast : {false, true}) {
    options.fast = fast;
    options.largest_message = std::int64_t{1} << 30;
    std::vector<std::vector<std::byte>> whole(3);
    REQUIRE_NOTHROW(run_nccl_ranks(3, options, [&](NcclRank& self) {
      whole[static_cast<std::size_t>(self.host.rank())] = transcript_of(self.nccl, self.device, {1, 150});
    }));
    options.largest_message = 100;
    REQUIRE_NOTHROW(run_nccl_ranks(3, options, [&](NcclRank& self) {
      const auto cut = transcript_of(self.nccl, self.device, {1, 150});
      const auto& expected = whole[static_cast<std::size_t>(self.host.rank())];
      require(cut.size() == expected.size(), "as many bytes");
      // NCCL adds in another order when its sum is cut.
      require(self.nccl.description().find("summed by NCCL") != std::string::npos || cut == expected, "bits");
    }));
  }
}

TEST_CASE("NCCL's own sum is close to the one in rank order, and repeats itself") {
  const Configured configured(gpus(4));
  constexpr std::int64_t slice = 200;
  const auto sums = [&](bool fast, DType dtype, DType acc_dtype, std::int64_t largest_message) {
    cuda::NcclOptions options = hasty();
    options.fast = fast;
    options.largest_message = largest_message;
    std::vector<std::vector<double>> all(4);
    run_nccl_ranks(4, options, [&](NcclRank& self) {
      auto source = self.nccl.allocate(self.device, 4 * slice * 4, MemoryCategory::gradients, "source");
      const Buffer acc = self.device.allocate(slice * 4, MemoryCategory::gradients, "acc");
      std::vector<std::byte> bytes(static_cast<std::size_t>(4 * slice) * size_of(dtype));
      dispatch(dtype, [&]<typename T>(T*) {
        for (std::int64_t i = 0; i < 4 * slice; ++i) {
          const T value = from_float<T>(value_at(self.host.rank(), i));
          std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
        }
      });
      self.device.copy(Stream::reduce, source->data(), bytes.data(), static_cast<std::int64_t>(bytes.size()));
      const Region region{source.get(), 0, slice * static_cast<std::int64_t>(size_of(dtype))};
      const TensorView sum(acc.data(), slice, acc_dtype);
      self.nccl.reduce_scatter(self.device, Stream::reduce, region, dtype, sum, true);
      self.nccl.reduce_scatter(self.device, Stream::reduce, region, dtype, sum, false);
      std::vector<std::byte> result(static_cast<std::size_t>(sum.bytes()));
      self.device.copy(Stream::reduce, result.data(), sum.data, sum.bytes());
      self.device.synchronize(Stream::reduce);
      dispatch(acc_dtype, [&]<typename T>(T*) {
        for (std::int64_t i = 0; i < slice; ++i) {
          T value;
          std::memcpy(&value, result.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
          all[static_cast<std::size_t>(self.host.rank())].push_back(to_float(value));
        }
      });
    });
    return all;
  };
  struct Case {
    DType dtype, acc;
    double roundoff;
  };
  for (const Case& one : {Case{DType::f32, DType::f32, 0x1p-24}, Case{DType::bf16, DType::f32, 0x1p-8},
                          Case{DType::bf16, DType::bf16, 0x1p-8}, Case{DType::f16, DType::f16, 0x1p-11}}) {
    for (const std::int64_t largest : {std::int64_t{1} << 30, std::int64_t{64}}) {
      CAPTURE(static_cast<int>(one.dtype), static_cast<int>(one.acc), largest);
      const auto exact = sums(false, one.dtype, one.acc, largest);
      const auto fast = sums(true, one.dtype, one.acc, largest);
      CHECK(fast == sums(true, one.dtype, one.acc, largest));
      int different = 0;
      for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(slice); ++i) {
          double magnitude = 0;  // of what is added up, twice
          for (int p = 0; p < 4; ++p) {
            magnitude += 2 * std::abs(value_at(p, static_cast<std::int64_t>(r) * slice + static_cast<std::int64_t>(i)));
          }
          // Eight additions, each rounded in the slices' format at most.
          const bool close = std::abs(fast[r][i] - exact[r][i]) <= 8 * one.roundoff * magnitude;
          if (!close) FAIL_CHECK("rank " << r << ", element " << i << ": " << fast[r][i] << " and " << exact[r][i]);
          different += fast[r][i] != exact[r][i] ? 1 : 0;
        }
      }
      CHECK(different > 0);  // or the options made no difference
    }
  }
}

TEST_CASE("collectives over NCCL are counted as the dry run counts them, and so is memory") {
  const Configured configured(gpus(4));
  for (const int ranks : {1, 2, 4}) {
    for (const bool fast : {false, true}) {
      CAPTURE(ranks, fast);
      cuda::NcclOptions options = hasty();
      options.fast = fast;
      REQUIRE_NOTHROW(run_nccl_ranks(ranks, options, [](NcclRank& self) {
        check_counts_of_dry_run(self.nccl, self.device, 96);
        CountingCommunicator dry(self.host.rank(), self.host.size(), self.nccl.ranks_on_node());
        PlainDevice dry_device;
        require(self.device.ledger().total() == 0, "all given back");
        const auto memory_of = [](Communicator& c, Device& device) {
          const auto buffer = c.allocate(device, 4000, MemoryCategory::gradients, "g");
          c.reserve(device, 1000);
          const Buffer sum = device.allocate(400, MemoryCategory::gradients, "sum");
          c.reduce_scatter(device, Stream::reduce, {buffer.get(), 0, 400}, DType::f32, sum.view(DType::f32), false);
          return device.ledger().buffers();
        };
        require(memory_of(self.nccl, self.device) == memory_of(dry, dry_device), "memory");
      }));
    }
  }
}

TEST_CASE("descriptions name the way") {
  const Configured configured(gpus(2));
  std::string exact;
  std::string fast;
  cuda::NcclOptions options = hasty();
  run_nccl_ranks(2, options, [&](NcclRank& self) {
    if (self.host.rank() == 0) exact = self.nccl.description();
  });
  options.fast = true;
  run_nccl_ranks(2, options, [&](NcclRank& self) {
    if (self.host.rank() == 0) fast = self.nccl.description();
  });
  const std::string version = cuda::nccl_version_text(NCCL_VERSION_CODE);
  CHECK(exact == "2 ranks over NCCL " + version + ", summed in rank order");
  CHECK(fast == "2 ranks over NCCL " + version + ", summed by NCCL");
}

TEST_CASE("a gather does not wait for a reduction that was called before it") {
  const Configured configured(gpus(2, Streams::lazy));
  REQUIRE_NOTHROW(run_nccl_ranks(2, hasty(), [](NcclRank& self) {
    CudaArrays arrays(self);
    arrays.reduce(Stream::reduce);
    arrays.gather(Stream::gather);
    self.device.synchronize(Stream::gather);
    require(arrays.value(arrays.all) == 7.0F, "gathered");
    require(arrays.value(arrays.sums) == 0.0F, "not yet added up");
    self.device.synchronize(Stream::reduce);
    require(arrays.value(arrays.sums) == 14.0F, "added up");
  }));
}

TEST_CASE("collectives of streams that share a communicator keep the order of their calls") {
  const Configured configured(gpus(2, Streams::lazy));
  REQUIRE_NOTHROW(run_nccl_ranks(2, hasty(), [](NcclRank& self) {
    CudaArrays arrays(self);
    arrays.gather(Stream::gather);
    arrays.reduce(Stream::copy);
    arrays.gather(Stream::compute, 32);
    // The ranks' GPUs would begin with different ones.
    self.device.synchronize(self.host.rank() == 0 ? Stream::compute : Stream::gather);
    self.device.synchronize(Stream::copy);
    self.device.synchronize(Stream::compute);
    require(arrays.value(arrays.sums) == 14.0F && arrays.value(arrays.all) == 7.0F, "values");
  }));
}
