// Accounting of memory by category. Every large allocation of a rank, on a device or shared with peers,
// passes through one ledger, so that what is reported is what was allocated.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace zt {

enum class MemoryCategory : std::uint8_t {
  parameters,     // what rests between steps: whole or slice
  gradients,      // what rests between micro-steps
  optimizer,      // fp32 masters and moments
  activations,    // stored by forward for backward, and their gradients
  communication,  // rings of gathered and of unreduced units, staging
  data,           // batches
  workspace,      // scratch of kernels and libraries
};
constexpr int memory_category_count = 7;
std::string_view name_of(MemoryCategory category);

using MemoryByCategory = std::array<std::int64_t, memory_category_count>;  // bytes

class MemoryLedger {
 public:
  void add(MemoryCategory category, const std::string& name, std::int64_t bytes);
  void remove(MemoryCategory category, const std::string& name, std::int64_t bytes);
  // Bytes inside allocations already added that exist only for alignment or even slices.
  void add_padding(std::int64_t bytes);

  MemoryByCategory current() const;
  std::int64_t total() const;
  std::int64_t padding() const;
  // (category, buffer name) -> bytes, for reports and the error that says what did not fit.
  std::map<std::pair<MemoryCategory, std::string>, std::int64_t> buffers() const;

 private:
  mutable std::mutex mutex_;
  MemoryByCategory bytes_{};
  std::int64_t padding_ = 0;
  std::map<std::pair<MemoryCategory, std::string>, std::int64_t> buffers_;
};

}  // namespace zt
