#include "comm/threads.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <utility>

#include "comm/hierarchical.h"
#include "comm/topology.h"
#include "core/errors.h"

namespace zt {
namespace {

// One box per receiver. Blocks are copied into it, so that a sender never waits.
class Mailboxes {
 public:
  Mailboxes(int ranks, std::shared_ptr<ControlBlock> block)
      : boxes_(static_cast<std::size_t>(ranks)), block_(std::move(block)) {}

  void put(int from, int to, int lane, const void* data, std::int64_t bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    std::vector<std::byte> copy(first, first + bytes);
    Box& box = boxes_[static_cast<std::size_t>(to)];
    {
      const std::scoped_lock lock(box.mutex);
      box.blocks[{from, lane}].push_back(std::move(copy));
    }
    box.arrived.notify_all();
  }

  void take(int from, int to, int lane, void* data, std::int64_t bytes) {
    Box& box = boxes_[static_cast<std::size_t>(to)];
    std::vector<std::byte> block;
    {
      std::unique_lock lock(box.mutex);
      auto& queue = box.blocks[{from, lane}];
      for (;;) {
        const bool gone = block_->is_gone(from);
        if (!queue.empty()) break;
        if (gone) block_->throw_gone(from);
        block_->throw_if_failed();
        box.arrived.wait_for(lock, std::chrono::milliseconds(50));
      }
      block = std::move(queue.front());
      queue.pop_front();
    }
    if (static_cast<std::int64_t>(block.size()) != bytes) throw RunError("ranks disagree about the size of a block");
    std::memcpy(data, block.data(), block.size());
  }

 private:
  struct Box {
    std::mutex mutex;
    std::condition_variable arrived;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> blocks;  // by sender and lane
  };
  std::vector<Box> boxes_;
  std::shared_ptr<ControlBlock> block_;
};

class MailboxTransport final : public Transport {
 public:
  MailboxTransport(int rank, std::shared_ptr<Mailboxes> boxes) : rank_(rank), boxes_(std::move(boxes)) {}

  void exchange(int lane, std::span<const Send> sends, std::span<const Receive> receives,
                const std::function<void()>& meanwhile) override {
    for (const Send& send : sends) {
      if (send.bytes > 0) boxes_->put(rank_, send.to, lane, send.data, send.bytes);
    }
    meanwhile();
    for (const Receive& receive : receives) {
      if (receive.bytes > 0) boxes_->take(receive.from, rank_, lane, receive.data, receive.bytes);
    }
  }

 private:
  int rank_;
  std::shared_ptr<Mailboxes> boxes_;
};

std::shared_ptr<std::byte> zeroed_heap_memory(std::int64_t bytes) {
  const auto rounded = (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, rounded);
  return {memory, [](std::byte* p) { std::free(p); }};
}

std::string what_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void run_ranks_as_threads(int ranks, int ranks_per_node, const std::function<void(Communicator&)>& body) {
  auto memory = zeroed_heap_memory(ControlBlock::bytes_for(ranks));
  ControlBlock::create(memory.get(), ranks);
  const bool may_spin = ranks <= static_cast<int>(allowed_cores().size());
  auto block = std::make_shared<ControlBlock>(memory, ranks, may_spin);
  for (int rank = 0; rank < ranks; ++rank) block->attach(rank, rank, 0);
  auto boxes = std::make_shared<Mailboxes>(ranks, block);

  std::mutex mutex;
  std::exception_ptr first;
  std::exception_ptr first_lost;  // a PeerFailed: of interest only if nobody knows better
  const auto run = [&](int rank) {
    try {
      const std::vector<int> members = ranks_of_node(rank, ranks, ranks_per_node);
      HierarchicalCommunicator::Place place{.rank = rank,
                                            .size = ranks,
                                            .node_ranks = members,
                                            .description = ranks == 1 ? "1 rank"
                                                                      : std::to_string(ranks) + " ranks as threads" +
                                                                            describe_nodes(ranks, ranks_per_node),
                                            .on_abort = {}};
      // In the control block of a machine a slot is a rank.
      HierarchicalCommunicator communicator(
          std::move(place), std::make_unique<NodeWindows>(block, members, rank - members.front(), heap_window_memory()),
          std::make_shared<MailboxTransport>(rank, boxes));
      try {
        body(communicator);
      } catch (const PeerFailed&) {
        const std::scoped_lock lock(mutex);
        if (!first_lost) first_lost = std::current_exception();
      } catch (...) {
        {
          const std::scoped_lock lock(mutex);
          if (!first) first = std::current_exception();
        }
        communicator.abort(1, what_of(std::current_exception()));
      }
    } catch (...) {
      block->leave(rank);
      const std::scoped_lock lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  } catch (...) {  // the system gives no more threads
    block->record_failure({static_cast<int>(threads.size()), 1, "no thread for this rank"});
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  if (first_lost) std::rethrow_exception(first_lost);
}

}  // namespace zt
