// What the environment may say about NCCL's communicator.
#include <array>
#include <charconv>
#include <cstdlib>
#include <span>
#include <string_view>

#include "comm/agree.h"
#include "core/errors.h"
#include "device/cuda/nccl_communicator.h"
#include "device/cuda/nccl_entry.h"

namespace zt::cuda {
namespace {

std::int64_t number_from(const char* variable, std::int64_t otherwise) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return otherwise;
  const std::string_view text(value);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw UserError(std::string(variable) + "=" + value + " in the environment is no whole number from 0");
  }
  return number;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, CudaDevice& device, bool fast) {
  NcclOptions options;
  options.fast = fast;
  // mpirun does not carry the environment to other machines unless it is told to; and NCCL wants memory to be
  // enrolled by all ranks or by none.
  std::array<std::int64_t, 2> chosen{};
  all_or_none(host, [&] {
    if (host.rank() != 0) return;
    chosen[0] = number_from("ZEROTRAIN_NCCL_PATIENCE", options.patience.count());
    chosen[1] = number_from("ZEROTRAIN_NCCL_SMALLEST_ENROLLED", options.smallest_enrolled);
  });
  host.broadcast(std::as_writable_bytes(std::span(chosen)), 0);
  options.patience = std::chrono::seconds(chosen[0]);
  options.smallest_enrolled = chosen[1];
  return std::make_unique<NcclCommunicator>(host, device, options);
}

}  // namespace zt::cuda
