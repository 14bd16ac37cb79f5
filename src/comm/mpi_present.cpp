// The C interface only: the C++ bindings of old would need another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "comm/hierarchical.h"
#include "comm/mpi.h"
#include "comm/mpi_environment.h"
#include "comm/node_windows.h"
#include "comm/topology.h"
#include "core/errors.h"

namespace zt {
namespace {

#if defined(OPEN_MPI)
constexpr bool is_open_mpi = true;
#else
constexpr bool is_open_mpi = false;
#endif

constexpr std::int64_t largest_message = std::int64_t{1} << 30;  // counts of MPI are int

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm world, std::shared_ptr<ControlBlock> block, bool may_spin)
      : world_(world), block_(std::move(block)), may_spin_(may_spin) {}

  void exchange(int lane, std::span<const Send> sends, std::span<const Receive> receives,
                const std::function<void()>& meanwhile) override {
    std::vector<MPI_Request> requests;
    for (const Receive& receive : receives) {
      auto* to = static_cast<char*>(receive.data);
      for (std::int64_t done = 0; done < receive.bytes; done += largest_message) {
        const int count = static_cast<int>(std::min(largest_message, receive.bytes - done));
        MPI_Irecv(to + done, count, MPI_BYTE, receive.from, lane, world_, &requests.emplace_back());
      }
    }
    for (const Send& send : sends) {
      const auto* from = static_cast<const char*>(send.data);
      for (std::int64_t done = 0; done < send.bytes; done += largest_message) {
        const int count = static_cast<int>(std::min(largest_message, send.bytes - done));
        MPI_Isend(from + done, count, MPI_BYTE, send.to, lane, world_, &requests.emplace_back());
      }
    }
    meanwhile();
    // Not MPI_Waitall: a rank of this machine that failed is to be noticed, and a core may have several ranks.
    for (std::int64_t turn = 0;; ++turn) {
      int done = 0;
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0) return;
      if (!may_spin_ || turn % 64 == 63) sched_yield();
      if (turn % 256 == 255) block_->throw_if_failed();
    }
  }

 private:
  MPI_Comm world_;
  std::shared_ptr<ControlBlock> block_;
  bool may_spin_;
};

void check_launcher() {
  using Kind = LaunchedWorld::Kind;
  const LaunchedWorld world = world_of_environment();
  const Kind own = is_open_mpi ? Kind::open_mpi : Kind::pmi;
  const bool foreign = world.size > 1 && world.kind != own && !(world.kind == Kind::slurm && !is_open_mpi);
  int initialized = 0;
  MPI_Initialized(&initialized);
  int size = world.size;
  if (!foreign) {
    if (initialized == 0) {
      int provided = 0;
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    }
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  if (!foreign && !(size == 1 && world.size > 1)) return;
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  std::string library(version.data());
  library = library.substr(0, library.find_first_of(",\n"));
  throw UserError(
      "the launcher started " + std::to_string(world.size) + " ranks (" + world.variable +
      "), but it belongs to another MPI than the one zerotrain was built with (" + library +
      "): each rank would train alone. Use the mpirun of that MPI (`ldd` on zerotrain shows where its libmpi "
      "lies; with Slurm and Open MPI: `srun --mpi=pmix`), or build zerotrain again with the MPI of this "
      "launcher, or start local ranks with `zerotrain --ranks N`");
}

std::vector<int> gather_int(int mine, MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> all(static_cast<std::size_t>(size));
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
  return all;
}

bool all_agree(bool mine, MPI_Comm comm) {
  int value = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MIN, comm);
  return value != 0;
}

// Whether the ranks of this machine may run on as many cores as there are ranks.
bool core_for_each_rank(MPI_Comm machine) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  std::array<unsigned char, sizeof mine> bits{};
  std::memcpy(bits.data(), &mine, sizeof mine);
  MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_UNSIGNED_CHAR, MPI_BOR, machine);
  std::memcpy(&mine, bits.data(), sizeof mine);
  int ranks = 0;
  MPI_Comm_size(machine, &ranks);
  return CPU_COUNT(&mine) >= ranks;
}

