#include "train/diagnosis.h"

#include <algorithm>
#include <cmath>

#include "device/checking_device.h"

namespace zt {

std::string diagnose_not_finite(Session& session, Device& device, double scale) {
  CheckingDevice checking(device, [&](const void* address) { return session.tensor_at(address); });
  session.replay_micro_steps(checking, scale);
  // Ranks run different micro-batches: the one that came upon it in the earliest operation speaks, the lowest rank
  // among equals.
  std::string mine;
  if (const auto& finding = checking.finding()) {
    const std::string value = std::isnan(finding->value) ? "NaN" : finding->value > 0 ? "+infinity" : "-infinity";
    mine = std::to_string(finding->operation_number) + " rank " + std::to_string(session.communicator().rank()) +
           ": the first value that is not finite is " + value + " at element " + std::to_string(finding->element) +
           " of " + (finding->tensor.empty() ? "a tensor" : finding->tensor) + " (" +
           std::string(name_of(finding->dtype)) + "), written by " + finding->operation;
  }
  std::string first;
  long long earliest = 0;
  for (const std::string& text : session.communicator().all_gather_strings(mine)) {
    if (text.empty()) continue;
    const long long number = std::stoll(text);
    if (!first.empty() && number >= earliest) continue;
    earliest = number;
    first = text.substr(text.find(' ') + 1);
  }
  if (first.empty()) return "run again, every value of the passes was finite: the overflow is in the sum over micro-batches";
  return first;
}

}  // namespace zt
