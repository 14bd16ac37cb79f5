// Gathers and reductions through windows beside MPI's own collectives, in one run, since machines are shared and only
// ratios last:
//
//   mpirun -n 2 collectives_bench [--megabytes 64] [--rounds 15] [--json]
//
// Rank 0 prints, per collective, the median over the rounds of the slowest rank's seconds, and the ratio to MPI.
// scripts/bench/collectives.py runs it with several numbers of ranks and makes a table.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "core/json.h"
#include "plain_device.h"

namespace {

using namespace zt;

// Seconds of the slowest rank, median over the rounds of which the first two only warm up.
double median_seconds(int rounds, const std::function<void()>& work) {
  std::vector<double> all;
  for (int i = 0; i < rounds + 2; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    work();
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 2) all.push_back(seconds);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void bench(Communicator& c, std::int64_t bytes, int rounds, bool json) {
  test::PlainDevice device;
  const std::int64_t slice = bytes / 4 / c.size();
  const std::int64_t total = slice * c.size();
  const int count = static_cast<int>(slice);
  auto shared = c.allocate(device, total * 4, MemoryCategory::communication, "region");
  Buffer plain = device.allocate(total * 4, MemoryCategory::communication, "region of MPI");
  Buffer out = device.allocate(total * 4, MemoryCategory::communication, "gathered");
  std::fill_n(shared->view(0, total, DType::f32).as<float>(), total, 1.0F);
  std::fill_n(plain.as<float>(), total, 1.0F);
  std::fill_n(out.as<float>(), total, 1.0F);
  const Region region{shared.get(), 0, slice * 4};
  const TensorView own = shared->view(c.rank() * slice * 4, slice, DType::f32);

  struct Row {
    const char* name;
    std::function<void()> work;
  };
  const std::vector<Row> rows = {
      {"MPI_Reduce_scatter_block",
       [&] { MPI_Reduce_scatter_block(plain.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }},
      {"reduce_scatter, in place",
       [&] { c.wait_until_read(c.reduce_scatter(device, Stream::reduce, region, DType::f32, own, true)); }},
      {"MPI_Allgather",
       [&] { MPI_Allgather(plain.data(), count, MPI_FLOAT, out.data(), count, MPI_FLOAT, MPI_COMM_WORLD); }},
      {"all_gather",
       [&] {
         c.wait_until_read(c.all_gather(device, Stream::gather, region, {out.data(), total, DType::f32}));
       }},
      {"MPI_Allgather, in place",
       [&] { MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, plain.data(), count, MPI_FLOAT, MPI_COMM_WORLD); }},
      {"all_gather, in place",
       [&] { c.wait_until_read(c.all_gather(device, Stream::gather, region, shared->view(0, total, DType::f32))); }},
  };
  if (c.rank() == 0 && !json) {
    std::printf("%s, %lld bytes\n%-28s %10s %10s %8s\n", c.description().c_str(), static_cast<long long>(total * 4),
                "collective", "ms", "GB/s", "ratio");
  }
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  double mpi = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double seconds = median_seconds(rounds, rows[i].work);
    if (i % 2 == 0) mpi = seconds;
    table.push_back({{"collective", rows[i].name},
                     {"milliseconds", seconds * 1e3},
                     {"gigabytes_per_second", static_cast<double>(total) * 4e-9 / seconds},
                     {"ratio", mpi / seconds}});
    if (c.rank() == 0 && !json) {
      std::printf("%-28s %10.3f %10.2f %8.2f\n", rows[i].name, seconds * 1e3,
                  static_cast<double>(total) * 4e-9 / seconds, mpi / seconds);
    }
  }
  const double barrier = median_seconds(std::max(rounds, 50), [&] { c.barrier(); });
  if (c.rank() == 0 && !json) std::printf("%-28s %10.4f\n", "barrier", barrier * 1e3);
  if (c.rank() == 0 && json) {
    const nlohmann::ordered_json result = {
        {"communicator", c.description()},       {"ranks", c.size()},   {"bytes", total * 4}, {"rounds", rounds},
        {"barrier_milliseconds", barrier * 1e3}, {"collectives", table}};
    std::cout << result.dump(1) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t megabytes = 64;
  std::int64_t rounds = 15;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const std::int64_t value = i + 1 < argc ? std::atoll(argv[i + 1]) : 0;
    if (name == "--json") {
      json = true;
    } else if ((name == "--megabytes" || name == "--rounds") && value > 0 && value <= 1 << 20) {
      (name == "--rounds" ? rounds : megabytes) = value;
      ++i;
    } else {
      const char* usage = "usage: mpirun -n RANKS collectives_bench [--megabytes N] [--rounds N] [--json]\n";
      std::fputs(usage, name == "--help" ? stdout : stderr);
      return name == "--help" ? 0 : 2;
    }
  }
  std::string note;
  auto communicator = mpi_communicator(0, true, &note);
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  bench(*communicator, megabytes << 20, static_cast<int>(rounds), json);
  communicator.reset();
  mpi_finalize();
  return 0;
}