// The control block of a machine, made by its first rank and opened by the others; null if one of them cannot.
std::shared_ptr<std::byte> share_control_block(MPI_Comm machine) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(machine, &rank);
  MPI_Comm_size(machine, &size);
  const std::int64_t bytes = ControlBlock::bytes_for(size);
  // A random number at the end tells whether the right memory was opened: in another container the same process
  // number may be somebody else's.
  const std::int64_t with_token = bytes + 64;
  std::array<std::uint64_t, 3> words{};  // process, descriptor, token
  Memfd made;
  if (rank == 0) {
    try {
      made = create_memfd(with_token);
      std::random_device random;
      words = {static_cast<std::uint64_t>(getpid()), static_cast<std::uint64_t>(made.fd),
               (static_cast<std::uint64_t>(random()) << 32) | random() | 1U};
      ControlBlock::create(made.memory.get(), size);
      std::memcpy(made.memory.get() + bytes, &words[2], sizeof words[2]);
    } catch (const std::exception&) {
      made = {};
      words = {};
    }
  }
  MPI_Bcast(words.data(), static_cast<int>(words.size()), MPI_UINT64_T, 0, machine);
  auto memory = made.memory;
  if (rank != 0 && words[2] != 0) {
    memory = open_memfd(static_cast<int>(words[0]), static_cast<int>(words[1]), with_token);
    if (memory && std::memcmp(memory.get() + bytes, &words[2], sizeof words[2]) != 0) memory = nullptr;
  }
  const bool agreed = all_agree(memory != nullptr, machine);
  if (made.fd >= 0) close(made.fd);
  return agreed ? memory : nullptr;
}

std::shared_ptr<std::byte> own_control_block() {
  const std::int64_t bytes = ControlBlock::bytes_for(1);
  WindowMemory::Descriptor descriptor;
  const auto windows = heap_window_memory();
  auto memory = windows->create(bytes, descriptor);
  windows->opened(descriptor);
  ControlBlock::create(memory.get(), 1);
  return memory;
}

void end_world(const Failure& failure) {
  std::fprintf(stderr, "zerotrain: %s\n", failure.text().c_str());
  std::fflush(nullptr);
  // The other ranks are ended by the launcher, with this exit code.
  MPI_Abort(MPI_COMM_WORLD, failure.exit_code);
}

}  // namespace

bool mpi_built() { return true; }

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);  // one of the few calls that may come before MPI_Init
  const std::string all = text.data();
  return all.substr(0, all.find_first_of(",\n"));  // "Open MPI v4.1.4, package: ..."
}

std::unique_ptr<Communicator> mpi_communicator(int ranks_per_node, bool windows, std::string* note) {
  check_launcher();
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);  // lives until MPI ends: its messages meet no others'
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
  int slot = 0;
  int slots = 0;
  MPI_Comm_rank(machine, &slot);
  MPI_Comm_size(machine, &slots);
  const bool may_spin = core_for_each_rank(machine);

  std::shared_ptr<std::byte> memory;
  if (windows) {
    memory = share_control_block(machine);
    if (!all_agree(memory != nullptr, world)) {
      memory = nullptr;
      if (note != nullptr && rank == 0) {
        *note =
            "ranks of one machine cannot read each other's memory (are they in different containers?): every byte "
            "goes over MPI, which is slower";
      }
    }
  }
  HierarchicalCommunicator::Place place{
      .rank = rank, .size = size, .node_ranks = {}, .description = {}, .on_abort = {}};
  std::shared_ptr<ControlBlock> block;
  std::vector<int> members;
  std::unique_ptr<WindowMemory> window_memory;
  const std::vector<int> ranks_of_machine = gather_int(rank, machine);
  const std::string world_text = std::to_string(size) + (size == 1 ? " rank over MPI" : " ranks over MPI");
  if (memory) {
    block = std::make_shared<ControlBlock>(memory, slots, may_spin);
    block->attach(slot, rank, getpid());
    members = ranks_of_node(slot, slots, ranks_per_node);
    for (const int member : members) place.node_ranks.push_back(ranks_of_machine[static_cast<std::size_t>(member)]);
    window_memory = memfd_window_memory();
    place.description = world_text + ", shared memory within a node" + describe_nodes(slots, ranks_per_node);
  } else {
    slots = 1;
    slot = 0;
    block = std::make_shared<ControlBlock>(own_control_block(), 1, may_spin);
    block->attach(0, rank, 0);
    members = {0};
    place.node_ranks = {rank};
    window_memory = heap_window_memory();
    place.description = world_text + ", every byte as a message";
  }
  place.on_abort = end_world;
  // If all ranks fail alike, rank 0 says it, and the others have ended before their turn comes.
  if (slots != size && rank != 0) place.abort_delay = std::chrono::milliseconds(500);
  MPI_Barrier(machine);  // all have said which process they are
  MPI_Comm_free(&machine);
  const int me = slot - members.front();
  return std::make_unique<HierarchicalCommunicator>(
      std::move(place), std::make_unique<NodeWindows>(block, std::move(members), me, std::move(window_memory)),
      std::make_shared<MpiTransport>(world, block, may_spin));
}

void mpi_finalize() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized != 0 && finalized == 0) MPI_Finalize();
}

}  // namespace zt
