#include "comm/processes.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "comm/hierarchical.h"
#include "comm/topology.h"
#include "core/errors.h"

namespace zt {
namespace {

// Between pretended nodes of one machine. Blocks follow each other on a connection without headers: all ranks make
// their exchanges in the same order.
class SocketTransport final : public Transport {
 public:
  SocketTransport(std::vector<int> sockets, std::shared_ptr<ControlBlock> block)
      : sockets_(std::move(sockets)), block_(std::move(block)) {}
  ~SocketTransport() override {
    for (const int fd : sockets_) {
      if (fd >= 0) close(fd);
    }
  }
  SocketTransport(const SocketTransport&) = delete;
  SocketTransport& operator=(const SocketTransport&) = delete;

  void exchange(int, std::span<const Send> sends, std::span<const Receive> receives,
                const std::function<void()>& meanwhile) override {
    std::vector<Work> work;
    for (const Send& send : sends) {
      // A socket never writes through this pointer.
      work.push_back({send.to, true, static_cast<char*>(const_cast<void*>(send.data)), send.bytes});
    }
    for (const Receive& receive : receives) {
      work.push_back({receive.from, false, static_cast<char*>(receive.data), receive.bytes});
    }
    advance(work);
    meanwhile();
    while (!work.empty()) {
      wait_for_any(work);
      advance(work);
    }
  }

 private:
  struct Work {
    int peer;
    bool sends;
    char* data;
    std::int64_t left;
  };

  void advance(std::vector<Work>& work) {
    for (Work& item : work) {
      while (item.left > 0) {
        const int fd = sockets_[static_cast<std::size_t>(item.peer)];
        const auto want = static_cast<std::size_t>(std::min<std::int64_t>(item.left, 1 << 20));
        const ssize_t done = item.sends ? send(fd, item.data, want, MSG_NOSIGNAL | MSG_DONTWAIT)
                                        : recv(fd, item.data, want, MSG_DONTWAIT);
        if (done > 0) {
          item.data += done;
          item.left -= done;
        } else if (done < 0 && errno == EINTR) {
          continue;
        } else if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
          break;
        } else {
          block_->throw_gone(item.peer);  // the other end is closed
        }
      }
    }
    std::erase_if(work, [](const Work& item) { return item.left == 0; });
  }

  void wait_for_any(const std::vector<Work>& work) {
    block_->throw_if_failed();
    std::vector<pollfd> entries;
    for (const Work& item : work) {
      const short events = item.sends ? POLLOUT : POLLIN;
      entries.push_back({sockets_[static_cast<std::size_t>(item.peer)], events, 0});
    }
    poll(entries.data(), entries.size(), 100);
  }

  std::vector<int> sockets_;  // by rank
  std::shared_ptr<ControlBlock> block_;
};

void close_all(std::vector<int>& fds) {
  for (int& fd : fds) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
}

}  // namespace

ProcessGroup::ProcessGroup(int ranks, int ranks_per_node)
    : ranks_(ranks),
      ranks_per_node_(ranks_per_node),
      sockets_(static_cast<std::size_t>(ranks), std::vector<int>(static_cast<std::size_t>(ranks), -1)) {
  const auto bytes = static_cast<std::size_t>(ControlBlock::bytes_for(ranks));
  // Inherited by the children.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  std::shared_ptr<std::byte> shared(static_cast<std::byte*>(memory), [bytes](std::byte* p) { munmap(p, bytes); });
  ControlBlock::create(shared.get(), ranks);
  const bool may_spin = ranks <= static_cast<int>(allowed_cores().size());
  block_ = std::make_shared<ControlBlock>(std::move(shared), ranks, may_spin);

  for (int a = 0; a < ranks; ++a) {
    const std::vector<int> node = ranks_of_node(a, ranks, ranks_per_node);
    for (int b = node.back() + 1; b < ranks; ++b) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        const int error = errno;
        for (auto& fds : sockets_) close_all(fds);
        throw UserError("device.ranks_per_node = " + std::to_string(ranks_per_node) + " needs a connection for each " +
                        "pair of ranks of different nodes, and the system gives no more (" + std::strerror(error) +
                        "): raise `ulimit -n`, or start fewer ranks");
      }
      sockets_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = ends[0];
      sockets_[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = ends[1];
    }
  }
}

ProcessGroup::~ProcessGroup() { forked(); }

void ProcessGroup::forked() {
  for (auto& fds : sockets_) close_all(fds);
}

std::unique_ptr<Communicator> ProcessGroup::join(int rank) {
  std::vector<int> mine = std::exchange(sockets_[static_cast<std::size_t>(rank)], {});
  forked();
  block_->attach(rank, rank, getpid());
  const std::vector<int> members = ranks_of_node(rank, ranks_, ranks_per_node_);
  HierarchicalCommunicator::Place place{
      .rank = rank,
      .size = ranks_,
      .node_ranks = members,
      .description = std::to_string(ranks_) + (ranks_ == 1 ? " rank as a local process" : " ranks as local processes") +
                     describe_nodes(ranks_, ranks_per_node_),
      .on_abort = {}};
  return std::make_unique<HierarchicalCommunicator>(
      std::move(place), std::make_unique<NodeWindows>(block_, members, rank - members.front(), memfd_window_memory()),
      std::make_shared<SocketTransport>(std::move(mine), block_));
}

}  // namespace zt
