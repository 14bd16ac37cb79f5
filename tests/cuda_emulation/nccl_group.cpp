#include "nccl_group.h"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <exception>
#include <utility>

#include "emulation_state.h"

namespace zt::emulation {
namespace {

// A call that is left wherever it has to wait.
class Task {
 public:
  struct promise_type {
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }
  bool advance() {
    if (!handle_.done()) handle_.resume();
    return handle_.done();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

const unsigned char* at(const void* memory, std::size_t offset) {
  return static_cast<const unsigned char*>(memory) + offset;
}
unsigned char* at(void* memory, std::size_t offset) { return static_cast<unsigned char*>(memory) + offset; }

void fail(Communicator& comm, const std::string& text) {
  set_nccl_error(text);
  comm.stop(ncclInvalidUsage);
  report(text);
}

Signature signature_of(const NcclCall& call) { return {call.kind, call.count, call.type, call.op, call.other}; }

// Names the ranks whose call differs from rank 0's. Rank 0 speaks for all.
void compare_signatures(Communicator& comm) {
  std::string text;
  const std::size_t side = comm.collectives % 2;
  const Signature& first = comm.part(0).signatures[side];
  for (int r = 1; r < comm.ranks; ++r) {
    const Signature& other = comm.part(r).signatures[side];
    if (!(other == first)) text += "; rank " + std::to_string(r) + " calls " + text_of(other);
  }
  if (text.empty()) return;
  text = "ranks call different collectives: rank 0 calls " + text_of(first) + text;
  if (comm.rank == 0) return fail(comm, text);
  set_nccl_error(text);
  comm.stop(ncclInvalidUsage);
}

// How a collective is cut: `parts` times `count` elements; in part p, `sends(rank)` puts a chunk where all can read it.
struct Plan {
  int parts = 1;
  std::size_t count = 0;
};

Plan plan_of(const Communicator& comm, const NcclCall& call) {
  return {call.kind == Kind::reduce_scatter ? comm.ranks : 1, call.count};
}

// What a rank takes from the chunks of part `part`, elements [start, start + count) of each.
void take(const Communicator& comm, const NcclCall& call, int part, std::size_t start, std::size_t count) {
  const std::size_t size = bytes_of(call.type);
  unsigned char* to = call.receive == nullptr ? nullptr : at(call.receive, start * size);
  switch (call.kind) {
    case Kind::all_gather:
      for (int r = 0; r < comm.ranks; ++r) {
        std::memcpy(at(call.receive, (static_cast<std::size_t>(r) * call.count + start) * size),
                    comm.part(r).chunk.data(), count * size);
      }
      break;
    case Kind::broadcast: std::memcpy(to, comm.part(call.other).chunk.data(), count * size); break;
    case Kind::reduce_scatter:
      if (part == comm.rank) fold(call.type, call.op, part + 1, comm.ranks, comm, 0, count, to);
      break;
    case Kind::reduce:
      if (call.other == comm.rank) fold(call.type, call.op, call.other + 1, comm.ranks, comm, 0, count, to);
      break;
    default: {  // all-reduce: a reduce-scatter over equal parts, gathered
      const std::size_t share =
          (call.count + static_cast<std::size_t>(comm.ranks) - 1) / static_cast<std::size_t>(comm.ranks);
      for (std::size_t done = 0; done < count;) {
        const std::size_t owner = (start + done) / share;
        const std::size_t end = std::min(count, (owner + 1) * share - start);
        fold(call.type, call.op, static_cast<int>(owner) + 1, comm.ranks, comm, done, end - done, to + done * size);
        done = end;
      }
    }
  }
}

// Letters of the group that are still to be written or read.
struct Letters {
  const NcclCall* call;
  std::size_t done = 0;
  bool finished = false;
};

// One attempt; true if something moved.
bool move_letter(Communicator& comm, Letters& letters) {
  const NcclCall& call = *letters.call;
  const bool sends = call.kind == Kind::send;
  const auto me = static_cast<std::size_t>(comm.rank);
  const auto peer = static_cast<std::size_t>(call.other);
  Mailbox& box = sends ? comm.region->mail[me][peer] : comm.region->mail[peer][me];
  const bool full = box.written.load(std::memory_order_acquire) != box.read.load(std::memory_order_acquire);
  if (full == sends) return false;
  const std::size_t total = call.count * bytes_of(call.type);
  const std::size_t bytes = std::min(letter_bytes, total - letters.done);
  if (sends) {
    box.count = call.count;
    box.type = call.type;
    std::memcpy(box.letter.data(), at(call.send, letters.done), bytes);
    box.written.fetch_add(1, std::memory_order_release);
  } else {
    if (box.count != call.count || box.type != call.type) {
      const Signature sent = {Kind::send, box.count, box.type, ncclSum, comm.rank};
      fail(comm, "rank " + std::to_string(call.other) + " calls " + text_of(sent) + ", but rank " +
                     std::to_string(comm.rank) + " calls " + text_of(signature_of(call)));
      return false;
    }
    std::memcpy(at(call.receive, letters.done), box.letter.data(), bytes);
    box.read.fetch_add(1, std::memory_order_release);
  }
  letters.done += bytes;
  letters.finished = letters.done == total;
  return true;
}

// Sends and receives between two ranks keep their order; others may pass.
bool move_letters(Communicator& comm, std::vector<Letters>& all) {
  std::array<std::array<bool, max_ranks>, 2> waiting = {};
  bool finished = true;
  for (Letters& letters : all) {
    bool& blocked = waiting[letters.call->kind == Kind::send ? 0 : 1][static_cast<std::size_t>(letters.call->other)];
    while (!letters.finished && !blocked) blocked = !move_letter(comm, letters);
    finished = finished && letters.finished;
  }
  return finished;
}

Task run(std::shared_ptr<Communicator> shared, std::vector<NcclCall> calls) {
  Communicator& comm = *shared;
  std::vector<Letters> letters;
  for (const NcclCall& call : calls) {
    comm.waits_in = text_of(call.kind);
    if (call.kind == Kind::send || call.kind == Kind::receive) {
      letters.push_back({&call});
      continue;
    }
    comm.mine().signatures[++comm.collectives % 2] = signature_of(call);
    comm.post();
    while (!comm.all_here()) {
      if (comm.stopped()) co_return;
      co_await std::suspend_always{};
    }
    compare_signatures(comm);
    if (comm.error != ncclSuccess) co_return;
    const Plan plan = plan_of(comm, call);
    const std::size_t size = bytes_of(call.type);
    const std::size_t chunk = chunk_bytes / size;
    const bool sends = call.kind != Kind::broadcast || call.other == comm.rank;
    for (int part = 0; part < plan.parts; ++part) {
      for (std::size_t start = 0; start < plan.count; start += chunk) {
        const std::size_t count = std::min(chunk, plan.count - start);
        const std::size_t first = static_cast<std::size_t>(part) * plan.count + start;
        if (sends) std::memcpy(comm.mine().chunk.data(), at(call.send, first * size), count * size);
        for (int turn = 0; turn < 2; ++turn) {  // when all have written, and when all have read
          comm.post();
          while (!comm.all_here()) {
            if (comm.stopped()) co_return;
            co_await std::suspend_always{};
          }
          if (turn == 0) take(comm, call, part, start, count);
        }
      }
    }
  }
  while (!move_letters(comm, letters)) {
    if (comm.stopped()) co_return;
    co_await std::suspend_always{};
  }
}

}  // namespace

Operation group_operation(const std::shared_ptr<Communicator>& comm, std::vector<NcclCall> calls) {
  const std::uint64_t number = ++comm->groups;
  auto task = std::make_shared<Task>(run(comm, std::move(calls)));
  return {[task] { return task->advance(); },
          [comm, number] {
            return "rank " + std::to_string(comm->rank) + " waits in " + comm->waits_in + ", its group no. " +
                   std::to_string(number) + ", for " + comm->missing_ranks();
          },
          nullptr, 0};
}

}  // namespace zt::emulation
