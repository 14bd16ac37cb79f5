#include "nccl_communicator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace zt::emulation {
namespace {

struct IdContents {
  std::uint64_t magic;
  pid_t process;
  int file;
};
static_assert(sizeof(IdContents) <= sizeof(ncclUniqueId));
constexpr std::uint64_t id_magic = 0x7a65726f6e63636c;

IdContents contents_of(const ncclUniqueId& id) {
  IdContents contents;
  std::memcpy(&contents, &id, sizeof contents);
  return contents;
}

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8: return "int8";
    case ncclUint8: return "uint8";
    case ncclInt32: return "int32";
    case ncclUint32: return "uint32";
    case ncclInt64: return "int64";
    case ncclUint64: return "uint64";
    case ncclFloat16: return "float16";
    case ncclFloat32: return "float32";
    case ncclFloat64: return "float64";
    case ncclBfloat16: return "bfloat16";
    default: return "another type";
  }
}

const char* name_of(ncclRedOp_t op) {
  constexpr std::array names = {"sum", "product", "max", "min", "average"};
  return static_cast<std::size_t>(op) < names.size() ? names[static_cast<std::size_t>(op)] : "another operation";
}

}  // namespace

std::string text_of(Kind kind) {
  constexpr std::array names = {"ncclAllGather", "ncclAllReduce", "ncclReduceScatter", "ncclBroadcast",
                                "ncclReduce",    "ncclSend",      "ncclRecv"};
  return names[static_cast<std::size_t>(kind)];
}

std::string text_of(const Signature& signature) {
  return text_of(signature.kind) + "(count " + std::to_string(signature.count) + ", " + name_of(signature.type) + ", " +
         name_of(signature.op) + ", root " + std::to_string(signature.root) + ")";
}

bool make_region(ncclUniqueId* id) {
  const int file = memfd_create("zerotrain-emulated-nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Region)) != 0) return false;
  const IdContents contents = {id_magic, getpid(), file};
  *id = {};
  std::memcpy(id, &contents, sizeof contents);
  return true;
}

Region* open_region(const ncclUniqueId& id) {
  const IdContents contents = contents_of(id);
  if (contents.magic != id_magic) return nullptr;
  const std::string path = "/proc/" + std::to_string(contents.process) + "/fd/" + std::to_string(contents.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Region*>(memory);
}

// Once all ranks have mapped it, the file need not stay open.
void close_region_file(const ncclUniqueId& id, Region* region) {
  const IdContents contents = contents_of(id);
  if (contents.process == getpid() && region->file_closed.exchange(1) == 0) close(contents.file);
}

Communicator::~Communicator() {
  if (region != nullptr) munmap(region, sizeof(Region));
}

void Communicator::post() { mine().steps.store(++step, std::memory_order_release); }

bool Communicator::all_here() const {
  for (int r = 0; r < ranks; ++r) {
    if (part(r).steps.load(std::memory_order_acquire) < step) return false;
  }
  return true;
}

bool Communicator::stopped() {
  if (error != ncclSuccess) return true;
  const int by = region->stopped_by_plus_1.load() - 1;
  if (by < 0) return false;
  set_nccl_error("rank " + std::to_string(by) + " has given up the communicator");
  error = ncclRemoteError;
  return true;
}

void Communicator::stop(ncclResult_t why) {
  int nobody = 0;
  region->stopped_by_plus_1.compare_exchange_strong(nobody, rank + 1);
  error = why;
}

std::string Communicator::missing_ranks() const {
  std::string text;
  for (int r = 0; r < ranks; ++r) {
    if (part(r).steps.load() < step) text += (text.empty() ? "rank " : ", rank ") + std::to_string(r);
  }
  return text.empty() ? "its peers" : text;
}

}  // namespace zt::emulation
