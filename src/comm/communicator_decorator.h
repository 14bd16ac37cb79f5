// A communicator that passes everything on to another one but for the collectives of a step: the base of those that
// look at these on their way, each of which must say what it makes of every one.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zt {

class CommunicatorDecorator : public Communicator {
 public:
  explicit CommunicatorDecorator(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  int ranks_on_node() const override { return inner_.ranks_on_node(); }
  std::string description() const override { return inner_.description(); }
  void reserve(Device& device, std::int64_t largest_slice_bytes) override {
    inner_.reserve(device, largest_slice_bytes);
  }
  SharedBufferPtr allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                           const std::string& name) override {
    return inner_.allocate(device, bytes, category, name);
  }
  void wait_until_read(Ticket ticket) override { inner_.wait_until_read(ticket); }
  // Text of set-up and of failures: no step sends any.
  std::vector<std::string> all_gather_strings(const std::string& mine) override {
    return inner_.all_gather_strings(mine);
  }
  void abort(int exit_code, const std::string& message) noexcept override { inner_.abort(exit_code, message); }
  void check_peers() override { inner_.check_peers(); }
  void set_purpose(Purpose purpose) override { inner_.set_purpose(purpose); }
  const CommunicationCounts& counts() const override { return inner_.counts(); }
  std::int64_t peers_shared_bytes() const override { return inner_.peers_shared_bytes(); }

 protected:
  Communicator& inner() { return inner_; }
  std::int64_t others() const { return size() - 1; }

 private:
  Communicator& inner_;
};

}  // namespace zt
