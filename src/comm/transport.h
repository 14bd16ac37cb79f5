// What crosses nodes: blocks of bytes from rank to rank. Threads use mailboxes, local processes sockets, MPI messages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace zt {

class Transport {
 public:
  struct Send {
    int to = 0;  // global rank
    const void* data = nullptr;
    std::int64_t bytes = 0;
  };
  struct Receive {
    int from = 0;  // global rank
    void* data = nullptr;
    std::int64_t bytes = 0;
  };

  virtual ~Transport() = default;

  // Starts all sends and receives, calls `meanwhile`, and returns when everything has been received and the memory
  // of the sends may be overwritten. The receiver knows how much it is sent. Between two ranks, blocks of one lane
  // arrive in order. All ranks make their exchanges in the same order, so none waits for a peer in vain; when a
  // peer is lost, PeerFailed is thrown. Blocks of 0 bytes are not sent.
  virtual void exchange(int lane, std::span<const Send> sends, std::span<const Receive> receives,
                        const std::function<void()>& meanwhile) = 0;
};

}  // namespace zt
